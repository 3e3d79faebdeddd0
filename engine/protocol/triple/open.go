package triple

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Bits and inverses are made of products that all parties open: a^2, whose root s gives the bit
// (a/s + 1)/2, and a b, which gives the inverse b/(a b) of a. The differences between the products
// and the opened values must be zero: the MAC check of the batch opens a combination of them before
// any share is released. A tuple whose product is 0 is dropped.

const productsName = "triple/products"

// opening waits for the shares of the products.
type opening struct{ *batch }

// open broadcasts this party's shares of the products. The hook triple/products gets them
// (field.Vec).
func (r *batch) open() (round.Transition[Result], error) {
	if r.Opening != nil {
		if err := r.Opening(); err != nil {
			return round.Transition[Result]{}, err
		}
		r.Opening = nil // the MAC check is part of the same opening
	}
	return round.Next(round.Round[Result](opening{r}), round.Message{
		To: round.All, Name: productsName, Body: round.Encoded(r.result.C, r.Scheme.Field.Encoding),
	}), nil
}

func (r opening) Wants() []round.Want {
	size := int64(r.Plan.Count) * int64(r.Scheme.Field.Size())
	return r.Session.Each(round.Want{Name: productsName, MaxBytes: size, Broadcast: true})
}

func (r opening) Step(ctx context.Context, in round.Inbox) (round.Transition[Result], error) {
	f := r.Scheme.Field
	opened, err := r.addUp(in, productsName, r.result.C)
	if err != nil {
		return round.Transition[Result]{}, err
	}
	// The products minus the opened values, and their MACs, are zero. They replace the products.
	zero := maccheck.Pair{Value: r.result.C, MAC: r.result.MACC}
	r.own(zero)
	r.subtract(zero, opened)
	//lodge:check triple/opened-products [run=Opened|TestEveryValueOfEveryKind|TestCheats] opened
	//  squares and products need not match their shares
	r.zeros = append(r.zeros, zero)
	r.result.C, r.result.MACC = f.NewVec(0), f.NewVec(0)
	factors, kept, err := r.factors(ctx, opened)
	if err != nil {
		return round.Transition[Result]{}, err
	}
	return r.check(func() { r.finish(factors, kept) })
}

// addUp returns the sum of this party's shares and of the shares that the other parties broadcast.
func (r *batch) addUp(in round.Inbox, name string, own field.Vec) (field.Vec, error) {
	f := r.Scheme.Field
	sum, t := own.Clone(), f.NewVec(own.Len())
	for p := range round.Party(r.Session.Parties) {
		if p == r.Session.Self {
			continue
		}
		//lodge:check triple/opened-decode [run=Opened|TestCheats|TestFaults|TestMasked] opened
		//  shares that are not canonical pass
		if err := f.DecodeVec(t, in.Bytes(p, name)); err != nil {
			return sum, round.Malformed(p, err)
		}
		f.AddVec(sum, sum, t)
	}
	return sum, nil
}

// subtract subtracts a public vector from shared values, and alpha times the vector from their
// MACs.
func (r *batch) subtract(from maccheck.Pair, public field.Vec) {
	f := r.Scheme.Field
	if r.Session.Self == 0 {
		f.SubVec(from.Value, from.Value, public)
	}
	t := f.NewVec(public.Len())
	f.ScaleVec(t, public, r.MAC.Share.At(0))
	f.SubVec(from.MAC, from.MAC, t)
	t.Wipe()
}

// factors returns the factors of the shares of the kept tuples: 1/s for the roots s of squares, or
// the inverses of products. It is slow, so it runs before the MAC check, whose failure would cost
// the MAC key.
func (r *batch) factors(ctx context.Context, opened field.Vec) (factors field.Vec, kept []int, err error) {
	f := r.Scheme.Field
	for i := range opened.Len() {
		//lodge:check triple/zero-products [swap=!f.IsZero(opened.At(i))=>true]
		//  [run=TestZeroProducts] tuples with a factor that everybody knows to be zero are kept
		if !f.IsZero(opened.At(i)) {
			copy(opened.At(len(kept)), opened.At(i))
			kept = append(kept, i)
		}
	}
	factors = opened.Slice(0, len(kept))
	roots := field.NewRoots(f)
	size := max(8, 1<<23/f.Bits()/f.Bits()) // some milliseconds
	err = parallel.Try(ctx, r.Workers, (len(kept)+size-1)/size, func(i int) error {
		part := factors.Slice(i*size, min((i+1)*size, len(kept)))
		for k := 0; r.Plan.Kind.Describe().Opening == kind.Roots && k < part.Len(); k++ {
			//lodge:check triple/opened-squares [run=Opened|TestKinds|TestBits|TestCheats]
			//  [redundant=the MAC check of the same batch finds such a value] a bit is made of a
			//  value that is not a square
			if !roots.Sqrt(part.At(k), part.At(k)) {
				return &round.Abort{Check: maccheck.CheckZero, Reason: "an opened value is not a square"}
			}
		}
		f.InverseVec(part, part)
		return ctx.Err()
	})
	return factors, kept, err
}

// finish computes the shares of bits, (a/s + 1)/2, or of inverses, b/(a b). The square determines
// which of its roots s is.
func (r *batch) finish(factors field.Vec, kept []int) {
	f, result := r.Scheme.Field, r.result
	result.Count = len(kept)
	keep := func(v *field.Vec) {
		for to, from := range kept {
			copy(v.At(to), v.At(from))
		}
		v.Slice(len(kept), v.Len()).Wipe()
		*v = v.Slice(0, len(kept))
	}
	keep(&result.A)
	keep(&result.MACA)
	if r.Plan.Kind.Describe().Opening == kind.Inverses {
		keep(&result.B)
		keep(&result.MACB)
		f.MulVec(result.B, result.B, factors)
		f.MulVec(result.MACB, result.MACB, factors)
		return
	}
	half, two, one := f.NewElement(), f.NewElement(), f.NewElement()
	f.SetUint64(two, 2)
	f.Inverse(half, two)
	if r.Session.Self == 0 {
		one = f.One()
	}
	for _, x := range []struct {
		shares field.Vec
		one    field.Element
	}{{result.A, one}, {result.MACA, r.MAC.Share.At(0)}} {
		f.MulVec(x.shares, x.shares, factors)
		for i := range x.shares.Len() {
			f.Add(x.shares.At(i), x.shares.At(i), x.one)
		}
		f.ScaleVec(x.shares, x.shares, half)
	}
}
