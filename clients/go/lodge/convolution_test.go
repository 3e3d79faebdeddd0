package lodge

import (
	"errors"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/proto/wire"
)

func TestConvolutionClasses(t *testing.T) {
	c := &Client{config: Config{Tenant: "dev", Params: "S14-32"}}
	shape := tuplefile.Convolution{
		Channels: 2, Height: 4, Width: 3, Outputs: 3, KernelHeight: 3, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1, PaddingHeight: 1,
	}
	w, err := c.wire(Class{Kind: tuplefile.ConvolutionKind, Field: "p128", Convolution: shape})
	if err != nil || wire.Shape(w.GetShape()).Convolution != shape || w.GetShape().GetRows() != 0 {
		t.Errorf("%v, %v", w, err)
	}
	if n := (Class{Kind: tuplefile.ConvolutionKind, Convolution: shape}).elements(0); n != 2*(24+36+24) {
		t.Errorf("a record of %d elements", n)
	}
	if n := (Class{Kind: tuplefile.ConvolutionKind}).elements(0); n != 0 {
		t.Errorf("a record of %d elements without a shape", n)
	}
	bad := shape
	bad.StrideWidth = 0
	for name, x := range map[string]Class{
		"no stride":   {Kind: tuplefile.ConvolutionKind, Convolution: bad},
		"two shapes":  {Kind: tuplefile.ConvolutionKind, Convolution: shape, Rows: 1, Inner: 1, Columns: 1},
		"another one": {Kind: "convolutions", Convolution: shape},
	} {
		if _, err := c.wire(x); !errors.Is(err, &Error{Code: Invalid}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	elements := make([]Element, 24)
	for i := range elements {
		elements[i] = Element{byte(i)}
	}
	if y := (Tensor{[]int{2, 3, 4}, elements}); y.At(1, 2, 3)[0] != 23 || y.At(1, 0, 1)[0] != 13 {
		t.Error("elements are not in row-major order")
	}
}

// The values of a record are in the order of the format.
func TestConvolutionsOfAStream(t *testing.T) {
	shape := tuplefile.Convolution{Channels: 1, Height: 2, Width: 2, Outputs: 1, KernelHeight: 2, KernelWidth: 1, StrideHeight: 1, StrideWidth: 1}
	record := make([]byte, 2*(4+2+2))
	for i := range record {
		record[i] = byte(i)
	}
	read := func(kind string) (all []ConvolutionTriple, err error) {
		s := &Shares{
			Reservation: &Reservation{Count: 2, Class: Class{Kind: kind, Convolution: shape}}, ElementBytes: 1, TupleBytes: len(record),
			chunk: append(slices.Clone(record), record...), done: true, stop: func() {},
		}
		for x := range s.Convolutions() {
			all = append(all, x)
		}
		return all, s.Err()
	}
	all, err := read(tuplefile.ConvolutionKind)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d tuples, %v", len(all), err)
	}
	x := all[1]
	for i, e := range []Element{
		x.X.At(0, 0, 0), x.X.At(0, 1, 1), x.W.At(0, 0, 0, 0), x.W.At(0, 0, 1, 0), x.Y.At(0, 0, 0), x.Y.At(0, 0, 1),
		x.MACX.At(0, 0, 1), x.MACW.At(0, 0, 1, 0), x.MACY.At(0, 0, 1),
	} {
		if want := []byte{0, 3, 4, 5, 6, 7, 9, 13, 15}[i]; e[0] != want {
			t.Errorf("element %d is number %d of the record, want %d", i, e[0], want)
		}
	}
	for _, of := range []struct {
		kind                  string
		party, values, clears int
	}{{tuplefile.Scalar, 0, 3, 0}, {tuplefile.Input, 0, 1, 1}, {tuplefile.Input, 1, 1, 0}} {
		class := Class{Kind: of.kind}
		record := make([]byte, class.elements(of.party))
		s := &Shares{Reservation: &Reservation{Count: 1, Class: class}, ElementBytes: 1, TupleBytes: len(record), chunk: record, done: true, stop: func() {}}
		for x := range s.Tuples() {
			if len(x.Values) != of.values || len(x.MACs) != of.values || len(x.Clear) != of.clears || len(x.MACs[0].Elements) != 1 {
				t.Errorf("%v at party %d: %v", of.kind, of.party, x)
			}
		}
		if s.Err() != nil {
			t.Error(s.Err())
		}
	}
	if _, err := read(tuplefile.Matrix); !errors.Is(err, &Error{Code: Invalid}) {
		t.Errorf("matrices as convolutions: %v", err)
	}
}
