package party

import (
	"fmt"
	"log/slog"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
)

// checkPins compares the pinned hashes with the sets of this build and logs which sets are legacy.
func checkPins(f *config.PartyFile, log *slog.Logger) error {
	for _, pin := range f.Policy.Params {
		set, err := plan.Lookup(pin.Name)
		if err != nil {
			return err
		}
		if set.Hash != pin.Sum() {
			return fmt.Errorf("party: parameter set %s has the hash %x in this build, but %s is pinned", pin.Name, set.Hash, pin.Hash)
		}
		if set.Insecure && !f.AllowInsecureParams {
			return fmt.Errorf("party: parameter set %s is insecure; remove it, or set allow_insecure_params in a test", pin.Name)
		}
		for _, text := range plan.Warnings(pin.Name) {
			log.Warn("a pinned parameter set makes no new keys", "set", pin.Name, "reason", text)
		}
	}
	return nil
}

// newKeys rejects new keys of legacy sets, except at a party for tests of existing keys.
func (p *party) newKeys() func(name string) error {
	if p.seam.LegacyKeys {
		return nil
	}
	return func(name string) error {
		set, err := plan.Lookup(name)
		if err != nil {
			return err
		}
		return set.CheckNewKeys()
	}
}
