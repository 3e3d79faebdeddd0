package keys

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Under proved keys a failed MAC check reveals nothing about the MAC key, except that one guess of
// it was wrong. After k failures the probability that the key is known or a wrong batch was
// accepted is at most 5 (k+1) / (p - 3k), about 2^-52 for k = 64 and p = 2^61. The vault counts the
// failures of a key and retires it when there are too many. Under keys that are not proved,
// malformed keys can make a failure depend on secrets, and the key is burnt.

const (
	// MaxFailedChecks is how many checks of a MAC key may fail or not end before it is retired.
	MaxFailedChecks = 64
	// MaxFailedInARow is how many checks in a row may fail, which points to a malformed MAC key.
	MaxFailedInARow = 3
)

// CheckResult is how a MAC check ended.
type CheckResult int

// The results.
const (
	CheckPassed     CheckResult = iota
	CheckFailed                 // at this party, or by the signed word of a peer
	CheckUnfinished             // the session ended in another way after this party had opened its combinations
)

// ProvedKeys is the value of Epoch.KeygenSecurity if every party proved that its key shares are
// well formed.
const ProvedKeys = "proved"

// BeginCheck records that a session consumes its check triples. It must end with EndCheck; if this
// process ends first, Open counts the check as unfinished. Under keys that are not proved, a check
// whose end could not be recorded burns the key here, and the error wraps ErrCheckUnended.
func (v *Keys) BeginCheck(id, session string) error {
	var objects []string
	var unended error
	err := v.Advance(func(tx store.Tx) error {
		objects, unended = nil, nil
		k, err := v.MACKeyIn(tx, id)
		if err != nil {
			return err
		}
		//lodge:check vault/mac-key/check-burnt [tests=./services/store/vault]
		//  [run=TestFailedChecks|TestChecksUnderWay] a check starts under a burnt MAC key
		if k.State != MACActive {
			return fmt.Errorf("%w: MAC key %s is %s", vaulterr.ErrState, id, k.State)
		}
		proved, err := v.provedMACKey(tx, k)
		if err != nil {
			return err
		}
		// One session at a time uses such a key, so another check is one whose end EndCheck failed
		// to record.
		//lodge:check vault/unproved-unended [tests=./services/store/vault]
		//  [run=TestACheckWhoseEndWasNotRecorded] a MAC key that a failed check revealed lives on
		//  if the failure could not be recorded
		if !proved && len(k.Checks) > 0 {
			unended = fmt.Errorf("%w: MAC key %s is burnt", vaulterr.ErrCheckUnended, id)
			objects, err = v.burnWithBatches(tx, id, "the end of a MAC check under keys that are not proved was not recorded")
			return err
		}
		//lodge:check vault/check-once [tests=./services/store/vault]
		//  [run=TestACheckWhoseEndWasNotRecorded] a session consumes its check triples twice
		if slices.Contains(k.Checks, session) {
			return fmt.Errorf("%w: the MAC check of session %s has begun before", vaulterr.ErrState, session)
		}
		//lodge:check vault/mac-key/check [tests=./services/store/vault]
		//  [run=TestFailedChecks|TestChecksUnderWay|TestTuplesAreGiven] a running check is not
		//  recorded
		k.Checks = append(k.Checks, session)
		return seal.Put(v.Store, tx, MACPrefix+id, k)
	})
	if err = v.EraseAfter(err, objects); err != nil {
		return err
	}
	return unended
}

// provedMACKey reports whether every party proved its shares of the keys under which a MAC key was
// made. Keys of an unknown epoch count as not proved.
func (v *Keys) provedMACKey(tx store.Tx, k *MACKey) (bool, error) {
	e, err := seal.Get[Epoch](v.Store, tx, EpochKey(k.Epoch))
	if errors.Is(err, vaulterr.ErrNotFound) {
		return false, nil
	}
	return err == nil && e.KeygenSecurity == ProvedKeys, err
}

// EndCheck records how the check of a session ended, and gives the MAC key as it is then. Too many
// failures retire the key. Under keys that are not proved, any end except CheckPassed burns it.
func (v *Keys) EndCheck(id, session string, result CheckResult) (out MACKey, err error) {
	run := v.Advance
	if result == CheckPassed {
		run = v.Update
	}
	var objects []string
	err = run(func(tx store.Tx) error {
		k, err := v.MACKeyIn(tx, id)
		if err != nil {
			return err
		}
		if objects, err = v.endChecks(tx, k, []string{session}, result); err != nil {
			return err
		}
		k, err = v.MACKeyIn(tx, id)
		if err == nil {
			out = *k
		}
		return err
	})
	return out, v.EraseAfter(err, objects)
}

