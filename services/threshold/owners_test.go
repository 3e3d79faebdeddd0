package threshold

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	mk "github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/multikey/keys"
	"github.com/lodge-mpc/lodge/services/session"
)

// records holds the owners' published records.
type records map[mk.KeyID]*multikey.Record

func (r records) Owner(id mk.KeyID) (*multikey.Record, bool) {
	x, known := r[id]
	return x, known
}

// A party's errors for keys that it does not have, according to the owners' published records. The
// requests are sent to party 0 of three.
func TestPublishedOwners(t *testing.T) {
	var signing []ed25519.PublicKey
	for i := range byte(4) {
		signing = append(signing, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{i}, ed25519.SeedSize)).Public().(ed25519.PublicKey))
	}
	record := func(owner int, revoked bool) *multikey.Record {
		return &multikey.Record{Signer: [32]byte(signing[owner]), Version: 5, Revoked: revoked}
	}
	id := mk.KeyID{7}
	s := &Service{Config: Config{Keys: keys.New(keys.Config{Party: 0})}}
	s.Sessions = &session.Registry{Config: session.Config{Self: 0, Keys: signing[:3]}}
	for name, x := range map[string]struct {
		known Directory
		owner uint32
		code  rpc.Code
		says  string
	}{
		"unknown keys, as its own":                                 {records{}, 0, rpc.UnknownKey, "party 0 has no multi-key keys"},
		"unknown keys, without a registry":                         {nil, 0, rpc.UnknownKey, "party 0 has no multi-key keys"},
		"another party's keys, as its own":                         {records{id: record(1, false)}, 0, rpc.WrongOwner, "those of party 1"},
		"keys of a party that left, as its own":                    {records{id: record(3, false)}, 0, rpc.UnknownKey, "has left the roster"},
		"published keys that the party has lost":                   {records{id: record(0, false)}, 0, rpc.UnknownKey, "party 0 has no multi-key keys"},
		"another party's revoked keys":                             {records{id: record(2, true)}, 2, rpc.RetiredKey, "version 5 of the multi-key keys of party 2"},
		"another's":                                                {records{id: record(2, false)}, 2, "", ""},
		"another party's keys without a record":                    {records{}, 2, "", ""},
		"another party's keys, with a revocation by a third party": {records{id: record(1, true)}, 2, "", ""},
		"another party's keys, claimed by a party that left":       {records{id: record(3, true)}, 2, "", ""},
		"another party's keys, which this party claims wrongly":    {records{id: record(0, true)}, 2, "", ""},
	} {
		s.Directory = x.known
		err := s.published(id, x.owner)
		if x.code == "" && err != nil || x.code != "" && (err == nil || rpc.FromError(err).Code != x.code || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
