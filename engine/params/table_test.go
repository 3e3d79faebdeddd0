package params_test

import (
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/linear"
)

// The sets of packages with their own registries have 128 bits by the same model, and are within
// the table of Bossuat et al.: the test compares the modulus of the samples published under each
// secret.
func TestSecurityTableOfOtherSets(t *testing.T) {
	type set struct {
		logN     int
		moduli   []uint64
		insecure bool
		bits     hardness.Bits
	}
	sets := map[string]set{}
	for _, s := range bgv.Sets() {
		sets[s.Name] = set{s.LogN, s.QP(), s.Insecure, s.Security()}
	}
	for _, s := range linear.Sets() {
		sets[s.Name] = set{s.LogN, s.Q, s.Insecure, s.Security()}
	}
	limits := map[int]uint{12: 106, 13: 214, 14: 430, 15: 868}
	shipped := 0
	for name, s := range sets {
		if s.insecure {
			continue
		}
		shipped++
		t.Logf("%s: %v", name, s.bits)
		q := big.NewInt(1)
		for _, p := range s.moduli {
			q.Mul(q, new(big.Int).SetUint64(p))
		}
		limit := limits[s.logN]
		if limit == 0 || q.Cmp(new(big.Int).Lsh(big.NewInt(1), limit)) > 0 || s.bits.Classical < hardness.Least {
			t.Errorf("%s: no 128-bit security at N = 2^%d with %d bits: %v", name, s.logN, q.BitLen(), s.bits)
		}
	}
	if shipped != len(bgv.Names())+len(linear.Names()) {
		t.Errorf("%d shipped sets", shipped)
	}
}
