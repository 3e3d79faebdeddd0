package triple_test

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
)

// A plan gives the size and the cost of a batch before any session starts.
func ExampleNewPlan() {
	set, err := params.Lookup(params.Default)
	if err != nil {
		panic(err)
	}
	plan, err := triple.NewPlan(set, "p128", 3, kind.Scalar, kind.Shape{}, 0, 1, 1)
	if err != nil {
		panic(err)
	}
	_, most := plan.Counts()
	a, b, c := plan.Elements()
	fmt.Printf("%d triples of %d elements, %d decryptions\n", most, a+b+c, plan.Decryptions())
	// Output:
	// 4092 triples of 3 elements, 7 decryptions
}
