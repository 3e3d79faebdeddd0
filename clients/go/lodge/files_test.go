package lodge

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// Whatever a party says about its batch, the client refuses it or writes a manifest that it can
// read again.
func FuzzManifest(f *testing.F) {
	for _, r := range []*tuplesv1.Reservation{
		{Id: "b-1", Count: 3, Epoch: 1, Class: &tuplesv1.Class{Params: "S14-32", Field: "p128", Kind: jobv1.Kind_KIND_SCALAR}},
		{Id: "b-2", Count: 1, Epoch: 1, Class: &tuplesv1.Class{
			Params: "S14-32", Field: "p64", Kind: jobv1.Kind_KIND_MATRIX, Shape: &jobv1.Shape{Rows: 2, Inner: 3, Columns: 4},
		}},
		{Id: "b-3", Count: 4, Epoch: 1, Class: &tuplesv1.Class{Params: "S14-32", Field: "p64", Kind: jobv1.Kind_KIND_INPUT, InputParty: 1}},
		{Id: "b-4", Count: 4, Epoch: 1, Class: &tuplesv1.Class{Params: "S14-32", Field: "p64", Kind: jobv1.Kind_KIND_BIT, NoSacrifice: true}},
		{Id: "b-5", Count: 4, Epoch: 1, Class: &tuplesv1.Class{Params: "S14-32", Field: "p64", Kind: jobv1.Kind_KIND_RANDOM, NoSacrifice: true}},
		{Id: "b-6", Count: 1, Epoch: 1, Class: &tuplesv1.Class{
			Params: "S14-32", Field: "p64", Kind: jobv1.Kind_KIND_CONVOLUTION, Shape: &jobv1.Shape{Convolution: &jobv1.Convolution{
				Channels: 2, Height: 4, Width: 3, Outputs: 3, KernelHeight: 3, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1, PaddingHeight: 1,
			}},
		}},
		{Class: &tuplesv1.Class{Params: "S14-32", Field: "p128"}},
		{},
	} {
		b, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, make([]byte, 16))
		f.Add(b, bytes.Repeat([]byte{255}, 8))
	}
	f.Fuzz(func(t *testing.T, b, key []byte) {
		r := new(tuplesv1.Reservation)
		if proto.Unmarshal(b, r) != nil {
			return
		}
		m, size, err := ManifestOf(r, key, Origin{Parties: 3, Party: 1, KeygenSecurity: "passive"})
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
