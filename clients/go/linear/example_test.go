package linear_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
)

// Multiplies two matrices at a party that sees only ciphertexts.
func ExampleClient_Multiply() {
	config, err := lodge.Load("lodge-dev/clients/client-p0.yaml")
	check(err)
	client, err := linear.Dial(config, "p0")
	check(err)
	defer client.Close()
	result, err := client.Multiply(context.Background(), &linear.Product{
		Rows: 2, Inner: 2, Cols: 2, Left: []int64{1, 2, 3, 4}, Right: []int64{5, 6, 7, 8},
	})
	check(err)
	fmt.Println(result.Entries)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
