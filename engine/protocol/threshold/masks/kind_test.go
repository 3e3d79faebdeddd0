package masks

import (
	"errors"
	"testing"
)

func paperKind(logEta, logPhi int) Kind { return Kind{Form: Paper, LogEta: logEta, LogPhi: logPhi} }

func exactKind(logEta, logPhi int) Kind { return Kind{Form: Exact, LogEta: logEta, LogPhi: logPhi} }

func TestKindsAreRefused(t *testing.T) {
	for _, k := range []Kind{
		{}, {Form: 3, LogEta: 10, LogPhi: 6}, paperKind(10, 0), paperKind(10, 9), paperKind(10, 10), paperKind(10, 11),
		paperKind(62, 58),
		paperKind(30, 13), exactKind(21, 17), exactKind(10, -1), exactKind(-10, -20),
		OddKind(0, 4), OddKind(1, 4), OddKind(16, 4), OddKind(65536, 4), OddKind(65537, 0), OddKind(65537, 17),
		OddKind(1<<58-1, 4),
		{Form: Paper, LogEta: 20, LogPhi: 3, Odd: 65537}, {Form: Exact, LogEta: 19, LogPhi: 3, Odd: 65537},
	} {
		if err := k.Check(); !errors.Is(err, ErrKind) {
			t.Errorf("%v: %v", k, err)
		}
	}
	for _, k := range []Kind{
		paperKind(50, 46), paperKind(53, 49), paperKind(61, 57), exactKind(10, 6), exactKind(3, 1), exactKind(20, 16),
		exactKind(32, 16),
		OddKind(3, 1), OddKind(65537, 3), OddKind(2130706433, 16), OddKind(1<<57-1, 4),
	} {
		if err := k.Check(); err != nil {
			t.Errorf("%v: %v", k, err)
		}
	}
}

// less evaluates [v < rho] on plaintext bits by the levels of products.
func less(k Kind, v, rho uint64) uint64 {
	type group struct{ g, e uint64 }
	var groups []group
	for i := 0; i < k.LogPhi; i += 2 {
		v0, r0 := v>>i&1, rho>>i&1
		g := group{r0 &^ v0, 1 ^ r0 ^ v0}
		if i+1 < k.LogPhi {
			v1, r1 := v>>(i+1)&1, rho>>(i+1)&1
			g = group{r1&^v1 | (1^r1^v1)&g.g, (1 ^ r1 ^ v1) & g.e}
		}
		groups = append(groups, g)
	}
	for _, level := range k.Levels() {
		next := make([]group, (len(groups)+1)/2)
		if len(groups)%2 == 1 {
			next[len(next)-1] = groups[len(groups)-1]
		}
		for _, a := range level {
			high, low := groups[a.High], groups[a.Low]
			if a.Equal {
				next[a.Low/2].e = high.e & low.e
			} else {
				next[a.Low/2].g = high.g ^ high.e&low.g
			}
		}
		groups = next
	}
	return groups[0].g
}

// The comparison is right for all pairs of numbers of up to 8 bits.
func TestComparison(t *testing.T) {
	for bits := 1; bits <= 8; bits++ {
		k := exactKind(bits+4, bits)
		for v := range uint64(1) << bits {
			for rho := range uint64(1) << bits {
				want := uint64(0)
				if v < rho {
					want = 1
				}
				if less(k, v, rho) != want {
					t.Fatalf("%d bits: [%d < %d]", bits, v, rho)
				}
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		k                                     Kind
		triples, levels, transfers, size, bit int
	}{
		{paperKind(50, 46), 0, 0, 46, 7, 50},
		{paperKind(53, 49), 0, 0, 49, 7, 53},
		{exactKind(10, 6), 2, 2, 17, 4, 29},
		{exactKind(6, 2), 0, 0, 5, 2, 13},
		{exactKind(12, 8), 4, 2, 25, 5, 40},
		{OddKind(65537, 3), 1, 1, 8, 6, 20 + 3 + 1 + 3 + 1 + 17},
	} {
		if c.k.Triples() != c.triples || len(c.k.Levels()) != c.levels || c.k.transfers() != c.transfers ||
			c.k.RecordSize() != c.size || c.k.recordBits() != c.bit {
			t.Errorf("%v: %d triples in %d levels, %d transfers, records of %d bytes, %d bits",
				c.k, c.k.Triples(), len(c.k.Levels()), c.k.transfers(), c.k.RecordSize(), c.k.recordBits())
		}
	}
}
