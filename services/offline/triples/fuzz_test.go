package triples

import (
	"bytes"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// A stored MAC key is rejected unless it is the canonical encoding of the decoded key.
func FuzzStoredMACKey(f *testing.F) {
	set, err := params.Lookup("insecure-6")
	if err != nil {
		f.Fatal(err)
	}
	s, err := gbfv.New(set, set.Fields[0])
	if err != nil {
		f.Fatal(err)
	}
	key := gbfvtest.New(s, 2, 1, bytes.Repeat([]byte{1}, 32))
	r := &run{scheme: s, mac: triple.MACKey{Ciphertext: key.Encrypt(key.Random(1), 1), Share: key.Random(2).Slice(0, 1)}}
	valid := newMACKey(r, stock.Batch{}).Secret
	f.Add(valid)
	f.Add(valid[:len(valid)-1])
	f.Add(valid[:len(valid)-2])
	f.Add(append(bytes.Clone(valid), 0, 0))
	f.Add(bytes.Repeat([]byte{255}, len(valid)))
	f.Add(valid[:s.Field.Size()])
	f.Add(append(bytes.Repeat([]byte{255}, s.Field.Size()), valid[s.Field.Size():]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMACKey(b, s)
		if err != nil {
			return
		}
		if again := newMACKey(&run{scheme: s, mac: m}, stock.Batch{}).Secret; !bytes.Equal(again, b) {
			t.Error("another encoding was accepted")
		}
	})
}
