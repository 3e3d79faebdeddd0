package lwe

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"

	"github.com/lodge-mpc/lodge/engine/sample"
)

// Tests every variance that parties use under the sets, for small and large groups.
func variances() (list []float64) {
	for _, s := range Sets() {
		for _, n := range []int{1, 3, 21} {
			t := (n - 1) / 2
			list = append(list, PartyVariance(s.Variance, n, t), PartyVariance(s.SwitchVariance, n, t))
		}
	}
	return append(list, minVariance, 1<<29, 1<<30, 1<<31, 1<<33, 1<<62, 1<<70)
}

// Second and fourth moments are those of a Gaussian. With 2^16 samples their deviations are 0.55
// and 1.3 %.
func TestErrorsHaveTheirVariance(t *testing.T) {
	const count = 1 << 16
	v := make([]int64, count)
	for _, variance := range variances() {
		e, err := NewErrors(variance)
		if err != nil {
			t.Fatal(err)
		}
		e.Sample(v, sample.NewSource(make([]byte, 32)).Stream("errors"))
		var first, second, fourth float64
		for _, x := range v {
			y := float64(x) / math.Sqrt(variance)
			first, second, fourth = first+y, second+y*y, fourth+y*y*y*y
		}
		first, second, fourth = first/count, second/count, fourth/count
		if math.Abs(first) > 0.02 || math.Abs(second-1) > 0.03 || math.Abs(fourth-3) > 0.2 {
			t.Errorf("variance %v: moments %v, %v and %v of a Gaussian's 0, 1 and 3", variance, first, second, fourth)
		}
		if e.Variance() != variance {
			t.Errorf("variance %v is called %v", variance, e.Variance())
		}
	}
}

// All residues modulo small numbers are alike, which a sum with a step that shows would not have.
func TestErrorsAreSmooth(t *testing.T) {
	const count = 1 << 17
	v := make([]int64, count)
	e, err := NewErrors(1 << 52)
	if err != nil {
		t.Fatal(err)
	}
	e.Sample(v, sample.NewSource(make([]byte, 32)).Stream("errors"))
	for _, m := range []int64{2, 3, 16, 1 << 8} {
		cells := make([]float64, m)
		for _, x := range v {
			cells[(x%m+m)%m]++
		}
		expected, chi := float64(count)/float64(m), 0.0
		for _, c := range cells {
			chi += (c - expected) * (c - expected) / expected
		}
		if limit := float64(m-1) + 6*math.Sqrt(2*float64(m)) + 10; chi > limit {
			t.Errorf("residues modulo %d have chi squared %v, over %v", m, chi, limit)
		}
	}
}

func TestErrorsRefuse(t *testing.T) {
	for _, variance := range []float64{0, 4.4, -1, math.NaN(), math.Inf(1), 1 << 71} {
		if _, err := NewErrors(variance); err == nil {
			t.Errorf("variance %v is accepted", variance)
		}
	}
}

// The values drawn from a source are fixed.
func TestErrorVectors(t *testing.T) {
	h := sha256.New()
	source := sample.NewSource(make([]byte, 32))
	v := make([]int64, 1000)
	put := func() {
		for _, x := range v {
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(x)))
		}
	}
	for i, variance := range variances() {
		e, err := NewErrors(variance)
		if err != nil {
			t.Fatal(err)
		}
		e.Sample(v, source.Stream("errors", uint64(i)))
		put()
	}
	Differences(v, source.Stream("differences"))
	put()
	const want = "afacca8787f373d0c37a2f7470e1007c32fb2d2a66077529ac4e4b408a754b55"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("samples have the digest %s, want %s", got, want)
	}
}

func TestDifferences(t *testing.T) {
	const count = 1 << 16
	v := make([]int64, count)
	Differences(v, sample.NewSource(make([]byte, 32)).Stream("differences"))
	cells := map[int64]int{}
	for _, x := range v {
		cells[x]++
	}
	for x, want := range map[int64]int{-1: count / 4, 0: count / 2, 1: count / 4} {
		if d := cells[x] - want; d < -1000 || d > 1000 { // eight deviations
			t.Errorf("%d occurs %d times, want %d", x, cells[x], want)
		}
	}
	if len(cells) != 3 {
		t.Errorf("values are %v", cells)
	}
}
