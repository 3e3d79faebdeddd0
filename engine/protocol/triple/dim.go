package triple

import (
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kind"
)

// maxDim is the largest block that a plan chooses.
const maxDim = 128

// Memory limit of a plan that chooses its blocks, unless the largest blocks need more. It leaves
// memory for keys at a party that gives its sessions 4 GiB. The estimate assumes a fixed number of
// workers, because every party must make the same choice.
const (
	maxChosenBytes = 3 << 30
	chosenWorkers  = 8
)

// worthwhile is the factor by which smaller blocks must reduce the cost, because they need more
// memory and make more tuples at a time.
const worthwhile = 0.9

// chooseDim returns the plan with the blocks that cost least for each tuple. Blocks as large as the
// largest side suit square matrices: they transform every operand once. For skewed shapes they are
// mostly padding. Smaller blocks have less padding and put more tuples side by side, in more
// ciphertexts, which memory bounds. plan makes the plan for a dimension; the error is that of the
// largest.
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

// cost is proportional to a party's approximate computing time for one tuple.
func (p *Plan) cost() float64 { return float64(p.Transforms()) / float64(p.Count) }
