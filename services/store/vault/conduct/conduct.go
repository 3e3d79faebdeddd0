package conduct

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const (
	ConductPrefix = "conduct/"
	UnnamedPrefix = "unnamed/"
	// MaxUnnamed is how many failures are remembered of a roster, the latest.
	MaxUnnamed = 200
)

// Unnamed is a session in which somebody cheated and nobody could be named.
type Unnamed struct {
	Seq      uint64    `json:"seq"` // of the roster, from 1
	Roster   [32]byte  `json:"roster"`
	When     time.Time `json:"when"`
	Job      string    `json:"job"` // the session, as job and ordinal
	Session  string    `json:"session"`
	Epoch    uint64    `json:"epoch"`
	Check    string    `json:"check"`
	Reason   string    `json:"reason"`
	Suspects []string  `json:"suspects"`
	Cleared  bool      `json:"cleared,omitempty"` // counts no more
	// Drains is set when it says of the epoch's keys that they may be malformed; then why they are
	// not to be used.
	Drains string `json:"drains,omitempty"`
}

// Conduct is how the sessions of a roster have gone.
type Conduct struct {
	Roster [32]byte `json:"roster"`
	Last   uint64   `json:"last"` // number of the last failure; 0: there was none
	// Cleared is the number of the last failure that an operator has cleared, and Act is the
	// operator's action.
	Cleared uint64 `json:"cleared"`
	Act     *Act   `json:"act,omitempty"`
	// Stopped is set when there were too many, until an operator clears them.
	Stopped *Stop `json:"stopped,omitempty"`
}

// Stop is why nothing is made any more.
type Stop struct {
	When     time.Time `json:"when"`
	Failures int       `json:"failures"` // that led to it
	Suspects []string  `json:"suspects"` // of any of them
	Checks   []string  `json:"checks"`
}

// Tolerance is how many failures within a time are too many.
type Tolerance struct {
	Most   int
	Within time.Duration
}

//lodge:check vault/conduct/roster [tests=./services/store/vault] [swap=roster[:]=>roster[:0]] [run=TestConductIsDurable] failures of one roster stop another
func ConductKey(roster [32]byte) string { return ConductPrefix + hex.EncodeToString(roster[:]) }

func unnamedOf(roster [32]byte) string { return UnnamedPrefix + hex.EncodeToString(roster[:]) + "/" }

func (u *Unnamed) Key() string { return fmt.Sprintf("%s%020d", unnamedOf(u.Roster), u.Seq) }

func (v *Archive) conduct(tx store.Tx, roster [32]byte) (*Conduct, error) {
	c, err := seal.Get[Conduct](v.Store, tx, ConductKey(roster))
	if errors.Is(err, vaulterr.ErrNotFound) {
		return &Conduct{Roster: roster}, nil
	}
	return c, err
}

// Conduct of a roster's sessions.
func (v *Archive) Conduct(roster [32]byte) (Conduct, error) {
	return seal.Read(v.Store, func(tx store.Tx) (*Conduct, error) { return v.conduct(tx, roster) })
}

// UnnamedFailures of a roster, the oldest first.
func (v *Archive) UnnamedFailures(roster [32]byte) ([]Unnamed, error) {
	return seal.Records[Unnamed](v.Store, unnamedOf(roster))
}

