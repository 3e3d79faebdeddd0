package decrypt

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// Part is a party's part of one plaintext: a word modulo eta and the run that produced it.
type Part struct {
	Run  RunID
	Word uint64
}

// Wipe erases the words.
func Wipe(parts []Part) {
	for i := range parts {
		parts[i].Word = 0
	}
}

// The encoding of a party's answer is one byte with the length of a word in bits, followed by
//
//	the number of runs (2 bytes) and their ids (16 bytes each), in the order of their first use
//	for each message the number of its run (2 bytes), if there are several
//	the words, packed
//
// Numbers are encoded least significant byte first.

const (
	runSize = len(RunID{})
	// MaxRuns is the largest number of different runs in one answer.
	MaxRuns = 1<<16 - 1
)

// EncodeAnswer encodes an answer as a party sends it. The error wraps ErrAnswers.
func EncodeAnswer(p Params, parts []Part) ([]byte, error) {
	numbers, runs := map[RunID]int{}, []RunID(nil)
	words := make([]uint64, len(parts))
	defer clear(words)
	for i, x := range parts {
		if _, seen := numbers[x.Run]; !seen {
			numbers[x.Run], runs = len(runs), append(runs, x.Run)
		}
		words[i] = x.Word
	}
	if len(runs) > MaxRuns || len(runs) == 0 {
		return nil, fmt.Errorf("%w: %d runs in one answer", ErrAnswers, len(runs))
	}
	b := binary.LittleEndian.AppendUint16([]byte{byte(p.Kind.LogEta)}, uint16(len(runs)))
	for _, id := range runs {
		b = append(b, id[:]...)
	}
	if len(runs) > 1 {
		for _, x := range parts {
			b = binary.LittleEndian.AppendUint16(b, uint16(numbers[x.Run]))
		}
	}
	packed := make([]byte, kernel.PackedSize(len(words), p.Kind.LogEta))
	kernel.Pack(packed, words, p.Kind.LogEta)
	return append(b, packed...), nil
}

// MaxAnswer returns an upper bound on the size of an encoded answer for count messages.
func MaxAnswer(p Params, count int) int {
	return 3 + min(count, MaxRuns)*runSize + 2*count + kernel.PackedSize(count, p.Kind.LogEta)
}

// DecodeAnswer decodes an answer for count messages. The error wraps ErrAnswers.
func DecodeAnswer(p Params, count int, b []byte) ([]Part, error) {
	parts, err := decodeAnswer(p, count, b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswers, err)
	}
	return parts, nil
}

func decodeAnswer(p Params, count int, b []byte) ([]Part, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if count < 1 || len(b) < 3 || int(b[0]) != p.Kind.LogEta {
		return nil, errors.New("the answer does not have these parameters")
	}
	n := int(binary.LittleEndian.Uint16(b[1:]))
	if b = b[3:]; n < 1 || n > count || len(b) < n*runSize {
		return nil, fmt.Errorf("invalid number of runs: %d", n)
	}
	runs := make([]RunID, n)
	for i := range runs {
		b = b[copy(runs[i][:], b):]
	}
	parts := make([]Part, count)
	for i := range parts {
		parts[i].Run = runs[0]
	}
	if n > 1 {
		if len(b) < 2*count {
			return nil, errors.New("too short for the numbers of the runs")
		}
		for i := range parts {
			k := int(binary.LittleEndian.Uint16(b[2*i:]))
			if k >= n {
				return nil, fmt.Errorf("run %d of %d does not exist", k, n)
			}
			parts[i].Run = runs[k]
		}
		b = b[2*count:]
	}
	words := make([]uint64, count)
	defer clear(words)
	if len(b) != kernel.PackedSize(count, p.Kind.LogEta) || !kernel.Unpack(words, b, p.Kind.LogEta) {
		return nil, errors.New("the words have the wrong length")
	}
	for i := range parts {
		parts[i].Word = words[i]
	}
	return parts, nil
}

// ErrRuns is returned if parties answered for a message in different runs, for example because one
// of them lost its answer.
var ErrRuns = errors.New("decrypt: answers of different runs")

// Plaintexts combines the answers of all parties of a quorum. The error wraps ErrAnswers or
// ErrRuns.
func Plaintexts(p Params, answers [][]Part) ([]uint64, error) {
	words := make([][]uint64, len(answers))
	for k, answer := range answers {
		if len(answer) != len(answers[0]) {
			return nil, fmt.Errorf("%w: one is for %d messages, another for %d", ErrAnswers, len(answer), len(answers[0]))
		}
		words[k] = make([]uint64, len(answer))
		defer clear(words[k])
		for i, x := range answer {
			//lodge:check threshold/answers/runs [run=TestAnswers] parts of different runs are added
			if x.Run != answers[0][i].Run {
				return nil, fmt.Errorf("%w: message %d", ErrRuns, i)
			}
			words[k][i] = x.Word
		}
	}
	return Sum(p, words)
}
