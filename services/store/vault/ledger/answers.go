package ledger

import (
	"bytes"
	"cmp"
	"crypto/cipher"
	"fmt"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Answer is a stored answer for messages of a ciphertext, under an epoch and with a quorum, from
// one run.
type Answer struct {
	First, Count int // messages
	Run          RunID
	Client       string
	When         time.Time
	Bytes        []byte // of all messages, in order; nil where the epoch is retired
}

// ThresholdAnswers returns the stored answers for messages of ciphertexts under an epoch, with a
// quorum: for each element of the list its answers in the order of the messages, without those that
// were never answered.
func (v *Ledger) ThresholdAnswers(epoch uint64, quorum []uint32, list []Messages) ([][]Answer, error) {
	var out [][]Answer
	digests := make([][32]byte, len(list))
	for i := range list {
		digests[i] = list[i].Ciphertext
	}
	places := Pointers(epoch, quorum, digests)
	err := v.Backend.View(func(tx store.Tx) error {
		out = make([][]Answer, len(list))
		e, err := v.keys.EpochIn(tx, epoch)
		if err != nil {
			return err
		}
		if e.State != keys.EpochRetired {
			//lodge:check vault/runs/looked-up [tests=./services/store/vault]
			//  [run=TestQuarantineOfAnswers|TestThresholdLedgerRefuses] a store that may be an old
			//  copy, or is of another roster, answers
			if e, err = v.answers(tx, epoch, keys.PurposeThreshold); err != nil {
				return err
			}
		}
		held, err := tx.GetAll(places)
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		x := &answerReader{v: v, tx: tx, epoch: e, quorum: quorum}
		defer x.wipe()
		return x.read(held, list, out)
	})
	if err != nil {
		for _, answers := range out {
			for _, a := range answers {
				clear(a.Bytes)
			}
		}
		return nil, err
	}
	return out, nil
}

// answerReader reads answers through their pointers. It has one run and one chunk of it open at a
// time.
type answerReader struct {
	v      *Ledger
	tx     store.Tx
	epoch  *keys.Epoch
	quorum []uint32
	aead   cipher.AEAD
	head   *RunRecord
	chunk  int
	plain  []byte
}

// wanted is a piece with requested answers, for one element of a list.
type wanted struct {
	AnswerPiece
	at int
}

func (x *answerReader) read(held [][]byte, list []Messages, out [][]Answer) (err error) {
	var all []wanted
	for i, b := range held {
		if b == nil {
			continue
		}
		pieces, err := DecodePointer(b)
		if err != nil {
			return err
		}
		for _, p := range pieces {
			if p.First < list[i].End() && list[i].First < p.end() {
				all = append(all, wanted{p, i})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b wanted) int {
		return cmp.Or(bytes.Compare(a.Run[:], b.Run[:]), a.Chunk-b.Chunk, a.Offset-b.Offset)
	})
	for i := range all {
		w := &all[i]
		a, err := x.answer(&w.AnswerPiece, &list[w.at])
		if err != nil {
			return err
		}
		out[w.at] = append(out[w.at], a)
	}
	for _, answers := range out {
		slices.SortFunc(answers, func(a, b Answer) int { return a.First - b.First })
	}
	return nil
}

// answer returns the answers of a piece for some messages.
func (x *answerReader) answer(p *AnswerPiece, m *Messages) (Answer, error) {
	if x.head == nil || x.head.Run != p.Run {
		head, err := seal.Get[RunRecord](x.v.Store, x.tx, RunKey(x.epoch.ID, p.Run))
		if err != nil {
			return Answer{}, fmt.Errorf("%w: run %x", err, p.Run)
		}
		x.wipe()
		x.head = head
	}
	h := x.head
	//lodge:check vault/runs/of-this [tests=./services/store/vault] [drop=h.Run != p.Run]
	//  [drop=h.Epoch != x.epoch.ID] [drop=!slices.Equal(h.Quorum, x.quorum)] [run=TestCheckOfRuns]
	//  a pointer leads to the answer of another quorum or run
	if h.Run != p.Run || h.Epoch != x.epoch.ID || !slices.Equal(h.Quorum, x.quorum) || p.Chunk >= h.Chunks || h.AnswerBytes < 1 {
		return Answer{}, fmt.Errorf("%w: run %x is not of this", vaulterr.ErrCorrupt, p.Run)
	}
	first, end := max(p.First, m.First), min(p.end(), m.End())
	out := Answer{First: first, Count: end - first, Run: p.Run, Client: h.Client, When: h.When}
	if x.epoch.State == keys.EpochRetired {
		return out, nil
	}
	if err := x.open(p.Chunk); err != nil {
		return Answer{}, err
	}
	e, _, err := EntryAt(x.plain, p.Offset, h.AnswerBytes)
	//lodge:check vault/runs/digest [tests=./services/store/vault] [drop=e.Ciphertext !=
	//  m.Ciphertext] [run=TestCheckOfRuns] a wrong pointer gives the answer to another ciphertext
	//lodge:check vault/runs/piece [tests=./services/store/vault] [drop=!e.has(p)]
	//  [run=TestCheckOfRuns] a wrong pointer gives the answer to another message
	if err != nil || e.Ciphertext != m.Ciphertext || !e.has(p) {
		return Answer{}, fmt.Errorf("%w: run %x has something else at %d of %d", vaulterr.ErrCorrupt, p.Run, p.Offset, p.Chunk)
	}
	out.Bytes = bytes.Clone(e.Answers[(first-e.First)*h.AnswerBytes : (end-e.First)*h.AnswerBytes])
	return out, nil
}

// wipe lets go of the chunk.
func (x *answerReader) wipe() {
	clear(x.plain)
	x.plain = nil
}

// open has a chunk of the run in hand.
func (x *answerReader) open(chunk int) (err error) {
	if x.plain != nil && x.chunk == chunk {
		return nil
	}
	if x.aead == nil {
		if x.aead, err = x.v.AnswersCipher(x.epoch); err != nil {
			return err
		}
	}
	key := ChunkKey(x.epoch.ID, x.head.Run, chunk)
	sealed, err := x.tx.Get(key)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	x.wipe()
	if x.plain, err = seal.Unseal(x.aead, key, sealed); err != nil {
		return fmt.Errorf("%w: %s", err, key)
	}
	x.chunk = chunk
	return nil
}