// NoteUnnamed keeps a failure, and stops the roster when there are too many that no operator has
// cleared. The reason for the stop does not expire. An epoch that it makes suspect drains with it,
// so that no crash leaves one without the other; suspect reports whether that is news.
func (v *Archive) NoteUnnamed(u Unnamed, t Tolerance) (out Conduct, suspect bool, err error) {
	run := v.Update
	if u.Drains != "" {
		//lodge:check vault/conduct/suspect-generation [tests=./services/store/vault]
		//  [swap=v.Advance=>v.Update] [run=TestSuspectEpoch] an old copy of the store forgets
		//  unnoticed that keys are suspect
		run = v.Advance
	}
	err = run(func(tx store.Tx) error {
		suspect = false
		if u.Drains != "" {
			if suspect, err = v.suspect(tx, u.Epoch, u.Drains); err != nil {
				return err
			}
		}
		c, err := v.conduct(tx, u.Roster)
		if err != nil {
			return err
		}
		all, err := seal.List[Unnamed](v.Store, tx, unnamedOf(u.Roster))
		if err != nil {
			return err
		}
		c.Last++
		u.Seq, u.When, u.Cleared = c.Last, v.Clock().UTC(), false
		//lodge:check vault/conduct/room [tests=./services/store/vault] [swap=len(all) >=
		//  MaxUnnamed=>false] [run=TestRoomForEvidence] records of failures exceed their limit
		for ; len(all) >= MaxUnnamed; all = all[1:] {
			if err := tx.Delete(all[0].Key()); err != nil {
				return fmt.Errorf("vault: %w", err)
			}
		}
		if err := seal.Put(v.Store, tx, u.Key(), &u); err != nil {
			return err
		}
		counted := slices.DeleteFunc(append(all, &u), func(x *Unnamed) bool {
			//lodge:check vault/conduct/within [tests=./services/store/vault]
			//  [drop=u.When.Sub(x.When) >= t.Within] [run=TestFailuresCount] failures outside the
			//  time window stop a roster
			//lodge:check vault/conduct/cleared [tests=./services/store/vault] [drop=x.Cleared]
			//  [run=TestConductIsDurable] cleared failures stop a roster
			return x.Cleared || u.When.Sub(x.When) >= t.Within
		})
		//lodge:check vault/conduct/stop [tests=./services/store/vault] [run=TestFailuresCount] a
		//  roster continues after too many failures
		//lodge:check vault/conduct/stays [tests=./services/store/vault] [drop=c.Stopped == nil]
		//  [run=TestFailuresCount|TestConductIsDurable] the reason for which a roster was stopped
		//  changes
		if len(counted) >= t.Most && c.Stopped == nil {
			c.Stopped = &Stop{When: u.When, Failures: len(counted)}
		}
		if s := c.Stopped; s != nil {
			for _, x := range counted {
				//lodge:check vault/conduct/suspects [tests=./services/store/vault]
				//  [run=TestConductIsDurable] an operator does not see all suspects
				s.Suspects = merged(s.Suspects, x.Suspects)
				s.Checks = merged(s.Checks, []string{x.Check})
			}
		}
		out = *c
		return seal.Put(v.Store, tx, ConductKey(u.Roster), c)
	})
	return out, suspect, err
}

// merged are the words of both, each once.
func merged(words, more []string) []string {
	for _, w := range more {
		if !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	return words
}

// Counted returns how many failures count if now is the time of the last one.
func (t Tolerance) Counted(all []Unnamed, now time.Time) (n int) {
	for _, u := range all {
		if !u.Cleared && now.Sub(u.When) < t.Within {
			n++
		}
	}
	return n
}

// ClearUnnamed clears all failures of a roster so far, and returns how many counted until then. It
// is an operator's word that their cause is known, who knows of those up to last, 0 for all:
// ErrState when there is a later one.
func (v *Archive) ClearUnnamed(roster [32]byte, last uint64, act Act) (n int, err error) {
	err = v.Update(func(tx store.Tx) error {
		n = 0
		c, err := v.conduct(tx, roster)
		if err != nil {
			return err
		}
		//lodge:check vault/conduct/last [tests=./services/store/vault] [run=TestConductIsDurable]
		//  an operator clears failures that it has not seen
		if last != 0 && last < c.Last {
			return fmt.Errorf("%w: there are failures after %d, up to %d", vaulterr.ErrState, last, c.Last)
		}
		all, err := seal.List[Unnamed](v.Store, tx, unnamedOf(roster))
		if err != nil {
			return err
		}
		for _, u := range all {
			if u.Cleared {
				continue
			}
			u.Cleared, n = true, n+1
			if err := seal.Put(v.Store, tx, u.Key(), u); err != nil {
				return err
			}
		}
		if n == 0 && c.Stopped == nil {
			return nil
		}
		c.Cleared, c.Act, c.Stopped = c.Last, &act, nil
		return seal.Put(v.Store, tx, ConductKey(roster), c)
	})
	return n, err
}

// suspect has an epoch drain because its keys may be malformed, and records why. A retired epoch
// stays retired, and a locked epoch has made nothing yet.
func (v *Archive) suspect(tx store.Tx, id uint64, reason string) (fresh bool, err error) {
	e, err := v.keys.Drainable(tx, id)
	if errors.Is(err, vaulterr.ErrErased) || errors.Is(err, vaulterr.ErrNotFound) || errors.Is(err, vaulterr.ErrState) {
		return false, nil
	}
	if err != nil || e.State == keys.EpochDraining && e.Reason != "" {
		return false, err
	}
	//lodge:check vault/conduct/suspect [tests=./services/store/vault] [as=e.Reason = reason]
	//  [run=TestSuspectEpoch] suspect keys make more tuples
	e.State, e.Reason = keys.EpochDraining, reason
	return true, seal.Put(v.Store, tx, keys.EpochKey(id), e)
}
