package triple

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Bits and inverses are made of products that all parties open: of a^2, whose root s gives the bit (a/s + 1)/2, and of
// a b, which gives the inverse b/(a b) of a. The MAC check of the batch opens a combination of the differences between the
// products and what was opened, which must be zero, before anything is released. A tuple whose product is 0 is dropped.

const productsName = "triple/products"

// opens reports whether products are opened.
func (k Kind) opens() bool { return k == Bit || k == Inverse }

// opening waits for the shares of the products.
type opening struct {
	*batch
	mask maccheck.Pair
}

// open broadcasts this party's shares of the products. The hook triple/products gets them (field.Vec).
func (r *batch) open(mask maccheck.Pair) (round.Transition[Result], error) {
	byzantine.Apply(r.Session.Hooks, productsName, r.result.C)
	payload := make([]byte, r.Plan.Count*r.Scheme.Field.Size())
	r.Scheme.Field.EncodeVec(payload, r.result.C)
	return round.Next(round.Round[Result](opening{r, mask}), round.Broadcast(productsName, payload)), nil
}

func (r opening) Wants() []round.Want {
	size := int64(r.Plan.Count) * int64(r.Scheme.Field.Size())
	return r.Session.Each(round.Want{Name: productsName, MaxBytes: size, Broadcast: true})
}

func (r opening) Step(_ context.Context, in round.Inbox) (round.Transition[Result], error) {
	f, c := r.Scheme.Field, r.result.C
	opened, t := c.Clone(), f.NewVec(c.Len())
	for p := range round.Party(r.Session.Parties) {
		if p == r.Session.Self {
			continue
		}
		if err := f.DecodeVec(t, in.Bytes(p, productsName)); err != nil {
			return round.Transition[Result]{}, round.Malformed(p, err)
		}
		f.AddVec(opened, opened, t)
	}
	// The products less what was opened, and their MACs, are zero. They take the place of the products.
	if r.Session.Self == 0 {
		f.SubVec(c, c, opened)
	}
	f.ScaleVec(t, opened, r.MAC.Share.At(0))
	f.SubVec(r.result.MACC, r.result.MACC, t)
	t.Wipe()
	zero := maccheck.Pair{Value: c, MAC: r.result.MACC}
	r.Session.Secrets.Own(zero.Value, zero.MAC)
	r.result.C, r.result.MACC = f.NewVec(0), f.NewVec(0)
	return r.check(r.mask, []maccheck.Pair{zero}, func(ctx context.Context) error {
		if r.Plan.Kind == Bit {
			return r.bits(ctx, opened)
		}
		return r.inverses(ctx, opened)
	})
}

// bits makes a the bits (a/s + 1)/2 for the roots s of their squares. Which root it is depends on the square alone.
func (r *batch) bits(ctx context.Context, squares field.Vec) error {
	f, result := r.Scheme.Field, r.result
	roots := field.NewRoots(f)
	half, two := f.NewElement(), f.NewElement()
	f.SetUint64(two, 2)
	f.Inverse(half, two)
	one, key := f.NewElement(), r.MAC.Share.At(0)
	if r.Session.Self == 0 {
		one = f.One()
	}
	r.keep(squares, &result.A, &result.MACA)
	return r.each(ctx, squares.Slice(0, result.Count), func(s field.Vec, from int) error {
		for i := range s.Len() {
			if !roots.Sqrt(s.At(i), s.At(i)) {
				return &round.Abort{Check: maccheck.CheckZero, Reason: "an opened square is none"}
			}
		}
		f.InverseVec(s, s)
		for i := range s.Len() {
			for _, x := range []struct{ value, one field.Element }{{result.A.At(from + i), one}, {result.MACA.At(from + i), key}} {
				f.Mul(x.value, x.value, s.At(i))
				f.Add(x.value, x.value, x.one)
				f.Mul(x.value, x.value, half)
			}
		}
		return nil
	})
}

// inverses makes b the inverses of a.
func (r *batch) inverses(ctx context.Context, products field.Vec) error {
	f, result := r.Scheme.Field, r.result
	r.keep(products, &result.A, &result.MACA, &result.B, &result.MACB)
	return r.each(ctx, products.Slice(0, result.Count), func(c field.Vec, from int) error {
		f.InverseVec(c, c)
		for _, v := range []field.Vec{result.B, result.MACB} {
			b := v.Slice(from, from+c.Len())
			f.MulVec(b, b, c)
		}
		return nil
	})
}

// keep drops the tuples whose opened product is 0.
func (r *batch) keep(opened field.Vec, shares ...*field.Vec) {
	n := 0
	for i := range opened.Len() {
		if r.Scheme.Field.IsZero(opened.At(i)) {
			continue
		}
		copy(opened.At(n), opened.At(i))
		for _, v := range shares {
			copy(v.At(n), v.At(i))
		}
		n++
	}
	for _, v := range shares {
		v.Slice(n, v.Len()).Wipe()
		*v = v.Slice(0, n)
	}
	r.result.Count = n
}

// each works on parts of v at the same time.
func (r *batch) each(ctx context.Context, v field.Vec, work func(part field.Vec, from int) error) error {
	const size = 512
	return parallel.Try(ctx, r.Workers, (v.Len()+size-1)/size, func(i int) error {
		from := i * size
		return work(v.Slice(from, min(from+size, v.Len())), from)
	})
}
