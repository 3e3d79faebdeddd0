package threshold

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	mk "github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/multikey/keys"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/session"
)

// records are what owners have published.
type records map[mk.KeyID]*multikey.Record

func (r records) Owner(id mk.KeyID) (*multikey.Record, bool) {
	x, known := r[id]
	return x, known
}

// What a party says of keys that it does not have, by what their owners have published. Party 0 asks itself, of a roster of three.
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
		"nobody's, as its own":                        {records{}, 0, rpc.UnknownKey, "party 0 has no multi-key keys"},
		"nobody's, and no registry":                   {nil, 0, rpc.UnknownKey, "party 0 has no multi-key keys"},
		"another's, as its own":                       {records{id: record(1, false)}, 0, rpc.WrongOwner, "those of party 1"},
		"of one that has left, as its own":            {records{id: record(3, false)}, 0, rpc.UnknownKey, "has left the roster"},
		"what it has published and has lost":          {records{id: record(0, false)}, 0, rpc.UnknownKey, "party 0 has no multi-key keys"},
		"what another has revoked":                    {records{id: record(2, true)}, 2, rpc.RetiredKey, "version 5 of the multi-key keys of party 2"},
		"another's":                                   {records{id: record(2, false)}, 2, "", ""},
		"another's, of whom nothing is known":         {records{}, 2, "", ""},
		"another's, which somebody else has revoked":  {records{id: record(1, true)}, 2, "", ""},
		"another's, which one that has left claims":   {records{id: record(3, true)}, 2, "", ""},
		"another's, which this party claims in error": {records{id: record(0, true)}, 2, "", ""},
	} {
		s.Directory = x.known
		err := s.published(id, x.owner)
		if x.code == "" && err != nil || x.code != "" && (err == nil || rpc.FromError(err).Code != x.code || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
