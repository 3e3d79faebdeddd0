package catalogue

import (
	"errors"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
)

// Every set of every scheme is found, under a name and a hash that no other set has.
func TestEverySetIsListed(t *testing.T) {
	names, hashes := map[string]bool{}, map[[32]byte]bool{}
	check := func(name string, hash [32]byte, insecure, threshold, own bool, legacy error) {
		t.Helper()
		s, err := Lookup(name)
		if err != nil || s.Name != name || s.Hash != hash || s.Insecure != insecure || s.Threshold != threshold || s.Multikey != own {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		var want, got *LegacyError
		if errors.As(legacy, &want) != errors.As(s.Legacy, &got) || want != nil && *want != *got {
			t.Errorf("%s: legacy %v, want %v", name, s.Legacy, legacy)
		}
		if names[name] || hashes[hash] {
			t.Errorf("%s has the name or the hash of another set", name)
		}
		names[name], hashes[hash] = true, true
	}
	for _, s := range params.Sets() {
		check(s.Name, s.Hash(), s.Insecure, false, false, nil)
		if c, _ := Lookup(s.Name); c.Proved != (s.KeygenSecurity() == params.Proved) || len(c.Fields) != len(s.Fields) {
			t.Errorf("%s: proved %v, %d fields", s.Name, c.Proved, len(c.Fields))
		}
	}
	for _, s := range lwe.Sets() {
		check(s.Name, s.Hash(), s.Insecure, true, false, s.CheckNewKeys())
	}
	for _, s := range bgv.Sets() {
		check(s.Name, s.Hash(), s.Insecure, true, false, nil)
	}
	for _, s := range multikey.Sets() {
		check(s.Name, s.Hash(), s.Insecure, true, true, s.CheckNewKeys())
	}
}

func TestUnknownSet(t *testing.T) {
	var unknown *keyset.UnknownError
	_, err := Lookup("S99")
	if !errors.As(err, &unknown) || unknown.Scheme != "params" {
		t.Errorf("unknown set: %v", err)
	}
	for _, known := range []string{params.Default, lwe.Default, bgv.Default, multikey.Default} {
		if !strings.Contains(err.Error(), known) {
			t.Errorf("the error does not list %s: %v", known, err)
		}
	}
	if _, err := Multikey(lwe.Default); !errors.As(err, &unknown) || unknown.Scheme != "multikey" {
		t.Errorf("a set of threshold keys: %v", err)
	}
}
