package ledger

import (
	"cmp"
	"crypto/cipher"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// ledgerCheck collects the state of a check for one epoch.
type ledgerCheck struct {
	*RunsCheck
	tx    store.Tx
	epoch *keys.Epoch
	aead  cipher.AEAD // with deep
	some  bool        // it has runs
	// total are the messages that its pointers have, and led those of which they lead to the
	// answers.
	total, led uint64
}

// Check verifies that every pointer leads to an answer and every answer has a pointer, and with
// deep that the answers name their ciphertexts.
func (c *RunsCheck) Check(deep bool) error {
	byEpoch := map[uint64]*ledgerCheck{}
	for _, e := range c.Epochs {
		byEpoch[e.ID] = &ledgerCheck{RunsCheck: c, epoch: e}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Runs)) {
		r := c.Runs[key]
		l := byEpoch[r.Epoch]
		if l == nil || l.epoch.Purpose != keys.PurposeThreshold {
			c.Find(key, "its epoch %d is not recorded, or for something else", r.Epoch)
			continue
		}
		l.some = true
		l.run(key, r)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Chunks)) {
		if c.Runs[key] == nil {
			c.Find(key, "is not recorded, and has answers")
		}
	}
	return c.V.Backend.View(func(tx store.Tx) error {
		for _, e := range slices.SortedFunc(maps.Values(byEpoch), func(a, b *ledgerCheck) int { return cmp.Compare(a.epoch.ID, b.epoch.ID) }) {
			e.tx = tx
			if err := e.pointers(); err != nil {
				return err
			}
			if deep {
				if err := e.deep(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// RunsCheck checks the ledger of threshold decryption against itself.
type RunsCheck struct {
	V         *Ledger
	Epochs    []*keys.Epoch
	Runs      map[string]*RunRecord
	Chunks    map[string]int
	Approvals []*Approval
	Find      func(where, what string, args ...any)
}

// CheckApprovals: they are of others than who asks, each once, and under an epoch that is not
// retired.
func (c *RunsCheck) CheckApprovals() {
	for _, a := range c.Approvals {
		where := ApprovalKey(a.Digest)
		distinct := slices.Compact(slices.Sorted(slices.Values(a.By)))
		if slices.Contains(a.By, a.Client) || len(distinct) != len(a.By) || !a.Used.IsZero() && !a.approved() {
			c.Find(where, "%d clients have approved it, of %d needed: an approver is listed twice, is the requester, or approvals were missing when it was used", len(a.By), a.Needs)
		}
		if !slices.ContainsFunc(c.Epochs, func(e *keys.Epoch) bool { return e.ID == a.Epoch && e.State != keys.EpochRetired }) {
			c.Find(where, "its epoch %d is not recorded, or retired", a.Epoch)
		}
	}
}

// run checks a run's record against its answers.
func (l *ledgerCheck) run(key string, r *RunRecord) {
	if err := l.epoch.CheckQuorum(r.Quorum); err != nil {
		l.Find(key, "%v", err)
	}
	want := 0
	if l.epoch.State != keys.EpochRetired {
		want = r.Chunks
	}
	if n := l.Chunks[key]; n != want {
		l.Find(key, "it has %d chunks of answers, and should have %d", n, want)
	}
}

// pointers checks those of the epoch.
func (l *ledgerCheck) pointers() error {
	err := l.tx.Scan(pointersOf(l.epoch.ID), func(key string, value []byte) error {
		pieces, err := DecodePointer(value)
		if err != nil {
			return nil //nolint:nilerr // it was found before
		}
		for i := range pieces {
			p := &pieces[i]
			l.total += uint64(p.Count)
			//lodge:check vault/runs/check [tests=./services/store/vault] [swap=r == nil || p.Chunk
			//  >= r.Chunks=>r == nil && p.Chunk < 0] [run=TestCheckOfRuns] pointers that lead
			//  nowhere go unnoticed
			if r := l.Runs[RunKey(l.epoch.ID, p.Run)]; r == nil || p.Chunk >= r.Chunks {
				l.Find(key, "it points to chunk %d of run %x, which is not recorded, or has fewer", p.Chunk, p.Run)
			}
		}
		return nil
	})
	if err == nil && l.total != l.epoch.Answered {
		l.Find(keys.EpochKey(l.epoch.ID), "%d messages are answered, and it counts %d", l.total, l.epoch.Answered)
	}
	return err
}

// deep reads the answers of the epoch.
func (l *ledgerCheck) deep() (err error) {
	if l.epoch.State == keys.EpochRetired || !l.some {
		return nil
	}
	if l.aead, err = l.V.AnswersCipher(l.epoch); seal.OfRecord(err) || errors.Is(err, vaulterr.ErrErased) {
		return nil // damage of the object is reported by the check of objects
	}
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(l.Runs)) {
		if r := l.Runs[key]; r.Epoch == l.epoch.ID && r.AnswerBytes > 0 {
			if err := l.answers(key, r); err != nil {
				return err
			}
		}
	}
	//lodge:check vault/runs/check-led [tests=./services/store/vault] [run=TestCheckOfRuns] pointers
	//  to other ciphertexts go unnoticed
	if l.led != l.total {
		l.Find(pointersOf(l.epoch.ID), "of %d of %d messages they do not lead to the answers", l.total-l.led, l.total)
	}
	return nil
}

// answers reads those of a run: the pointer of each ciphertext leads to them, or to another run.
func (l *ledgerCheck) answers(key string, r *RunRecord) error {
	x := &answerReader{v: l.V, tx: l.tx, epoch: l.epoch, quorum: r.Quorum, aead: l.aead, head: r}
	count := 0
	for chunk := range r.Chunks {
		err := x.open(chunk)
		var entries []entryIn
		if err == nil {
			entries, err = entriesOf(x.plain, chunk, r.AnswerBytes)
		}
		if err != nil {
			if !seal.OfRecord(err) {
				return err
			}
			l.Find(key, "%v", err)
			continue
		}
		digests := make([][32]byte, len(entries))
		for i := range entries {
			digests[i] = entries[i].Ciphertext
			count += entries[i].Count
		}
		places := Pointers(l.epoch.ID, r.Quorum, digests)
		held, err := l.tx.GetAll(places)
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		for i, b := range held {
			led, all := entries[i].led(r.Run, b)
			l.led += uint64(led)
			//lodge:check vault/runs/check-all [tests=./services/store/vault] [run=TestCheckOfRuns]
			//  answers without a pointer go unnoticed
			if !all {
				l.Find(places[i], "does not point to offset %d of chunk %d of run %x, nor to another run", entries[i].offset, chunk, r.Run)
			}
		}
	}
	//lodge:check vault/runs/check-count [tests=./services/store/vault] [run=TestCheckOfRuns]
	//  missing answers of a run go unnoticed
	if count != r.Count {
		l.Find(key, "it has answers for %d messages, and counts %d", count, r.Count)
	}
	return nil
}

// entryIn is an entry in a chunk.
type entryIn struct {
	Entry
	chunk, offset int
}

// entriesOf are those of a chunk.
func entriesOf(plain []byte, chunk, size int) (list []entryIn, err error) {
	for offset := 0; offset < len(plain); {
		e, next, err := EntryAt(plain, offset, size)
		if err != nil {
			return nil, err
		}
		list = append(list, entryIn{e, chunk, offset})
		offset = next
	}
	return list, nil
}

// led is for how many messages of the entry, of a run, a pointer leads to it; all says that it
// leads elsewhere for none of the others, another run aside.
func (e *entryIn) led(run RunID, pointer []byte) (n int, all bool) {
	pieces, err := DecodePointer(pointer)
	if err != nil {
		return 0, false
	}
	others := 0
	for i := range pieces {
		p := &pieces[i]
		here := min(p.end(), e.End()) - max(p.First, e.First)
		switch {
		case p.Run == run && p.Chunk == e.chunk && p.Offset == e.offset:
			if !e.has(p) {
				return n, false
			}
			n += p.Count
		case p.Run != run && here > 0:
			others += here
		}
	}
	return n, n+others == e.Count
}
