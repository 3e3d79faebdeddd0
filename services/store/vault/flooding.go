package vault

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Also is what a call does besides, in its transaction: both become durable, or neither, and the call is refused where this
// is.
type Also struct {
	do func(store.Tx) error
}

func alsoDo(tx store.Tx, also []Also) error {
	for _, a := range also {
		if err := a.do(tx); err != nil {
			return err
		}
	}
	return nil
}

// Decryption with flooding under a threshold epoch. A ciphertext is answered by one quorum, for one client, under whatever
// epoch of its keys, and every run that answers for it is counted before it begins: fresh noise, or other parties, tell more
// of the key than one answer does. So of each ciphertext there is an entry in the ledger, which goes through three steps:
//
//	begun      a run may compute this party's answer; it is counted, and nothing has left
//	recorded   the answer is durable, and has not left
//	released   the answer may have left
//
// What has not left may be begun again, by the same quorum and client, and counts once more. What was released is what this
// party says for ever.

// QuorumError names the quorum that a ciphertext is decrypted with.
type QuorumError struct{ Quorum []uint32 }

func (e *QuorumError) Error() string { return fmt.Sprintf("%v: %v", vaulterr.ErrQuorum, e.Quorum) }

// Unwrap gives ErrQuorum.
func (e *QuorumError) Unwrap() error { return vaulterr.ErrQuorum }

// FloodRun is a run of decryption with flooding that this party takes part in.
type FloodRun struct {
	Epoch   uint64
	Quorum  []uint32 // numbers of members
	Run     RunID
	Client  string
	Digests [][32]byte // of the ciphertexts, each once
}

// Flood is what there is of a ciphertext: nothing of one that no run was begun for.
type Flood struct {
	Run      RunID
	Answer   []byte // nil where none is recorded
	Released bool
}

func floodingKey(epoch uint64, digest [32]byte) string {
	//lodge:check vault/flooding/key [swap=digest=>[32]byte{}] [run=TestFlooding$] all ciphertexts
	//  share a place in the flooding ledger
	return fmt.Sprintf("%s%020d/%x/flooding", ledgerPrefix, epoch, digest)
}

func (r *FloodRun) check() error {
	//lodge:check vault/flooding/client [drop=r.Client == ""] [run=TestFlooding$] a flood has no
	//  client
	if r.Client == "" || len(r.Quorum) == 0 || len(r.Digests) == 0 || r.Run == (RunID{}) {
		return fmt.Errorf("%w: a run with flooding without a client, a quorum, ciphertexts or an id", vaulterr.ErrRange)
	}
	seen := map[[32]byte]bool{}
	for _, d := range r.Digests {
		//lodge:check vault/flooding/twice [run=TestFlooding$] a ciphertext that is flooded twice in
		//  a run counts once
		if seen[d] {
			return fmt.Errorf("%w: a ciphertext is twice in a run", vaulterr.ErrRange)
		}
		seen[d] = true
	}
	return nil
}

