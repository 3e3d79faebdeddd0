package ledger

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Decryption with flooding under a threshold epoch. One quorum answers a ciphertext, for one
// client, under any epoch of its keys, because answers with fresh noise or from other parties
// reveal more about the key than one answer does. The ledger counts every run before it begins, and
// has an entry for each ciphertext. The entry goes through three states:
//
//	begun      a run may compute this party's answer; it is counted, and no answer was sent
//	recorded   the answer is durable, and was not sent
//	released   the answer may have been sent
//
// The same quorum and client may begin again until the answer is released, which counts as another
// run. A released answer is final.

// QuorumError names the quorum that a ciphertext is decrypted with.
type QuorumError struct{ Quorum []uint32 }

func (e *QuorumError) Error() string {
	return fmt.Sprintf("%v, by the holders %v", vaulterr.ErrQuorum, e.Quorum)
}

// Unwrap returns ErrQuorum.
func (e *QuorumError) Unwrap() error { return vaulterr.ErrQuorum }

// FloodRun is a run of decryption with flooding that this party takes part in.
type FloodRun struct {
	Epoch   uint64
	Quorum  []uint32 // numbers of members
	Run     RunID
	Client  string
	Digests [][32]byte // of the ciphertexts, each once
}

// Flood is the state of a ciphertext. It is zero if no run was begun for the ciphertext.
type Flood struct {
	Run      RunID
	Answer   []byte // nil where none is recorded
	Released bool
}

func floodingKey(epoch uint64, digest [32]byte) string {
	//lodge:check vault/flooding/key [tests=./services/store/vault] [swap=digest=>[32]byte{}]
	//  [run=TestFlooding$] all ciphertexts share a place in the flooding ledger
	return fmt.Sprintf("%s%020d/%x/flooding", LedgerPrefix, epoch, digest)
}

func (r *FloodRun) check() error {
	//lodge:check vault/flooding/client [tests=./services/store/vault] [drop=r.Client == ""]
	//  [run=TestFlooding$] a flood has no client
	if r.Client == "" || len(r.Quorum) == 0 || len(r.Digests) == 0 || r.Run == (RunID{}) {
		return fmt.Errorf("%w: a run with flooding without a client, a quorum, ciphertexts or an id", vaulterr.ErrRange)
	}
	seen := map[[32]byte]bool{}
	for _, d := range r.Digests {
		//lodge:check vault/flooding/twice [tests=./services/store/vault] [run=TestFlooding$] a
		//  ciphertext that is flooded twice in a run counts once
		if seen[d] {
			return fmt.Errorf("%w: a ciphertext is twice in a run", vaulterr.ErrRange)
		}
		seen[d] = true
	}
	return nil
}

// Floods returns the state of ciphertexts for their client and quorum. The error is ErrDelivered
// for another client, a *QuorumError for another quorum, and ErrSpent if the allowance is smaller
// than the number of unanswered ciphertexts: then a quorum finds out before any member has begun.
// It ignores the id of the run.
func (v *Ledger) Floods(r FloodRun) ([]Flood, error) {
	var out []Flood
	objects := make([]string, len(r.Digests))
	err := v.Backend.View(func(tx store.Tx) error {
		out = make([]Flood, len(r.Digests))
		epoch, others, err := v.floods(tx, &r)
		more := 0
		for i := 0; i < len(r.Digests) && err == nil; i++ {
			var e *LedgerEntry
			if e, err = v.flood(tx, &r, r.Digests[i], others); e != nil {
				out[i], objects[i] = Flood{Run: e.Run, Released: e.Released}, e.Object
			}
			if objects[i] == "" {
				more++
			}
		}
		//lodge:check vault/flooding/foreseen [tests=./services/threshold]
		//  [run=TestFloodingIsSpentByRestore] a member of a quorum starts a flood that another must
		//  reject
		if err == nil && more > 0 {
			err = keys.MayFlood(epoch, others, more)
		}
		return err
	})
	for i, name := range objects {
		if err != nil {
			return nil, err
		}
		if name != "" {
			out[i].Answer, err = v.readObject(name)
		}
	}
	return out, err
}

