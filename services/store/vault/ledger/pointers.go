package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Messages are some of those that a ciphertext has, next to each other: an LWE ciphertext has one,
// a ring ciphertext one in each coefficient.
type Messages struct {
	Ciphertext   [32]byte // its digest
	First, Count int
}

// End is the message behind the last.
func (m *Messages) End() int { return m.First + m.Count }

// AnswerPiece is where the answers for some messages of a ciphertext are: in an entry of a chunk of
// a run, which may have answers for others as well.
type AnswerPiece struct {
	First, Count int
	Run          RunID
	Chunk        int
	Offset       int // of the entry, in the chunk
}

func (p *AnswerPiece) end() int { return p.First + p.Count }

// pointerBytes is how much of its hash names a ciphertext in the key of its pointer. An answer says
// what ciphertext it is for: two with one key could not be confused.
const pointerBytes = 24

func pointersOf(epoch uint64) string { return AnsweredPrefix + strconv.FormatUint(epoch, 10) + "/" }

// Pointers are the keys of the ciphertexts' pointers. They are short, so that many lie on a page of
// the store.
func Pointers(epoch uint64, quorum []uint32, ciphertexts [][32]byte) []string {
	prefix := pointersOf(epoch)
	var named []byte
	for _, q := range quorum {
		//lodge:check vault/runs/quorum [tests=./services/store/vault] [run=TestThresholdLedger$]
		//  two quorums share answers
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

// EncodePointer encodes the pieces of an answered ciphertext, in the order of their messages.
func EncodePointer(pieces []AnswerPiece) []byte {
	b := make([]byte, 0, len(pieces)*24)
	for i := range pieces {
		p := &pieces[i]
		b = append(b, p.Run[:]...)
		for _, n := range [...]int{p.Chunk, p.Offset, p.First, p.Count} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return b
}

func DecodePointer(b []byte) (pieces []AnswerPiece, err error) {
	end := 0
	for len(b) > 0 {
		var p AnswerPiece
		if len(b) < len(p.Run) {
			return nil, vaulterr.ErrCorrupt
		}
		b = b[copy(p.Run[:], b):]
		for _, to := range [...]*int{&p.Chunk, &p.Offset, &p.First, &p.Count} {
			if *to, b, err = decodeNumber(b); err != nil {
				return nil, err
			}
		}
		//lodge:check vault/runs/pointer [tests=./services/store/vault] [drop=p.First < end]
		//  [run=TestPointersAreChecked] a message has two answers
		if p.Count < 1 || p.First < end {
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

// replaced are the pieces of a ciphertext after some of a run: of a message that both have, those
// of the run. answered is how many messages have no piece in old.
func replaced(old, run []AnswerPiece) (now []AnswerPiece, answered int) {
	for i := range run {
		answered += run[i].Count
	}
	now = slices.Clone(run)
	for _, o := range old {
		for i := range run { // ascending, none of which overlap
			n := &run[i]
			if n.end() <= o.First || o.end() <= n.First {
				continue
			}
			answered -= min(n.end(), o.end()) - max(n.First, o.First)
			//lodge:check vault/runs/kept [tests=./services/store/vault]
			//  [run=TestMessagesOfCiphertexts|TestLedgerOfAnyMessages] a run overwrites earlier
			//  answers before its own messages
			if o.First < n.First {
				before := o
				before.Count = n.First - o.First
				now = append(now, before)
			}
			o.Count = max(0, o.end()-n.end())
			o.First = n.end()
		}
		//lodge:check vault/runs/kept-behind [tests=./services/store/vault]
		//  [run=TestMessagesOfCiphertexts|TestLedgerOfAnyMessages] a run overwrites earlier answers
		//  after its own messages
		if o.Count > 0 {
			now = append(now, o)
		}
	}
	slices.SortFunc(now, func(a, b AnswerPiece) int { return cmp.Compare(a.First, b.First) })
	return now, answered
}

// Entry is a ciphertext's part of a chunk: its digest, the number of the first message, the count,
// and the answers.
type Entry struct {
	Messages
	Answers []byte
}

func AppendEntry(b []byte, m Messages, answers []byte) []byte {
	b = append(b, m.Ciphertext[:]...)
	b = binary.AppendUvarint(b, uint64(m.First))
	b = binary.AppendUvarint(b, uint64(m.Count))
	return append(b, answers...)
}

// EntryAt reads the entry at an offset of a chunk, with answers of size bytes; next is the offset
// behind it.
func EntryAt(chunk []byte, offset, size int) (e Entry, next int, err error) {
	if offset < 0 || len(chunk)-offset < DigestLen {
		return e, 0, vaulterr.ErrCorrupt
	}
	b := chunk[offset+copy(e.Ciphertext[:], chunk[offset:]):]
	for _, to := range [...]*int{&e.First, &e.Count} {
		if *to, b, err = decodeNumber(b); err != nil {
			return e, 0, err
		}
	}
	//lodge:check vault/runs/entry [tests=./services/store/vault] [drop=e.Count < 1]
	//  [run=TestPointersAreChecked] an entry holds fewer answers than messages
	if e.Count < 1 || e.Count > len(b)/size {
		return e, 0, vaulterr.ErrCorrupt
	}
	n := e.Count * size
	e.Answers = b[:n]
	return e, len(chunk) - len(b) + n, nil
}

// has reports whether the answers of a piece are in the entry.
func (e *Entry) has(p *AnswerPiece) bool { return e.First <= p.First && p.end() <= e.End() }
