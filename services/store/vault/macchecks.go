package vault

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
)

// Under proved keys a failed MAC check reveals nothing about the MAC key, except that one guess of it was wrong. After k
// failures the probability that the key is known or a wrong batch was accepted is at most 5 (k+1) / (p - 3k), about 2^-52 for
// k = 64 and p = 2^61. The vault counts the failures of a key and retires it when there are too many. Under keys that are not
// proved, malformed keys can make a failure depend on secrets, and the key is burnt.

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

// provedKeys is the value of Epoch.KeygenSecurity if every party proved that its key shares are well formed.
const provedKeys = "proved"

// ErrCheckUnended says that BeginCheck burnt a MAC key under keys that are not proved, because the end of an earlier check of
// it was not recorded: that check may have revealed the key.
var ErrCheckUnended = fmt.Errorf("%w: an earlier MAC check has no recorded end", ErrState)

// BeginCheck records that a session consumes its check triples. It must end with EndCheck; if this process ends first, Open
// counts the check as unfinished. Under keys that are not proved, a check whose end could not be recorded burns the key here,
// and the error wraps ErrCheckUnended.
func (v *Vault) BeginCheck(id, session string) error {
	var objects []string
	var unended error
	err := v.advance(func(tx store.Tx) error {
		objects, unended = nil, nil
		k, err := v.macKey(tx, id)
		if err != nil {
			return err
		}
		//lodge:check vault/mac-key/check-burnt [run=TestFailedChecks|TestChecksUnderWay] a check
		//  starts under a burnt MAC key
		if k.State != MACActive {
			return fmt.Errorf("%w: MAC key %s is %s", ErrState, id, k.State)
		}
		proved, err := v.provedMACKey(tx, k)
		if err != nil {
			return err
		}
		// One session at a time uses such a key, so another check is one whose end EndCheck failed to record.
		//lodge:check vault/unproved-unended [run=TestACheckWhoseEndWasNotRecorded] a MAC key that a failed check revealed lives on if the failure could not be recorded
		if !proved && len(k.Checks) > 0 {
			unended = fmt.Errorf("%w: MAC key %s is burnt", ErrCheckUnended, id)
			objects, err = v.burnWithBatches(tx, id, "the end of a MAC check under keys that are not proved was not recorded")
			return err
		}
		//lodge:check vault/check-once [run=TestACheckWhoseEndWasNotRecorded] a session consumes its check triples twice
		if slices.Contains(k.Checks, session) {
			return fmt.Errorf("%w: the MAC check of session %s has begun before", ErrState, session)
		}
		//lodge:check vault/mac-key/check
		//  [run=TestFailedChecks|TestChecksUnderWay|TestTuplesAreGiven] a running check is not
		//  recorded
		k.Checks = append(k.Checks, session)
		return put(v, tx, macPrefix+id, k)
	})
	if err = v.eraseAfter(err, objects); err != nil {
		return err
	}
	return unended
}

// provedMACKey reports whether every party proved its shares of the keys under which a MAC key was made. Keys of an unknown
// epoch count as not proved.
func (v *Vault) provedMACKey(tx store.Tx, k *MACKey) (bool, error) {
	e, err := get[Epoch](v, tx, epochKey(k.Epoch))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && e.KeygenSecurity == provedKeys, err
}

// EndCheck records how the check of a session ended, and gives the MAC key as it is then. Too many failures retire the key.
// Under keys that are not proved, any end except CheckPassed burns it.
func (v *Vault) EndCheck(id, session string, result CheckResult) (out MACKey, err error) {
	run := v.advance
	if result == CheckPassed {
		run = v.update
	}
	var objects []string
	err = run(func(tx store.Tx) error {
		k, err := v.macKey(tx, id)
		if err != nil {
			return err
		}
		if objects, err = v.endChecks(tx, k, []string{session}, result); err != nil {
			return err
		}
		k, err = v.macKey(tx, id)
		if err == nil {
			out = *k
		}
		return err
	})
	return out, v.eraseAfter(err, objects)
}

// endChecks ends checks of a key that are under way, and names the objects to erase if it is burnt by that.
func (v *Vault) endChecks(tx store.Tx, k *MACKey, sessions []string, result CheckResult) (objects []string, err error) {
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
		return nil, put(v, tx, macPrefix+k.ID, k)
	}
	proved, err := v.provedMACKey(tx, k)
	if err != nil {
		return nil, err
	}
	//lodge:check vault/unproved-burns a failure under malformed keys reveals the MAC key, which lives on
	if !proved {
		return v.burnWithBatches(tx, k.ID, "a MAC check under keys that are not proved failed or did not end")
	}
	k.Failed += ended
	if result == CheckFailed {
		k.InARow += ended
	}
	//lodge:check vault/retire-failed a peer may guess the MAC key as often as it likes
	if k.Failed >= MaxFailedChecks {
		k.retire(fmt.Sprintf("%d MAC checks failed or did not end", k.Failed))
	}
	//lodge:check vault/retire-in-a-row a malformed MAC key is used for ever
	if k.InARow >= MaxFailedInARow {
		k.retire(fmt.Sprintf("%d MAC checks in a row failed", k.InARow))
	}
	return nil, put(v, tx, macPrefix+k.ID, k)
}

// retire makes an active key retired; one that is retired keeps its reason.
func (k *MACKey) retire(reason string) {
	if k.State == MACActive {
		k.State, k.Reason = MACRetired, reason
	}
}

// RetireMACKey lets no more batches come under an active MAC key. What was released under it stays valid.
func (v *Vault) RetireMACKey(id, reason string) error {
	return v.advance(func(tx store.Tx) error {
		k, err := v.macKey(tx, id)
		if err != nil || k.State != MACActive {
			return err
		}
		k.retire(reason)
		return put(v, tx, macPrefix+id, k)
	})
}

// recoverChecks ends the checks that were under way when the process ended, and burns the MAC keys that a check of an earlier
// protocol version may have revealed. Their data is left to the sweep.
func (v *Vault) recoverChecks() error {
	return v.advance(func(tx store.Tx) error {
		keys, err := list[MACKey](v, tx, macPrefix)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.State == MACBurnt {
				continue
			}
			//lodge:check vault/exposed-burns run=TestExposedMACKeys a MAC key that a check of an earlier version revealed lives on
			if len(k.Exposed) > 0 {
				if _, err := v.burnWithBatches(tx, k.ID, "the process ended during a MAC check of an earlier protocol version"); err != nil {
					return err
				}
				continue
			}
			//lodge:check vault/mac-key/crash [swap=CheckUnfinished=>CheckPassed]
			//  [run=TestChecksUnderWay] a MAC key survives a crash in the middle of its check
			if _, err := v.endChecks(tx, k, slices.Clone(k.Checks), CheckUnfinished); err != nil {
				return err
			}
		}
		return nil
	})
}

// burnWithBatches records a key as burnt and every batch under it as revoked, and names their objects.
func (v *Vault) burnWithBatches(tx store.Tx, id, reason string) (objects []string, err error) {
	objects, err = v.burn(tx, func(k *MACKey) bool { return k.ID == id }, reason)
	if err != nil {
		return nil, err
	}
	revoked, err := v.revoke(tx, func(b *Batch) bool { return b.MACKey == id }, reason)
	return append(objects, revoked...), err
}
