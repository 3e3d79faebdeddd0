package bgv_test

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/bgv"
)

func ExampleLookup() {
	set, err := bgv.Lookup(bgv.Default)
	if err != nil {
		panic(err)
	}
	s, err := bgv.New(set)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: degree %d, plaintext modulus %d, %d levels\n", set.Name, s.N(), s.T, s.MaxLevel()+1)
	fmt.Printf("a ciphertext of the highest level has %d bytes\n", s.CiphertextSize(s.MaxLevel()))
	// Output:
	// B13-17: degree 8192, plaintext modulus 65537, 3 levels
	// a ciphertext of the highest level has 325637 bytes
}
