package multikey_test

import (
	"context"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// A gate on bits under the keys of two parties. Both secrets are needed to decrypt the result.
func Example() {
	set, err := multikey.Lookup("insecure-M8-32-128")
	check(err)
	s, err := multikey.New(set, multikey.StandardSeed())
	check(err)
	evaluator, source := multikey.NewEvaluator(s), sample.NewSource(make([]byte, 32))
	var secrets []*multikey.Secret
	var bits []*multikey.Ciphertext
	for owner := range uint32(2) {
		own := source.Sub("party", uint64(owner))
		secret, keys := s.Generate(owner, own.Sub("keys"), 1)
		_, err := evaluator.Add(keys, 1)
		check(err)
		secrets = append(secrets, secret)
		bits = append(bits, secret.Encrypt([]bool{true}, own.Sub("bit")).Ciphertext(0))
	}
	and, err := evaluator.Gate(context.Background(), 1, multikey.And, bits[0], bits[1], nil)
	check(err)
	bit, err := multikey.Decrypt(and, secrets...)
	check(err)
	fmt.Println(bit)
	// Output: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
