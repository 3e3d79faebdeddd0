package triple

import (
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kind"
)

// maxDim is the largest block that a plan chooses by itself.
const maxDim = 128

// What a plan that chooses its blocks may hold, unless the largest blocks take more: what leaves room for keys where a party
// gives its sessions 4 GiB. It is by the estimate for so many workers, as the choice is the same at every party.
const (
	maxChosenBytes = 3 << 30
	chosenWorkers  = 8
)

// worthwhile is what smaller blocks must save, as they take more memory and make more tuples at a time.
const worthwhile = 0.9

// chooseDim gives the plan with the blocks that cost least for a tuple. Blocks as large as the largest side suit squares: they
// transform every operand once. Of skewed shapes they are mostly padding. Smaller ones have less of it and put more tuples side
// by side, in more ciphertexts, which memory bounds. plan makes the plan for a dimension; the error is that for the largest.
func chooseDim(most int, s kind.MatrixShape, plan func(dim int) (*Plan, error)) (*Plan, error) {
	largest := s.Largest()
	dim := max(1, min(1<<bits.Len(uint(largest-1)), maxDim, most))
	best, err := plan(dim)
	if s.Rows == s.Inner && s.Inner == s.Cols {
		return best, err
	}
	bound := int64(maxChosenBytes)
	if err == nil {
		bound = max(bound, best.MemoryBytes(chosenWorkers))
	}
	for dim /= 2; dim >= 1; dim /= 2 {
		p, refused := plan(dim)
		if refused != nil || p.MemoryBytes(chosenWorkers) > bound {
			continue
		}
		if best == nil || p.cost() < worthwhile*best.cost() {
			best = p
		}
	}
	if best != nil {
		return best, nil
	}
	return nil, err
}

// cost is about what a tuple takes of a party's time.
func (p *Plan) cost() float64 { return float64(p.Transforms()) / float64(p.Count) }
