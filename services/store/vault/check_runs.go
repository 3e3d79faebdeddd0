package vault

import (
	"cmp"
	"crypto/cipher"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// ledgerCheck is what a check knows of the runs of one epoch.
type ledgerCheck struct {
	*runsCheck
	tx    store.Tx
	epoch *Epoch
	aead  cipher.AEAD // with deep
	some  bool        // it has runs
	// total are the messages that its pointers have, and led those of which they lead to the answers.
	total, led uint64
}

// check: every pointer leads to an answer, every answer has a pointer, and with deep the answers say what they are to.
func (c *runsCheck) check(deep bool) error {
	byEpoch := map[uint64]*ledgerCheck{}
	for _, e := range c.epochs {
		byEpoch[e.ID] = &ledgerCheck{runsCheck: c, epoch: e}
	}
	for _, key := range slices.Sorted(maps.Keys(c.runs)) {
		r := c.runs[key]
		l := byEpoch[r.Epoch]
		if l == nil || l.epoch.Purpose != PurposeThreshold {
			c.find(key, "its epoch %d is not recorded, or for something else", r.Epoch)
			continue
		}
		l.some = true
		l.run(key, r)
	}
	for _, key := range slices.Sorted(maps.Keys(c.chunks)) {
		if c.runs[key] == nil {
			c.find(key, "is not recorded, and has answers")
		}
	}
	return c.v.store.View(func(tx store.Tx) error {
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

// runsCheck checks the ledger of threshold decryption against itself.
type runsCheck struct {
	v         *Vault
	epochs    []*Epoch
	runs      map[string]*runRecord
	chunks    map[string]int
	approvals []*Approval
	find      func(where, what string, args ...any)
}

// checkApprovals: they are of others than who asks, each once, and under an epoch that is not retired.
func (c *runsCheck) checkApprovals() {
	for _, a := range c.approvals {
		where := approvalKey(a.Digest)
		distinct := slices.Compact(slices.Sorted(slices.Values(a.By)))
		if slices.Contains(a.By, a.Client) || len(distinct) != len(a.By) || !a.Used.IsZero() && !a.approved() {
			c.find(where, "%d have approved it, of %d: some twice, or who asks, or too few for what was used", len(a.By), a.Needs)
		}
		if !slices.ContainsFunc(c.epochs, func(e *Epoch) bool { return e.ID == a.Epoch && e.State != EpochRetired }) {
			c.find(where, "its epoch %d is not recorded, or retired", a.Epoch)
		}
	}
}

// run checks a run's record against its answers.
func (l *ledgerCheck) run(key string, r *runRecord) {
	if err := l.epoch.checkQuorum(r.Quorum); err != nil {
		l.find(key, "%v", err)
	}
	want := 0
	if l.epoch.State != EpochRetired {
		want = r.Chunks
	}
	if n := l.chunks[key]; n != want {
		l.find(key, "it has %d chunks of answers, and should have %d", n, want)
	}
}

// pointers checks those of the epoch.
func (l *ledgerCheck) pointers() error {
	err := l.tx.Scan(pointersOf(l.epoch.ID), func(key string, value []byte) error {
		pieces, err := decodePointer(value)
		if err != nil {
			return nil //nolint:nilerr // it was found before
		}
		for i := range pieces {
			p := &pieces[i]
			l.total += uint64(p.count)
			//lodge:check vault/runs/check [swap=r == nil || p.chunk >= r.Chunks=>r == nil &&
			//  p.chunk < 0] [run=TestCheckOfRuns] pointers that lead nowhere go unnoticed
			if r := l.runs[runKey(l.epoch.ID, p.run)]; r == nil || p.chunk >= r.Chunks {
				l.find(key, "it points to chunk %d of run %x, which is not recorded, or has fewer", p.chunk, p.run)
			}
		}
		return nil
	})
	if err == nil && l.total != l.epoch.Answered {
		l.find(epochKey(l.epoch.ID), "%d messages are answered, and it counts %d", l.total, l.epoch.Answered)
	}
	return err
}

// deep reads the answers of the epoch.
func (l *ledgerCheck) deep() (err error) {
	if l.epoch.State == EpochRetired || !l.some {
		return nil
	}
	if l.aead, err = l.v.answersCipher(l.epoch); ofRecord(err) || errors.Is(err, vaulterr.ErrErased) {
		return nil // what is wrong with the object is found by itself
	}
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(l.runs)) {
		if r := l.runs[key]; r.Epoch == l.epoch.ID && r.AnswerBytes > 0 {
			if err := l.answers(key, r); err != nil {
				return err
			}
		}
	}
	//lodge:check vault/runs/check-led [run=TestCheckOfRuns] pointers to other ciphertexts go
	//  unnoticed
	if l.led != l.total {
		l.find(pointersOf(l.epoch.ID), "of %d of %d messages they do not lead to the answers", l.total-l.led, l.total)
	}
	return nil
}

// answers reads those of a run: the pointer of each ciphertext leads to them, or to another run.
func (l *ledgerCheck) answers(key string, r *runRecord) error {
	x := &answerReader{v: l.v, tx: l.tx, epoch: l.epoch, quorum: r.Quorum, aead: l.aead, head: r}
	count := 0
	for chunk := range r.Chunks {
		err := x.open(chunk)
		var entries []entryIn
		if err == nil {
			entries, err = entriesOf(x.plain, chunk, r.AnswerBytes)
		}
		if err != nil {
			if !ofRecord(err) {
				return err
			}
			l.find(key, "%v", err)
			continue
		}
		digests := make([][32]byte, len(entries))
		for i := range entries {
			digests[i] = entries[i].Ciphertext
			count += entries[i].Count
		}
		places := pointers(l.epoch.ID, r.Quorum, digests)
		held, err := l.tx.GetAll(places)
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		for i, b := range held {
			led, all := entries[i].led(r.Run, b)
			l.led += uint64(led)
			//lodge:check vault/runs/check-all [run=TestCheckOfRuns] answers without a pointer go
			//  unnoticed
			if !all {
				l.find(places[i], "does not point to what is at %d of chunk %d of run %x, nor to another run", entries[i].offset, chunk, r.Run)
			}
		}
	}
	//lodge:check vault/runs/check-count [run=TestCheckOfRuns] missing answers of a run go unnoticed
	if count != r.Count {
		l.find(key, "it has answers for %d messages, and counts %d", count, r.Count)
	}
	return nil
}

// entryIn is an entry in a chunk.
type entryIn struct {
	entry
	chunk, offset int
}

// entriesOf are those of a chunk.
func entriesOf(plain []byte, chunk, size int) (list []entryIn, err error) {
	for offset := 0; offset < len(plain); {
		e, next, err := entryAt(plain, offset, size)
		if err != nil {
			return nil, err
		}
		list = append(list, entryIn{e, chunk, offset})
		offset = next
	}
	return list, nil
}

// led is for how many messages of the entry, of a run, a pointer leads to it; all says that it leads elsewhere for none of the
// others, another run aside.
func (e *entryIn) led(run RunID, pointer []byte) (n int, all bool) {
	pieces, err := decodePointer(pointer)
	if err != nil {
		return 0, false
	}
	others := 0
	for i := range pieces {
		p := &pieces[i]
		here := min(p.end(), e.end()) - max(p.first, e.First)
		switch {
		case p.run == run && p.chunk == e.chunk && p.offset == e.offset:
			if !e.has(p) {
				return n, false
			}
			n += p.count
		case p.run != run && here > 0:
			others += here
		}
	}
	return n, n+others == e.Count
}
