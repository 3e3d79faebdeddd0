package vault

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
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const accusationPrefix = "accusation/"

// Accusation is a cheat that is proved. Its evidence is an object of its own.
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

// Act is what an operator did.
type Act struct {
	When   time.Time `json:"when"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// EvidenceRoom bounds the evidence that is kept. The first of every culprit is kept in any case, so that what fills the
// room can never keep another cheat from being proved.
type EvidenceRoom struct {
	Bytes      uint64 // of all evidence
	PerCulprit int    // accusations of one signing key
}

func (a *Accusation) object() string { return a.Object }

// Evidence is a file on its way into a vault: write it, Commit, look at it with Open, and Accuse with it. It is erased with
// Abort, or at the next start, unless it is recorded by then.
type Evidence struct {
	v        *Vault
	w        *writer
	sum      hash.Hash
	recorded bool
}

// NewEvidence begins to store a file.
func (v *Vault) NewEvidence() (*Evidence, error) {
	w, err := v.create(objectName("evidence", rand.Text()))
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
func (e *Evidence) Commit() error { return e.w.commit() }

// Digest is the SHA-256 of what was written.
func (e *Evidence) Digest() [sha256.Size]byte { return [sha256.Size]byte(e.sum.Sum(nil)) }

// ID of the accusation that the file makes: the first half of its digest.
func (e *Evidence) ID() string { return EvidenceID(e.Digest()) }

// EvidenceID names the accusation of a file with this SHA-256.
func EvidenceID(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:sha256.Size/2]) }

// Open reads the file, after Commit.
func (e *Evidence) Open() (io.ReadCloser, error) { return e.v.open(e.w.name) }

// Abort erases the file, unless it is recorded.
func (e *Evidence) Abort() {
	if !e.recorded {
		e.w.abort()
	}
}

// Accuse records an accusation with its evidence, which is committed, and reports whether it is new. ErrFull when there is
// no room for another of the same culprit. To make room for the first of a culprit, the latest of others go that have
// several.
func (v *Vault) Accuse(a Accusation, e *Evidence, room EvidenceRoom) (fresh bool, err error) {
	a.ID, a.Object, a.Size, a.When = e.ID(), e.w.name, e.w.size, v.now().UTC()
	key := accusationPrefix + a.ID
	var dropped []string
	err = v.update(func(tx store.Tx) error {
		fresh, dropped = false, nil
		//lodge:check vault/accusation/once [swap=!errors.Is(err, vaulterr.ErrNotFound)=>err != nil &&
		//  !errors.Is(err, vaulterr.ErrNotFound)] [run=TestConductIsDurable] the same evidence undoes a
		//  pardon
		if _, err := get[Accusation](v, tx, key); !errors.Is(err, vaulterr.ErrNotFound) {
			return err
		}
		all, err := list[Accusation](v, tx, accusationPrefix)
		if err != nil {
			return err
		}
		spare, err := room.spare(all, &a)
		if err != nil {
			return err
		}
		for _, s := range spare {
			dropped = append(dropped, s.object())
			if err := tx.Delete(accusationPrefix + s.ID); err != nil {
				return fmt.Errorf("vault: %w", err)
			}
		}
		fresh = true
		return put(v, tx, key, &a)
	})
	e.recorded = err == nil && fresh || errors.Is(err, store.ErrUncertain) // if it is not, the next start erases it
	return err == nil && fresh, v.eraseAfter(err, dropped)
}

// spare are the accusations to give up for a new one.
func (r EvidenceRoom) spare(all []*Accusation, a *Accusation) (spare []*Accusation, err error) {
	total, of := a.Size, map[string]int{}
	for _, x := range all {
		total += x.Size
		of[x.Key]++
	}
	//lodge:check vault/accusation/first [swap=of[a.Key] == 0=>false] [run=TestRoomForEvidence] the
	//  first evidence against a party is dropped for lack of space
	first := of[a.Key] == 0
	//lodge:check vault/accusation/per-culprit [swap=(of[a.Key] >= r.PerCulprit || total >
	//  r.Bytes)=>total > r.Bytes] [run=TestRoomForEvidence] evidence against one party takes the
	//  space of evidence against others
	//lodge:check vault/accusation/room [swap=(of[a.Key] >= r.PerCulprit || total >
	//  r.Bytes)=>of[a.Key] >= r.PerCulprit] [run=TestRoomForEvidence] evidence exceeds its storage
	//  limit
	if !first && (of[a.Key] >= r.PerCulprit || total > r.Bytes) {
		return nil, fmt.Errorf("%w: there are %d accusations of %s", vaulterr.ErrFull, of[a.Key], a.Culprit)
	}
	slices.SortFunc(all, func(x, y *Accusation) int { return y.When.Compare(x.When) })
	for _, x := range all {
		if total <= r.Bytes {
			break
		}
		//lodge:check vault/accusation/spare [swap=1=>0] [run=TestRoomForEvidence] the only
		//  accusation of a party is deleted to make space
		if of[x.Key] > 1 {
			of[x.Key]--
			total -= x.Size
			spare = append(spare, x)
		}
	}
	return spare, nil
}

// Accusation gives one by its id.
func (v *Vault) Accusation(id string) (a Accusation, err error) {
	err = v.store.View(func(tx store.Tx) error {
		r, err := get[Accusation](v, tx, accusationPrefix+id)
		if err != nil {
			return fmt.Errorf("%w: accusation %s", err, id)
		}
		a = *r
		return nil
	})
	return a, err
}

// Accusations gives all, by id, of former rosters too.
func (v *Vault) Accusations() ([]Accusation, error) {
	return records[Accusation](v, accusationPrefix)
}

// OpenEvidence reads the evidence of an accusation.
func (v *Vault) OpenEvidence(id string) (io.ReadCloser, error) {
	a, err := v.Accusation(id)
	if err != nil {
		return nil, err
	}
	return v.open(a.object())
}

// Pardon records that an accusation has no consequences from now on. One that was pardoned stays so, as it was.
func (v *Vault) Pardon(id string, act Act) (a Accusation, err error) {
	err = v.change(id, func(x *Accusation) bool {
		//lodge:check vault/accusation/pardon [swap=x.Pardon == nil=>true]
		//  [run=TestConductIsDurable] a second pardon replaces the first operator's
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
func (v *Vault) ToldOf(id, peer string) error {
	return v.change(id, func(x *Accusation) bool {
		if slices.Contains(x.Told, peer) {
			return false
		}
		x.Told = append(x.Told, peer)
		return true
	})
}

func (v *Vault) change(id string, f func(*Accusation) bool) error {
	return v.update(func(tx store.Tx) error {
		key := accusationPrefix + id
		a, err := get[Accusation](v, tx, key)
		if err != nil {
			return fmt.Errorf("%w: accusation %s", err, id)
		}
		if !f(a) {
			return nil
		}
		return put(v, tx, key, a)
	})
}
