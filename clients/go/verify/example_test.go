package verify_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lodge-mpc/lodge/clients/go/verify"
)

// Checks the exported shares of all parties of one batch, which must not be used afterwards.
func ExampleDirs() {
	report, err := verify.Dirs(context.Background(), []string{"shares-p0", "shares-p1", "shares-p2"}, verify.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d of %d tuples are correct\n", report.Verified, report.Tuples)
	for _, f := range report.Failures {
		fmt.Println(f)
	}
}

func ExampleModulus() {
	p, err := verify.Modulus("S14-32", "p64")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p)
	// Output: 18446700093270654977
}
