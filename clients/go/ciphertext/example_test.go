package ciphertext_test

import (
	"context"
	"fmt"
	"log"
	"math/big"

	"github.com/lodge-mpc/lodge/clients/go/ciphertext"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
)

// Encrypts two values under the parties' joint key, and has the parties decrypt them.
func Example() {
	config, err := lodge.Load("lodge-dev/clients/client-p0.yaml")
	check(err)
	client, err := ciphertext.Dial(config)
	check(err)
	defer client.Close()
	ctx := context.Background()
	epoch, err := client.NewestEpoch(ctx)
	check(err)
	key, err := client.Key(ctx, epoch, "p128")
	check(err)
	x, err := client.Encrypt(ctx, key, []*big.Int{big.NewInt(3), big.NewInt(4)}, nil)
	check(err)
	result, err := client.Decrypt(ctx, key, x)
	check(err)
	fmt.Println(result.Values)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