// Floods gives what there is of ciphertexts, to the client and the quorum that they are decrypted with: for another client
// the error is ErrDelivered, for another quorum a *QuorumError, and ErrSpent if the keys do not answer for so many as have no
// answer: then a quorum finds out before any of its members has begun. The run's id is not looked at.
func (v *Vault) Floods(r FloodRun) ([]Flood, error) {
	var out []Flood
	objects := make([]string, len(r.Digests))
	err := v.store.View(func(tx store.Tx) error {
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
			err = mayFlood(epoch, others, more)
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

func (v *Vault) readObject(name string) ([]byte, error) {
	in, err := v.open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

// floods gives the epoch of a run, and the other epochs of the same keys.
func (v *Vault) floods(tx store.Tx, r *FloodRun) (e *Epoch, others []*Epoch, err error) {
	if e, err = v.answers(tx, r.Epoch, PurposeThreshold); err != nil {
		return nil, nil, err
	}
	//lodge:check vault/flooding/mine [swap=v.checkMine(e, r.Quorum)=>error(nil)]
	//  [run=TestFlooding$] a flood is recorded of a quorum without this party
	if err := v.checkMine(e, r.Quorum); err != nil {
		return nil, nil, err
	}
	all, err := v.sameKeys(tx, e)
	return e, all[1:], err
}

// flood gives the entry of a ciphertext, nil if there is none, and refuses one that is another client's or quorum's.
func (v *Vault) flood(tx store.Tx, r *FloodRun, digest [32]byte, others []*Epoch) (*LedgerEntry, error) {
	for _, x := range others {
		e, err := get[LedgerEntry](v, tx, floodingKey(x.ID, digest))
		if err == nil {
			return nil, fmt.Errorf("%w, under epoch %d", &QuorumError{e.Quorum}, x.ID)
		}
		if !errors.Is(err, vaulterr.ErrNotFound) {
			return nil, err
		}
	}
	e, err := get[LedgerEntry](v, tx, floodingKey(r.Epoch, digest))
	switch {
	case errors.Is(err, vaulterr.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	//lodge:check vault/flooding/whose [run=TestFlooding$] two clients have one ciphertext flooded
	case e.Client != r.Client:
		return nil, fmt.Errorf("%w: a ciphertext of this run", vaulterr.ErrDelivered)
	//lodge:check vault/flooding/quorum [run=TestFlooding$] two quorums flood one ciphertext
	case !slices.Equal(e.Quorum, r.Quorum):
		return nil, &QuorumError{e.Quorum}
	}
	return e, nil
}

// BeginFloods notes durably, before this party's share of the key is used, that a run answers for ciphertexts, and counts
// them, whatever becomes of it. The error is ErrSpent if the keys do not answer for so many more, ErrReleased if an answer
// has left, and else as that of Floods.
func (v *Vault) BeginFloods(r FloodRun) error {
	if err := r.check(); err != nil {
		return err
	}
	var objects []string // of answers that never left
	err := v.advance(func(tx store.Tx) error {
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
			//lodge:check vault/flooding/released [run=TestFlooding] an answer that has left the
			//  party is made again with fresh flooding
			if e != nil && e.Released {
				return fmt.Errorf("%w: a ciphertext of this run", vaulterr.ErrReleased)
			}
			if e != nil && e.Object != "" {
				objects = append(objects, e.Object)
			}
			entry := &LedgerEntry{Client: r.Client, When: v.now().UTC(), Quorum: r.Quorum, Run: r.Run}
			if err := put(v, tx, floodingKey(r.Epoch, d), entry); err != nil {
				return err
			}
		}
		//lodge:check vault/flooding/limit [swap=len(r.Digests)=>0] [run=TestFlooding] keys flood
		//  more often than their set allows
		if err := mayFlood(epoch, others, len(r.Digests)); err != nil {
			return err
		}
		//lodge:check vault/flooding/count [run=TestFlooding] floods are not counted before they are
		//  made
		epoch.Decrypted += uint64(len(r.Digests))
		return put(v, tx, epochKey(epoch.ID), epoch)
	})
	return v.eraseAfter(err, objects)
}

// RecordFloods makes the answers of a run that was begun durable, all or none. They are not released by that.
func (v *Vault) RecordFloods(r FloodRun, answers [][]byte, also ...Also) error {
	if err := r.check(); err != nil {
		return err
	}
	if len(answers) != len(r.Digests) {
		return fmt.Errorf("%w: %d answers for %d ciphertexts", vaulterr.ErrRange, len(answers), len(r.Digests))
	}
	var written []*writer
	recorded := false
	defer func() {
		for _, w := range written {
			if !recorded { // nor can have been: then the next start erases it
				w.abort()
			}
		}
	}()
	for i, d := range r.Digests {
		w, err := v.create(objectName("answer", floodingKey(r.Epoch, d)+"/"+rand.Text()))
		if err != nil {
			return err
		}
		written = append(written, w)
		if _, err := w.Write(answers[i]); err != nil {
			return err
		}
		if err := w.commit(); err != nil {
			return err
		}
	}
	err := v.changeFloods(&r, func(i int, e *LedgerEntry) error {
		if e.Object != "" || e.Released {
			return fmt.Errorf("%w: this run is recorded", vaulterr.ErrExists)
		}
		e.Object = written[i].name
		return nil
	}, also)
	recorded = err == nil || errors.Is(err, store.ErrUncertain)
	return err
}

// ReleaseFloods notes durably that recorded answers may leave this party, which are of the runs that held names.
func (v *Vault) ReleaseFloods(r FloodRun, held []Flood) error {
	if len(held) != len(r.Digests) {
		return fmt.Errorf("%w: %d answers for %d ciphertexts", vaulterr.ErrRange, len(held), len(r.Digests))
	}
	r.Run = RunID{}
	return v.changeFloods(&r, func(i int, e *LedgerEntry) error {
		//lodge:check vault/flooding/unrecorded [drop=e.Object == ""] [run=TestFloodingThatEnds] an
		//  answer is released before it is recorded
		//lodge:check vault/flooding/another-run [drop=e.Run != held[i].Run]
		//  [run=TestFloodingThatEnds] another answer than the recorded one is released
		if e.Object == "" || e.Run != held[i].Run {
			return fmt.Errorf("%w: another answer of this ciphertext is recorded, or none", vaulterr.ErrState)
		}
		e.Released = true
		return nil
	}, nil)
}

// changeFloods changes the entries of a run's ciphertexts, which must be of the run unless it has no id.
func (v *Vault) changeFloods(r *FloodRun, change func(i int, e *LedgerEntry) error, also []Also) error {
	return v.advance(func(tx store.Tx) error {
		_, others, err := v.floods(tx, r)
		if err == nil {
			//lodge:check vault/approval/use-flooding [run=TestApprovalInOneStep] a flooded answer
			//  is given without its approval
			err = alsoDo(tx, also)
		}
		for i := 0; i < len(r.Digests) && err == nil; i++ {
			var e *LedgerEntry
			e, err = v.flood(tx, r, r.Digests[i], others)
			//lodge:check vault/flooding/run [drop=r.Run != RunID{} && e.Run != r.Run]
			//  [run=TestFloodingThatEnds] an answer is recorded for another run than was begun
			if err == nil && (e == nil || r.Run != RunID{} && e.Run != r.Run) {
				err = fmt.Errorf("%w: this run was not begun, or another one since", vaulterr.ErrState)
			}
			if err == nil {
				err = change(i, e)
			}
			if err == nil {
				err = put(v, tx, floodingKey(r.Epoch, r.Digests[i]), e)
			}
		}
		return err
	})
}