// endChecks ends checks of a key that are under way, and names the objects to erase if it is burnt
// by that.
func (v *Keys) endChecks(tx store.Tx, k *MACKey, sessions []string, result CheckResult) (objects []string, err error) {
	ended := 0
	k.Checks = slices.DeleteFunc(k.Checks, func(s string) bool {
		if !slices.Contains(sessions, s) {
			return false
		}
		ended++
		return true
	})
	if ended == 0 || k.State == MACBurnt {
		return nil, nil
	}
	if result == CheckPassed {
		k.InARow = 0
		return nil, seal.Put(v.Store, tx, MACPrefix+k.ID, k)
	}
	proved, err := v.provedMACKey(tx, k)
	if err != nil {
		return nil, err
	}
	//lodge:check vault/unproved-burns [tests=./services/store/vault] a failure under malformed keys
	//  reveals the MAC key, which lives on
	if !proved {
		return v.burnWithBatches(tx, k.ID, "a MAC check under keys that are not proved failed or did not end")
	}
	k.Failed += ended
	if result == CheckFailed {
		k.InARow += ended
	}
	//lodge:check vault/retire-failed [tests=./services/store/vault] a peer may guess the MAC key as
	//  often as it likes
	if k.Failed >= MaxFailedChecks {
		k.retire(fmt.Sprintf("%d MAC checks failed or did not end", k.Failed))
	}
	//lodge:check vault/retire-in-a-row [tests=./services/store/vault] a malformed MAC key is used
	//  for ever
	if k.InARow >= MaxFailedInARow {
		k.retire(fmt.Sprintf("%d MAC checks in a row failed", k.InARow))
	}
	return nil, seal.Put(v.Store, tx, MACPrefix+k.ID, k)
}

// retire makes an active key retired; a retired key keeps its reason.
func (k *MACKey) retire(reason string) {
	if k.State == MACActive {
		k.State, k.Reason = MACRetired, reason
	}
}

// RetireMACKey lets no more batches come under an active MAC key. Tuples released under it stay
// valid.
func (v *Keys) RetireMACKey(id, reason string) error {
	return v.Advance(func(tx store.Tx) error {
		k, err := v.MACKeyIn(tx, id)
		if err != nil || k.State != MACActive {
			return err
		}
		k.retire(reason)
		return seal.Put(v.Store, tx, MACPrefix+id, k)
	})
}

// RecoverChecks ends the checks that were under way when the process ended, and burns the MAC keys
// that a check of an earlier protocol version may have revealed. Their data is left to the sweep.
func (v *Keys) RecoverChecks() error {
	return v.Advance(func(tx store.Tx) error {
		keys, err := seal.List[MACKey](v.Store, tx, MACPrefix)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.State == MACBurnt {
				continue
			}
			//lodge:check vault/exposed-burns [tests=./services/store/vault] run=TestExposedMACKeys a MAC key that a check
			//  of an earlier version revealed lives on
			if len(k.Exposed) > 0 {
				if _, err := v.burnWithBatches(tx, k.ID, "the process ended during a MAC check of an earlier protocol version"); err != nil {
					return err
				}
				continue
			}
			//lodge:check vault/mac-key/crash [tests=./services/store/vault]
			//  [swap=CheckUnfinished=>CheckPassed] [run=TestChecksUnderWay] a MAC key survives a
			//  crash in the middle of its check
			if _, err := v.endChecks(tx, k, slices.Clone(k.Checks), CheckUnfinished); err != nil {
				return err
			}
		}
		return nil
	})
}

// burnWithBatches records a key as burnt and every batch under it as revoked, and names their
// objects.
func (v *Keys) burnWithBatches(tx store.Tx, id, reason string) (objects []string, err error) {
	objects, err = v.Burn(tx, func(k *MACKey) bool { return k.ID == id }, reason)
	if err != nil {
		return nil, err
	}
	revoked, _, err := v.Under.RevokeBatches(tx, func(_ uint64, macKey string) bool { return macKey == id }, reason)
	return append(objects, revoked...), err
}
