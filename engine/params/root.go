package params

import (
	"fmt"
	"math/big"
)

// rootOfUnity is xi with xi^D = b mod p, of order 2N.
func rootOfUnity(s *Set, f FieldSpec) (*big.Int, error) {
	p := f.P()
	exp := new(big.Int).Sub(p, one)
	minus1 := new(big.Int).Set(exp)
	exp.Rsh(exp, uint(s.LogN+1))
	for h := int64(2); h < 1000; h++ {
		w := new(big.Int).Exp(big.NewInt(h), exp, p)
		if new(big.Int).Exp(w, big.NewInt(int64(s.N())), p).Cmp(minus1) != 0 {
			continue
		}
		wd := new(big.Int).Exp(w, big.NewInt(int64(s.Slots(f))), p)
		step := new(big.Int).Mul(wd, wd)
		step.Mod(step, p)
		for k := int64(1); k < int64(2*f.M); k += 2 {
			if wd.Cmp(f.B) == 0 {
				return w.Exp(w, big.NewInt(k), p), nil
			}
			wd.Mul(wd, step).Mod(wd, p)
		}
	}
	return nil, fmt.Errorf("params: field %s of %s has no root of unity", f.Name, s.Name)
}
