package lwe_test

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// A gate on two encrypted bits. The secret is in one process, as only in tests.
func Example() {
	set, err := lwe.Lookup("insecure-T8-50")
	check(err)
	s, err := lwe.New(set)
	check(err)
	source := sample.NewSource(make([]byte, 32))
	secret := drawSecret(s, source.Sub("secret"))
	evaluator, err := lwe.NewEvaluator(s, secret.Keys(set.NoiseOf(3, 1), source.Sub("keys")), 1)
	check(err)

	a, err := secret.Encrypt(1, lwe.Boolean, source.Sub("a"))
	check(err)
	b, err := secret.Encrypt(0, lwe.Boolean, source.Sub("b"))
	check(err)
	out := s.NewLWE()
	check(evaluator.Gate(out, lwe.Or, a, b))
	fmt.Println(secret.Decrypt(out, lwe.Boolean))
	// Output: 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
