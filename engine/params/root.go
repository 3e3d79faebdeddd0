package params

import (
	"fmt"
	"math/big"
	"sync"

	"github.com/lodge-mpc/lodge/engine/field"
)

// roots remembers xi per ring degree and field: finding it includes a primality test of p, up to
// half a second.
var roots sync.Map // rootKey to *big.Int, never written to

type rootKey struct {
	logN, m int
	b       string
}

// rootOfUnity is the xi that orders the slots of the field, xi^D = b mod p.
func rootOfUnity(s *Set, f FieldSpec) (*big.Int, error) {
	key := rootKey{s.LogN, f.M, f.B.String()}
	if xi, ok := roots.Load(key); ok {
		return xi.(*big.Int), nil
	}
	zp, err := field.New(f.B, f.M)
	if err != nil {
		return nil, fmt.Errorf("params: field %s of %s: %w", f.Name, s.Name, err)
	}
	pack, err := field.NewPacking(zp, s.LogN)
	if err != nil {
		return nil, fmt.Errorf("params: field %s of %s: %w", f.Name, s.Name, err)
	}
	xi := pack.Xi()
	roots.Store(key, xi)
	return xi, nil
}
