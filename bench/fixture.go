package bench

import (
	"context"
	"errors"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// fixture has the inputs for measuring the operations of one set. It is created for the first
// measurement.
type fixture struct {
	options *Options
	set     *params.Set

	scheme           *gbfv.Scheme
	source           *sample.Source
	keys             *jointKeys
	message, masking *sample.Gaussian // of plaintexts and of the randomness of encryption
	theirs           *rival
}

// prepare makes the scheme and keys for matrix blocks of the dimension, or takes those that it has.
func (f *fixture) prepare(ctx context.Context, dim int) (err error) {
	if f.scheme == nil {
		spec, err := f.set.Field(f.options.FieldOf(f.set))
		if err != nil {
			return err
		}
		i, err := popk.ClientInstance(f.set, spec.Name, f.options.PartyCount(), 1)
		if err != nil {
			return err
		}
		if f.message, err = sample.NewGaussian(i.WidthX); err != nil {
			return err
		}
		if f.masking, err = sample.NewGaussian(i.WidthR); err != nil {
			return err
		}
		f.source = sample.NewSource(seed)
		if f.scheme, err = gbfv.New(f.set, spec); err != nil {
			return err
		}
	}
	if f.keys == nil || f.keys.public.Dim < dim {
		f.keys, err = newKeys(ctx, f.scheme, f.options.PartyCount(), dim)
	}
	return err
}

// lattigo is the rival with the same degree and primes.
func (f *fixture) lattigo() (r *rival, err error) {
	if f.theirs == nil {
		f.theirs, err = newRival(f.set)
	}
	return f.theirs, err
}

// random is a vector of uniform slots.
func (f *fixture) random(index uint64) field.Vec {
	v := f.scheme.Field.NewVec(f.scheme.Slots())
	_ = f.scheme.Field.Random(v, f.source.Stream("slots", index)) // streams do not fail
	return v
}

// encrypt encrypts slots as provers do, sampling included.
func (f *fixture) encrypt(slots field.Vec, index uint64) *gbfv.Ciphertext {
	s, stream := f.scheme, f.source.Stream("encrypt", index)
	coeffs, mu := s.Field.NewVec(s.Slots()), intpoly.New(s.N(), s.MessageWords())
	s.Pack.Pack(coeffs, slots)
	s.RandPack(mu, coeffs, f.message, stream)
	var r [3]intpoly.Poly
	z := make([]int64, s.N())
	for i := range r {
		f.masking.Sample(z, stream)
		r[i] = intpoly.New(s.N(), 1)
		intpoly.FromInt64(r[i], z)
	}
	ct := s.NewCiphertext()
	s.EncryptWith(ct, f.keys.public.Public, mu, r)
	return ct
}

func (f *fixture) decrypt(ct *gbfv.Ciphertext) field.Vec {
	v := f.scheme.Field.NewVec(f.scheme.Slots())
	f.scheme.Decrypt(v, ct, f.keys.secret(f.scheme))
	return v
}

// product is a batch of pairs of matrices, and their ciphertexts.
type product struct {
	layout      gbfv.Layout // of the results
	batch       int
	left, right field.Vec // of the last pair, row-major
	a, b, out   gbfv.Grid
}

// product encrypts a batch of pairs of d x d matrices.
func (f *fixture) product(d int) (*product, error) {
	p := &product{}
	grid := func(order gbfv.Order, last *field.Vec, index uint64) (gbfv.Grid, error) {
		l, err := f.scheme.Layout(order, d, d, d)
		if err != nil {
			return gbfv.Grid{}, err
		}
		g := gbfv.Grid{Rows: 1, Cols: 1, Dim: d}
		var vectors []field.Vec
		for i := range uint64(l.Vectors()) {
			v := f.random(index + i)
			vectors = append(vectors, v)
			g.C = append(g.C, f.encrypt(v, index+i))
		}
		*last = f.scheme.Field.NewVec(d * d)
		l.Decode(*last, l.Batch()-1, vectors)
		p.batch = l.Batch()
		return g, nil
	}
	var err error
	if p.a, err = grid(gbfv.Diagonal, &p.left, 0); err != nil {
		return nil, err
	}
	if p.b, err = grid(gbfv.Shifted, &p.right, 1<<20); err != nil {
		return nil, err
	}
	p.layout, err = f.scheme.Layout(gbfv.Diagonal, d, d, d)
	return p, err
}

// check decrypts one ciphertext of the result and compares the entries of the last matrix in it.
func (p *product) check(f *fixture, out gbfv.Grid) error {
	const vector = 1
	d, fd, got := p.layout.Dim, f.scheme.Field, f.decrypt(out.C[vector])
	column, want := fd.NewVec(d), fd.NewElement()
	for slot := range got.Len() {
		t, row, col := p.layout.Entry(vector, slot)
		if t != p.batch-1 {
			continue
		}
		for k := range d {
			copy(column.At(k), p.right.At(k*d+col))
		}
		fd.Inner(want, p.left.Slice(row*d, (row+1)*d), column)
		if !fd.Equal(got.At(slot), want) {
			return errors.New("the product of matrices is wrong")
		}
	}
	return nil
}
