package params_test

import (
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/params"
)

// The sets of packages that have registries of their own are within the security table: of each, the modulus of what is
// published under its secret.
func TestSecurityTableOfOtherSets(t *testing.T) {
	type set struct {
		logN     int
		moduli   []uint64
		insecure bool
	}
	sets := map[string]set{}
	for _, s := range bgv.Sets() {
		sets[s.Name] = set{s.LogN, s.QP(), s.Insecure}
	}
	for _, s := range linear.Sets() {
		sets[s.Name] = set{s.LogN, s.Q, s.Insecure}
	}
	limits := map[int]uint{12: 106, 13: 214, 14: 430, 15: 868}
	shipped := 0
	for name, s := range sets {
		if s.insecure {
			continue
		}
		shipped++
		q := big.NewInt(1)
		for _, p := range s.moduli {
			q.Mul(q, new(big.Int).SetUint64(p))
		}
		limit := limits[s.logN]
		if limit == 0 || q.Cmp(new(big.Int).Lsh(big.NewInt(1), limit)) > 0 || int(limit) != params.SecurityLimit(s.logN) {
			t.Errorf("%s: no 128-bit security at N = 2^%d with %d bits", name, s.logN, q.BitLen())
		}
	}
	if shipped != len(bgv.Names())+len(linear.Names()) {
		t.Errorf("%d shipped sets", shipped)
	}
}
