package params_test

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/params"
)

func ExampleLookup() {
	set, err := params.Lookup(params.Default)
	if err != nil {
		panic(err)
	}
	field, err := set.Field("p128")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: degree %d, a ciphertext holds %d elements of %d bits\n", set.Name, set.N(), set.Slots(field), field.P().BitLen())

	_, err = params.Lookup("S99")
	fmt.Println(err)
	// Output:
	// S14-32: degree 16384, a ciphertext holds 4096 elements of 128 bits
	// params: unknown set "S99" (known: S14-32, S14-64, S13-8, S13-16, S15-128)
}
