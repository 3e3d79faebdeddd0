package triples

import (
	"bytes"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// Only a failure of this party's own check counts as one here; messages of peers need their
// signature.
func TestOnlyTheOwnCheckFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&runner.Failure{Outcome: runner.Aborted, Check: maccheck.CheckMAC}, true},
		{&runner.Failure{Outcome: runner.Aborted, Check: maccheck.CheckZero}, true},
		{&runner.Failure{Outcome: runner.Aborted, Check: maccheck.CheckSacrifice}, true},
		{&runner.Failure{Outcome: runner.Aborted, Check: round.CheckEcho}, false},
		{&runner.Failure{Outcome: runner.PeerAbort, Check: maccheck.CheckMAC}, false},
		{&runner.Failure{Outcome: runner.Blamed, Check: maccheck.CheckMAC}, false},
		{errors.New("else"), false},
	} {
		if got := failedHere(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// Shares are written tuple by tuple, however many are encoded at a time.
func TestSharesAreWrittenTupleByTuple(t *testing.T) {
	set, err := params.Lookup("insecure-8")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p64", "p128", "p256"} {
		spec, err := set.Field(name)
		if err != nil {
			continue
		}
		f, err := field.New(spec.B, spec.M)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			plan  triple.Plan
			count int
			clear bool
		}{
			{triple.Plan{Kind: kind.Scalar}, 1, false}, {triple.Plan{Kind: kind.Scalar}, 3000, false},
			{triple.Plan{Kind: kind.Input}, 3000, false}, {triple.Plan{Kind: kind.Input}, 3000, true},
			{triple.Plan{Kind: kind.Matrix, Shape: kind.Shape{Matrix: kind.MatrixShape{Rows: 2, Inner: 3, Cols: 5}}}, 100, false},
			{triple.Plan{Kind: kind.Matrix, Shape: kind.Shape{Matrix: kind.MatrixShape{Rows: 40, Inner: 40, Cols: 40}}}, 2, false},
		} {
			na, nb, nc := c.plan.Elements()
			draw := func(label uint64, n int) field.Vec {
				v := f.NewVec(n * c.count)
				if err := f.Random(v, sample.NewSource(make([]byte, 32)).Stream("share", label)); err != nil {
					t.Fatal(err)
				}
				return v
			}
			r := &triple.Result{Count: c.count, A: draw(0, na), B: draw(1, nb), C: draw(2, nc), MACA: draw(3, na), MACB: draw(4, nb), MACC: draw(5, nc)}
			if c.clear {
				r.Clear = draw(6, 1)
			}
			var got, want bytes.Buffer
			if err := writeShares(&got, f, &c.plan, r); err != nil {
				t.Fatal(err)
			}
			one := make([]byte, f.Size())
			for i := range c.count {
				for k, v := range []field.Vec{r.A, r.B, r.C, r.MACA, r.MACB, r.MACC} {
					n := []int{na, nb, nc}[k%3]
					for j := range n {
						f.Encode(one, v.At(i*n+j))
						want.Write(one)
					}
				}
				if c.clear {
					f.Encode(one, r.Clear.At(i))
					want.Write(one)
				}
			}
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("%s, %d tuples of %d, %d and %d: other bytes than one element after the other", name, c.count, na, nb, nc)
			}
		}
	}
}
