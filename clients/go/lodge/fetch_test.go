package lodge

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
)

// Whatever a party says of its batch, the client refuses it or writes a manifest that it can read again.
func FuzzManifest(f *testing.F) {
	for _, r := range []*triplesv1.FetchResponse{
		{Batch: &triplesv1.Batch{Id: "b-1", Params: "S14-32", Field: "p128", Kind: jobv1.Kind_KIND_SCALAR, Count: 3, Epoch: 1}, MacKeyShare: make([]byte, 16)},
		{
			Batch: &triplesv1.Batch{
				Id: "b-2", Params: "S14-32", Field: "p64", Kind: jobv1.Kind_KIND_MATRIX, Count: 1, Epoch: 1, Shape: &jobv1.Shape{Rows: 2, Inner: 3, Columns: 4},
			},
			MacKeyShare: bytes.Repeat([]byte{1}, 8),
		},
		{
			Batch: &triplesv1.Batch{
				Id: "b-3", Params: "S14-32", Field: "p64", Kind: jobv1.Kind_KIND_INPUT, Count: 4, Epoch: 1, InputParty: 1,
			},
			MacKeyShare: bytes.Repeat([]byte{1}, 8),
		},
		{Batch: &triplesv1.Batch{Params: "S14-32", Field: "p128"}, MacKeyShare: bytes.Repeat([]byte{255}, 16)},
		{},
	} {
		b, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := new(triplesv1.FetchResponse)
		if proto.Unmarshal(b, r) != nil {
			return
		}
		m, size, err := manifest(r, Origin{Parties: 3, Party: 1, KeygenSecurity: "passive"})
		if err != nil {
			return
		}
		p, err := verify.Modulus(m.Params, m.Field)
		if err != nil || size != (p.BitLen()+7)/8 || m.Modulus != p.String() {
			t.Fatalf("elements of %d bytes for %s: %v", size, m.Field, err)
		}
		dir := t.TempDir()
		w, err := tuplefile.Create(dir, m, size)
		if err != nil {
			if !errors.Is(err, tuplefile.ErrManifest) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		if err := w.Abort(); err != nil {
			t.Error(err)
		}
	})
}
