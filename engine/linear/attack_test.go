package linear

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/ring"
)

// Attacks by a client with a malformed input on the matrix with which the party multiplies the
// input. An honest input has a phase on the grid Z/T, up to noise, and the flood spreads the phase
// of every answer over one cell of the grid. The attacker encrypts an input whose phase is a
// fraction f of a cell. The answer at the place of entry x then lies around f x, and wherever the
// flood leaves a part of the cell empty, the position of the gap reveals f x modulo 1.

// target is a row of entries that a client attacks with one input for each product.
type target struct {
	*world
	plan   *VectorPlan
	row    []uint64
	packed []uint64
}

func newTarget(t *testing.T, set string, most uint64) *target {
	t.Helper()
	w := newWorld(t, set)
	p, err := w.PlanVector(1, w.N(), Forward, 1)
	if err != nil || p.Blocks != 1 {
		t.Fatal(p, err)
	}
	x := &target{world: w, plan: p, row: w.residues(w.N()), packed: make([]uint64, w.N())}
	for i := range x.row {
		x.row[i] %= most
	}
	p.pack(x.packed, x.row, 0)
	return x
}

// worstCaseFlood returns the flood for the former worst-case bound on rounding, (1 + N)/2 + 2.
func (x *target) worstCaseFlood() *big.Int {
	e := big.NewInt(int64((x.Q[0]-1-x.T)/(2*x.T)) - int64(1+x.N())/2 - 2)
	for _, q := range x.Q[1:] {
		e.Mul(e, new(big.Int).SetUint64(q))
	}
	noise, _ := big.NewFloat(x.plan.noise).Int(nil)
	return e.Sub(e, noise)
}

// malformed returns an encryption of 0 whose phase has f/T added at coefficient 0, as its owner
// would send it.
func (x *target) malformed(t *testing.T, f float64) *Inputs {
	t.Helper()
	x.renew()
	in := x.encrypted(t, 1, 0)
	cell, _ := new(big.Float).Quo(new(big.Float).SetInt(x.basis.Modulus()), new(big.Float).SetUint64(x.T)).Int(nil)
	const unit = 1 << 40
	coefficients := make([]*big.Int, x.N())
	for k := range coefficients {
		coefficients[k] = new(big.Int)
	}
	shift := coefficients[0]
	shift.Mul(cell, big.NewInt(int64(f*unit))).Rsh(shift, 40)
	p := x.basis.NewPoly()
	x.basis.FromBig(p, coefficients)
	x.basis.Forward(ring.NTT(p), p)
	x.basis.AddNTT(in.b[0], in.b[0], ring.NTT(p))
	return in
}

// evaluator accepts an input without verifying its proof.
func (x *target) evaluator(in *Inputs) *VectorEvaluator {
	return &VectorEvaluator{plan: x.plan, key: x.public, b: in.b, a: []ring.NTT{x.expand(&in.seed, "linear input", 0)}}
}

// answer returns the positions in their cells, in [0, 1), of the phases of an answer under a flood.
func (x *target) answer(e *VectorEvaluator, flood *big.Int) []float64 {
	c0, c1 := e.multiply(x.row)
	b, a := x.public.finish(c0, c1, x.mask(x.source()), flood, x.source())
	positions, step := make([]float64, x.N()), float64(x.Q[0])/float64(x.T)
	for k, v := range x.phase(b, a).C[0] {
		positions[k] = math.Mod(float64(v), step) / step
	}
	return positions
}

// guesses attacks the first coefficients of the row, each of which has the given number of possible
// values, with one input and answer for each fraction. It returns how many of the attacker's
// guesses are right. A guess is the value that puts the fewest answers into the gap.
func (x *target) guesses(t *testing.T, flood *big.Int, fractions []float64, coefficients, values int) (right int) {
	t.Helper()
	whole, _ := new(big.Float).Quo(new(big.Float).SetInt(x.basis.Modulus()), new(big.Float).SetUint64(2*x.T)).Float64()
	reach, _ := new(big.Float).SetInt(flood).Float64()
	edge := reach/whole/2 + 0.002 // half of the part of a cell that flood and rounding errors reach
	misses := make([]int, coefficients*values)
	for _, f := range fractions {
		positions := x.answer(x.evaluator(x.malformed(t, f)), flood)
		for i := range misses {
			if d := positions[i/values] - f*float64(i%values); math.Abs(d-math.Round(d)) > edge {
				misses[i]++
			}
		}
	}
	for k := range coefficients {
		of := misses[k*values : (k+1)*values]
		first := x.below(values) // among equally good values the attacker chooses one at random
		best := first
		for i := range values {
			if v := (first + i) % values; of[v] < of[best] {
				best = v
			}
		}
		if x.packed[k]%uint64(values) == uint64(best) {
			right++
		}
	}
	return right
}

// spread returns random fractions of a cell.
func (x *target) spread(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(x.random.Uint64()>>24) / (1 << 40)
	}
	return list
}

// halves returns n times half of a cell.
func halves(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = 0.5
	}
	return list
}

// Under the flood of the worst-case bound 180 products recover 62 of 64 entries of 12 bits. Under
// the shipped flood they recover no more than guessing does, even without proofs.
func TestFractionalInputsTellEntries(t *testing.T) {
	const products, entries, values = 180, 64, 1 << 12
	x := newTarget(t, Unproved, values)
	if right := x.guesses(t, x.worstCaseFlood(), x.spread(products), entries, values); right < 62 {
		t.Errorf("under the flood of the worst-case bound %d of %d entries are found: the attack does not work", right, entries)
	}
	if right := x.guesses(t, x.plan.bound, x.spread(products), entries, values); right > 2 { // 3 by chance: 2^-20
		t.Errorf("%d of %d entries are found after %d products", right, entries, products)
	}
}

// Where inputs are proved, an input with a fraction of a cell is refused. Proofs have slack 2, so a
// proof could only miss phases of half a cell. The evaluator doubles its ciphertexts, so these
// products reveal nothing.
func TestProvedInputsTellNothing(t *testing.T) {
	const products = 180
	x := newTarget(t, DefaultVector, 1<<12)
	for _, f := range []float64{0.5, 0.25, 1.0 / 3, 0x1p-12} {
		if _, err := x.plan.Evaluator(x.public, x.received(t, x.malformed(t, f))); !errors.Is(err, ErrProof) {
			t.Errorf("an input with a phase of %v of a cell is accepted: %v", f, err)
		}
	}
	n := x.N()
	right := x.guesses(t, x.plan.bound, halves(products), n, 2)
	if off := math.Abs(float64(right - n/2)); off > 3*math.Sqrt(float64(n)) { // six standard deviations
		t.Errorf("%d of %d parities are found", right, n)
	}
}

// Proofs are the default because the smaller gap slows the attack on unproved inputs down but does
// not stop it. An input with a phase of half a cell reveals whether each entry is odd: now after
// hundreds of products, before after dozens.
func TestUnprovedInputsTellParities(t *testing.T) {
	x := newTarget(t, Unproved, 1<<12)
	n := x.N()
	if right := x.guesses(t, x.worstCaseFlood(), halves(60), n, 2); right < n*99/100 {
		t.Errorf("under the flood of the worst-case bound %d of %d parities are found: the attack does not work", right, n)
	}
	if right := x.guesses(t, x.plan.bound, halves(240), n, 2); right < n*7/10 {
		t.Errorf("under the shipped flood %d of %d parities are found: the documentation is wrong", right, n)
	}
}
