package linear_test

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// The owner of a key encrypts two matrices, and a party multiplies them.
func Example() {
	s, err := linear.Find("insecure-P6-40")
	check(err)
	source := sample.NewSource(make([]byte, 32))
	secret, public := s.Generate(true, source.Sub("keys"))
	plan, err := s.PlanProduct(linear.ProductShape{Rows: 2, Inner: 2, Cols: 2, MaxLeft: 15, MaxRight: 15})
	check(err)
	left, err := plan.EncryptLeft(secret, []int64{1, 2, 3, 4}, 1, source.Sub("left"))
	check(err)
	right, err := plan.EncryptRight(secret, []int64{5, 6, 7, 8}, 1, source.Sub("right"))
	check(err)

	evaluator, err := plan.Evaluator(public, left, right)
	check(err)
	answers := evaluator.Multiply(1, source.Sub("answers"))

	product := make([]int64, 4)
	for g, answer := range answers {
		check(plan.Open(secret, g, answer, product))
	}
	fmt.Println(product)
	// Output: [19 22 43 50]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
