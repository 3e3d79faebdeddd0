package conduct

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const AccusationPrefix = "accusation/"

// Accusation is a cheat that is proved. The evidence is stored as a separate object.
type Accusation struct {
	ID      string    `json:"id"` // of the evidence
	Roster  [32]byte  `json:"roster"`
	Culprit string    `json:"culprit"` // by name in that roster
	Key     string    `json:"key"`     // the culprit's signing key in that roster
	Kind    string    `json:"kind"`    // of evidence
	Check   string    `json:"check"`
	Reason  string    `json:"reason"`
	Session string    `json:"session"`        // its id, in hexadecimal digits
	Job     string    `json:"job,omitempty"`  // the session that this party saw it in, as job and ordinal
	When    time.Time `json:"when"`           // it was recorded here
	From    string    `json:"from,omitempty"` // the peer that showed it; empty when this party saw it itself
	Size    uint64    `json:"size"`           // bytes of the evidence
	Object  string    `json:"object"`         // that has it
	Told    []string  `json:"told,omitempty"` // peers that have it
	Pardon  *Act      `json:"pardon,omitempty"`
}

// Act records an operator's action.
type Act struct {
	When   time.Time `json:"when"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// EvidenceRoom bounds the evidence that is kept. The first evidence against each accused party is
// always kept, so that evidence that fills the limit cannot keep another cheat from being proved.
type EvidenceRoom struct {
	Bytes      uint64 // of all evidence
	PerCulprit int    // accusations of one signing key
}

// Evidence is a file that is not recorded in the vault yet. The caller writes it, calls Commit,
// verifies it with Open, and records it with Accuse. Abort erases a file that is not recorded, and
// so does the next start.
type Evidence struct {
	v        *Archive
	w        *seal.ObjectWriter
	sum      hash.Hash
	recorded bool
}

// NewEvidence begins to store a file.
func (v *Archive) NewEvidence() (*Evidence, error) {
	w, err := v.CreateObject(seal.ObjectName("evidence", rand.Text()))
	if err != nil {
		return nil, err
	}
	return &Evidence{v: v, w: w, sum: sha256.New()}, nil
}

// Write appends to the file.
func (e *Evidence) Write(p []byte) (int, error) {
	e.sum.Write(p)
	return e.w.Write(p)
}

// Commit ends the file.
func (e *Evidence) Commit() error { return e.w.Commit() }

// Digest returns the SHA-256 of the bytes written so far.
func (e *Evidence) Digest() [sha256.Size]byte { return [sha256.Size]byte(e.sum.Sum(nil)) }

// ID of the accusation that the file makes: the first half of its digest.
func (e *Evidence) ID() string { return EvidenceID(e.Digest()) }

// EvidenceID names the accusation of a file with this SHA-256.
func EvidenceID(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:sha256.Size/2]) }

// Open reads the file, after Commit.
func (e *Evidence) Open() (io.ReadCloser, error) { return e.v.OpenObject(e.w.Name) }

// Abort erases the file, unless it is recorded.
func (e *Evidence) Abort() {
	if !e.recorded {
		e.w.Abort()
	}
}

// Accuse records an accusation with its evidence, which is committed, and reports whether it is
// new. ErrFull when there is no room for another of the same culprit. To make room for the first of
// a culprit, the latest of others go that have several.
func (v *Archive) Accuse(a Accusation, e *Evidence, room EvidenceRoom) (fresh bool, err error) {
	a.ID, a.Object, a.Size, a.When = e.ID(), e.w.Name, e.w.Size, v.Clock().UTC()
	key := AccusationPrefix + a.ID
	var dropped []string
	err = v.Update(func(tx store.Tx) error {
		fresh, dropped = false, nil
		//lodge:check vault/accusation/once [tests=./services/store/vault] [swap=!errors.Is(err,
		//  vaulterr.ErrNotFound)=>err != nil && !errors.Is(err, vaulterr.ErrNotFound)]
		//  [run=TestConductIsDurable] the same evidence undoes a pardon
		if _, err := seal.Get[Accusation](v.Store, tx, key); !errors.Is(err, vaulterr.ErrNotFound) {
			return err
		}
		all, err := seal.List[Accusation](v.Store, tx, AccusationPrefix)
		if err != nil {
			return err
		}
		spare, err := room.spare(all, &a)
		if err != nil {
			return err
		}
		for _, s := range spare {
			dropped = append(dropped, s.Object)
			if err := tx.Delete(AccusationPrefix + s.ID); err != nil {
				return fmt.Errorf("vault: %w", err)
			}
		}
		fresh = true
		return seal.Put(v.Store, tx, key, &a)
	})
	e.recorded = err == nil && fresh || errors.Is(err, store.ErrUncertain) // if it is not, the next start erases it
	return err == nil && fresh, v.EraseAfter(err, dropped)
}

// spare are the accusations to give up for a new one.
func (r EvidenceRoom) spare(all []*Accusation, a *Accusation) (spare []*Accusation, err error) {
	total, of := a.Size, map[string]int{}
	for _, x := range all {
		total += x.Size
		of[x.Key]++
	}
	//lodge:check vault/accusation/first [tests=./services/store/vault] [swap=of[a.Key] == 0=>false]
	//  [run=TestRoomForEvidence] the first evidence against a party is dropped for lack of space
	first := of[a.Key] == 0
	//lodge:check vault/accusation/per-culprit [tests=./services/store/vault] [swap=(of[a.Key] >=
	//  r.PerCulprit || total > r.Bytes)=>total > r.Bytes] [run=TestRoomForEvidence] evidence
	//  against one party takes the space of evidence against others
	//lodge:check vault/accusation/room [tests=./services/store/vault] [swap=(of[a.Key] >=
	//  r.PerCulprit || total > r.Bytes)=>of[a.Key] >= r.PerCulprit] [run=TestRoomForEvidence]
	//  evidence exceeds its storage limit
	if !first && (of[a.Key] >= r.PerCulprit || total > r.Bytes) {
		return nil, fmt.Errorf("%w: there are %d accusations of %s", vaulterr.ErrFull, of[a.Key], a.Culprit)
	}
	slices.SortFunc(all, func(x, y *Accusation) int { return y.When.Compare(x.When) })
	for _, x := range all {
		if total <= r.Bytes {
			break
		}
		//lodge:check vault/accusation/spare [tests=./services/store/vault] [swap=1=>0]
		//  [run=TestRoomForEvidence] the only accusation of a party is deleted to make space
		if of[x.Key] > 1 {
			of[x.Key]--
			total -= x.Size
			spare = append(spare, x)
		}
	}
	return spare, nil
}

// Accusation gives one by its id.
func (v *Archive) Accusation(id string) (Accusation, error) {
	return seal.Read(v.Store, func(tx store.Tx) (*Accusation, error) {
		return seal.Named[Accusation](v.Store, tx, AccusationPrefix+id, "accusation", id)
	})
}

// Accusations gives all, by id, of former rosters too.
func (v *Archive) Accusations() ([]Accusation, error) {
	return seal.Records[Accusation](v.Store, AccusationPrefix)
}

// OpenEvidence reads the evidence of an accusation.
func (v *Archive) OpenEvidence(id string) (io.ReadCloser, error) {
	a, err := v.Accusation(id)
	if err != nil {
		return nil, err
	}
	return v.OpenObject(a.Object)
}

// Pardon records that an accusation has no consequences from now on. One that was pardoned stays
// so, as it was.
func (v *Archive) Pardon(id string, act Act) (a Accusation, err error) {
	err = v.change(id, func(x *Accusation) bool {
		//lodge:check vault/accusation/pardon [tests=./services/store/vault] [swap=x.Pardon ==
		//  nil=>true] [run=TestConductIsDurable] a second pardon replaces the first operator's
		fresh := x.Pardon == nil
		if fresh {
			x.Pardon = &act
		}
		a = *x
		return fresh
	})
	return a, err
}

// ToldOf records that a peer has an accusation.
func (v *Archive) ToldOf(id, peer string) error {
	return v.change(id, func(x *Accusation) bool {
		if slices.Contains(x.Told, peer) {
			return false
		}
		x.Told = append(x.Told, peer)
		return true
	})
}

func (v *Archive) change(id string, f func(*Accusation) bool) error {
	return v.Update(func(tx store.Tx) error {
		key := AccusationPrefix + id
		a, err := seal.Get[Accusation](v.Store, tx, key)
		if err != nil {
			return fmt.Errorf("%w: accusation %s", err, id)
		}
		if !f(a) {
			return nil
		}
		return seal.Put(v.Store, tx, key, a)
	})
}