func (v *Ledger) readObject(name string) ([]byte, error) {
	in, err := v.OpenObject(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

// floods returns the epoch of a run, and the other epochs of the same keys.
func (v *Ledger) floods(tx store.Tx, r *FloodRun) (e *keys.Epoch, others []*keys.Epoch, err error) {
	if e, err = v.answers(tx, r.Epoch, keys.PurposeThreshold); err != nil {
		return nil, nil, err
	}
	//lodge:check vault/flooding/mine [tests=./services/store/vault] [swap=v.keys.CheckMine(e,
	//  r.Quorum)=>error(nil)] [run=TestFlooding$] a flood is recorded of a quorum without this
	//  party
	if err := v.keys.CheckMine(e, r.Quorum); err != nil {
		return nil, nil, err
	}
	all, err := v.keys.SameKeys(tx, e)
	return e, all[1:], err
}

// flood returns the entry of a ciphertext, or nil, and an error if the entry belongs to another
// client or quorum.
func (v *Ledger) flood(tx store.Tx, r *FloodRun, digest [32]byte, others []*keys.Epoch) (*LedgerEntry, error) {
	for _, x := range others {
		e, err := seal.Get[LedgerEntry](v.Store, tx, floodingKey(x.ID, digest))
		if err == nil {
			return nil, fmt.Errorf("%w, under epoch %d", &QuorumError{e.Quorum}, x.ID)
		}
		if !errors.Is(err, vaulterr.ErrNotFound) {
			return nil, err
		}
	}
	e, err := seal.Get[LedgerEntry](v.Store, tx, floodingKey(r.Epoch, digest))
	switch {
	case errors.Is(err, vaulterr.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	//lodge:check vault/flooding/whose [tests=./services/store/vault] [run=TestFlooding$] two
	//  clients have one ciphertext flooded
	case e.Client != r.Client:
		return nil, fmt.Errorf("%w: a ciphertext of this run", vaulterr.ErrDelivered)
	//lodge:check vault/flooding/quorum [tests=./services/store/vault] [run=TestFlooding$] two
	//  quorums flood one ciphertext
	case !slices.Equal(e.Quorum, r.Quorum):
		return nil, &QuorumError{e.Quorum}
	}
	return e, nil
}

// BeginFloods durably records that a run answers for ciphertexts, before this party uses its key
// share, and counts them even if the run fails. The error is ErrSpent if the allowance is too
// small, ErrReleased if an answer has left, and otherwise as for Floods.
func (v *Ledger) BeginFloods(r FloodRun) error {
	if err := r.check(); err != nil {
		return err
	}
	var objects []string // of answers that never left
	err := v.Advance(func(tx store.Tx) error {
		objects = nil
		epoch, others, err := v.floods(tx, &r)
		if err != nil {
			return err
		}
		for _, d := range r.Digests {
			e, err := v.flood(tx, &r, d, others)
			if err != nil {
				return err
			}
			//lodge:check vault/flooding/released [tests=./services/store/vault] [run=TestFlooding]
			//  an answer that has left the party is made again with fresh flooding
			if e != nil && e.Released {
				return fmt.Errorf("%w: a ciphertext of this run", vaulterr.ErrReleased)
			}
			if e != nil && e.Object != "" {
				objects = append(objects, e.Object)
			}
			entry := &LedgerEntry{Client: r.Client, When: v.Clock().UTC(), Quorum: r.Quorum, Run: r.Run}
			if err := seal.Put(v.Store, tx, floodingKey(r.Epoch, d), entry); err != nil {
				return err
			}
		}
		//lodge:check vault/flooding/limit [tests=./services/store/vault] [swap=len(r.Digests)=>0]
		//  [run=TestFlooding] keys flood more often than their set allows
		if err := keys.MayFlood(epoch, others, len(r.Digests)); err != nil {
			return err
		}
		//lodge:check vault/flooding/count [tests=./services/store/vault] [run=TestFlooding] floods
		//  are not counted before they are made
		epoch.Decrypted += uint64(len(r.Digests))
		return seal.Put(v.Store, tx, keys.EpochKey(epoch.ID), epoch)
	})
	return v.EraseAfter(err, objects)
}

// RecordFloods makes the answers of a run that was begun durable, all or none. This does
// not release them.
func (v *Ledger) RecordFloods(r FloodRun, answers [][]byte, also ...seal.Also) error {
	if err := r.check(); err != nil {
		return err
	}
	if len(answers) != len(r.Digests) {
		return fmt.Errorf("%w: %d answers for %d ciphertexts", vaulterr.ErrRange, len(answers), len(r.Digests))
	}
	var written []*seal.ObjectWriter
	recorded := false
	defer func() {
		for _, w := range written {
			if !recorded { // nor can have been: then the next start erases it
				w.Abort()
			}
		}
	}()
	for i, d := range r.Digests {
		w, err := v.CreateObject(seal.ObjectName("answer", floodingKey(r.Epoch, d)+"/"+rand.Text()))
		if err != nil {
			return err
		}
		written = append(written, w)
		if _, err := w.Write(answers[i]); err != nil {
			return err
		}
		if err := w.Commit(); err != nil {
			return err
		}
	}
	err := v.changeFloods(&r, func(i int, e *LedgerEntry) error {
		if e.Object != "" || e.Released {
			return fmt.Errorf("%w: this run is recorded", vaulterr.ErrExists)
		}
		e.Object = written[i].Name
		return nil
	}, also)
	recorded = err == nil || errors.Is(err, store.ErrUncertain)
	return err
}

// ReleaseFloods records durably that this party may send the recorded answers of the runs in held.
func (v *Ledger) ReleaseFloods(r FloodRun, held []Flood) error {
	if len(held) != len(r.Digests) {
		return fmt.Errorf("%w: %d answers for %d ciphertexts", vaulterr.ErrRange, len(held), len(r.Digests))
	}
	r.Run = RunID{}
	return v.changeFloods(&r, func(i int, e *LedgerEntry) error {
		//lodge:check vault/flooding/unrecorded [tests=./services/store/vault] [drop=e.Object == ""]
		//  [run=TestFloodingThatEnds] an answer is released before it is recorded
		//lodge:check vault/flooding/another-run [tests=./services/store/vault] [drop=e.Run !=
		//  held[i].Run] [run=TestFloodingThatEnds] another answer than the recorded one is released
		if e.Object == "" || e.Run != held[i].Run {
			return fmt.Errorf("%w: another answer of this ciphertext is recorded, or none", vaulterr.ErrState)
		}
		e.Released = true
		return nil
	}, nil)
}

// changeFloods changes the entries of a run's ciphertexts, which must be of the run unless it has
// no id.
func (v *Ledger) changeFloods(r *FloodRun, change func(i int, e *LedgerEntry) error, also []seal.Also) error {
	return v.Advance(func(tx store.Tx) error {
		_, others, err := v.floods(tx, r)
		if err == nil {
			//lodge:check vault/approval/use-flooding [tests=./services/store/vault]
			//  [run=TestApprovalInOneStep] a flooded answer is given without its approval
			err = seal.DoAll(tx, also)
		}
		for i := 0; i < len(r.Digests) && err == nil; i++ {
			var e *LedgerEntry
			e, err = v.flood(tx, r, r.Digests[i], others)
			//lodge:check vault/flooding/run [tests=./services/store/vault] [drop=r.Run != RunID{}
			//  && e.Run != r.Run] [run=TestFloodingThatEnds] an answer is recorded for another run
			//  than was begun
			if err == nil && (e == nil || r.Run != RunID{} && e.Run != r.Run) {
				err = fmt.Errorf("%w: this run was not begun, or another one since", vaulterr.ErrState)
			}
			if err == nil {
				err = change(i, e)
			}
			if err == nil {
				err = seal.Put(v.Store, tx, floodingKey(r.Epoch, r.Digests[i]), e)
			}
		}
		return err
	})
}
