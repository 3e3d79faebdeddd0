package lodge_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
)

// The program of one party reserves triples, and draws its shares.
func Example() {
	config, err := lodge.Load("lodge-dev/clients/client-p0.yaml")
	check(err)
	client, err := lodge.Dial(config)
	check(err)
	reserved, err := client.Reserve(context.Background(), lodge.Class{Kind: "scalar", Field: "p128"}, 1000)
	check(err)
	shares, err := client.Fetch(context.Background(), reserved.ID)
	check(err)
	for t := range shares.Triples() {
		fmt.Println(t.A.Int(), t.B.Int(), t.C.Int())
	}
	check(shares.Err())
}

// Prints the stock, or that it is unknown.
func ExampleClient_Stock() {
	config, err := lodge.Load("lodge-dev/clients/client-p0.yaml")
	check(err)
	client, err := lodge.Dial(config)
	check(err)
	stock, err := client.Stock(context.Background(), 0)
	check(err)
	for _, p := range stock.Away {
		fmt.Println("nothing can be reserved without", p.GetName())
	}
	for _, s := range stock.Levels {
		if stock.Known() {
			fmt.Println(s.GetClass().GetKind(), s.GetAvailable())
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
