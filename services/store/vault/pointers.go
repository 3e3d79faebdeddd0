package vault

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Messages are some of those that a ciphertext has, next to each other: an LWE ciphertext has one, a ring ciphertext one in
// each coefficient.
type Messages struct {
	Ciphertext   [32]byte // its digest
	First, Count int
}

// end is the message behind the last.
func (m *Messages) end() int { return m.First + m.Count }

// answerPiece is where the answers for some messages of a ciphertext are: in an entry of a chunk of a run, which may have answers
// for others as well.
type answerPiece struct {
	first, count int
	run          RunID
	chunk        int
	offset       int // of the entry, in the chunk
}

func (p *answerPiece) end() int { return p.first + p.count }

// pointerBytes is how much of its hash names a ciphertext in the key of its pointer. An answer says what ciphertext it is for:
// two with one key could not be confused.
const pointerBytes = 24

func pointersOf(epoch uint64) string { return answeredPrefix + strconv.FormatUint(epoch, 10) + "/" }

// pointers are the keys of the ciphertexts' pointers. They are short, so that many lie on a page of the store.
func pointers(epoch uint64, quorum []uint32, ciphertexts [][32]byte) []string {
	prefix := pointersOf(epoch)
	var named []byte
	for _, q := range quorum {
		//lodge:check vault/runs/quorum [run=TestThresholdLedger$] two quorums share answers
		named = binary.LittleEndian.AppendUint32(named, q)
	}
	of := len(named)
	key := []byte(prefix)
	keys := make([]string, len(ciphertexts))
	for i := range ciphertexts {
		named = append(named[:of], ciphertexts[i][:]...)
		sum := sha256.Sum256(named)
		key = base64.RawURLEncoding.AppendEncode(key[:len(prefix)], sum[:pointerBytes])
		keys[i] = string(key)
	}
	return keys
}

// encodePointer is what a pointer has: the pieces of a ciphertext that was answered, in the order of their messages.
func encodePointer(pieces []answerPiece) []byte {
	b := make([]byte, 0, len(pieces)*24)
	for i := range pieces {
		p := &pieces[i]
		b = append(b, p.run[:]...)
		for _, n := range [...]int{p.chunk, p.offset, p.first, p.count} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return b
}

func decodePointer(b []byte) (pieces []answerPiece, err error) {
	end := 0
	for len(b) > 0 {
		var p answerPiece
		if len(b) < len(p.run) {
			return nil, vaulterr.ErrCorrupt
		}
		b = b[copy(p.run[:], b):]
		for _, to := range [...]*int{&p.chunk, &p.offset, &p.first, &p.count} {
			if *to, b, err = decodeNumber(b); err != nil {
				return nil, err
			}
		}
		//lodge:check vault/runs/pointer [drop=p.first < end] [run=TestPointersAreChecked] a message
		//  has two answers
		if p.count < 1 || p.first < end {
			return nil, vaulterr.ErrCorrupt
		}
		pieces, end = append(pieces, p), p.end()
	}
	if len(pieces) == 0 {
		return nil, vaulterr.ErrCorrupt
	}
	return pieces, nil
}

// decodeNumber reads a number that no run goes beyond.
func decodeNumber(b []byte) (n int, rest []byte, err error) {
	v, size := binary.Uvarint(b)
	if size <= 0 || v > maxRunAnswer {
		return 0, nil, vaulterr.ErrCorrupt
	}
	return int(v), b[size:], nil
}

// replaced are the pieces of a ciphertext after some of a run: of a message that both have, those of the run. answered is how
// many messages have no piece in old.
func replaced(old, run []answerPiece) (now []answerPiece, answered int) {
	for i := range run {
		answered += run[i].count
	}
	now = slices.Clone(run)
	for _, o := range old {
		for i := range run { // ascending, none of which overlap
			n := &run[i]
			if n.end() <= o.first || o.end() <= n.first {
				continue
			}
			answered -= min(n.end(), o.end()) - max(n.first, o.first)
			//lodge:check vault/runs/kept [run=TestMessagesOfCiphertexts|TestLedgerOfAnyMessages] a
			//  run overwrites earlier answers before its own messages
			if o.first < n.first {
				before := o
				before.count = n.first - o.first
				now = append(now, before)
			}
			o.count = max(0, o.end()-n.end())
			o.first = n.end()
		}
		//lodge:check vault/runs/kept-behind [run=TestMessagesOfCiphertexts|TestLedgerOfAnyMessages]
		//  a run overwrites earlier answers after its own messages
		if o.count > 0 {
			now = append(now, o)
		}
	}
	slices.SortFunc(now, func(a, b answerPiece) int { return cmp.Compare(a.first, b.first) })
	return now, answered
}

// entry is what a chunk has of a ciphertext: its digest, the number of the first message, how many there are, and the answers.
type entry struct {
	Messages
	answers []byte
}

func appendEntry(b []byte, m Messages, answers []byte) []byte {
	b = append(b, m.Ciphertext[:]...)
	b = binary.AppendUvarint(b, uint64(m.First))
	b = binary.AppendUvarint(b, uint64(m.Count))
	return append(b, answers...)
}

// entryAt reads the entry at an offset of a chunk, with answers of so many bytes; next is the offset behind it.
func entryAt(chunk []byte, offset, size int) (e entry, next int, err error) {
	if offset < 0 || len(chunk)-offset < digestLen {
		return e, 0, vaulterr.ErrCorrupt
	}
	b := chunk[offset+copy(e.Ciphertext[:], chunk[offset:]):]
	for _, to := range [...]*int{&e.First, &e.Count} {
		if *to, b, err = decodeNumber(b); err != nil {
			return e, 0, err
		}
	}
	//lodge:check vault/runs/entry [drop=e.Count < 1] [run=TestPointersAreChecked] an entry holds
	//  fewer answers than messages
	if e.Count < 1 || e.Count > len(b)/size {
		return e, 0, vaulterr.ErrCorrupt
	}
	n := e.Count * size
	e.answers = b[:n]
	return e, len(chunk) - len(b) + n, nil
}

// has reports whether the answers of a piece are in the entry.
func (e *entry) has(p *answerPiece) bool { return e.First <= p.first && p.end() <= e.end() }
