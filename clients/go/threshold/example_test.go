package threshold_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/lwe"
)

// Encrypts messages under threshold keys, and has a quorum of their holders decrypt them.
func Example() {
	config, err := lodge.Load("lodge-dev/clients/client-p0.yaml")
	check(err)
	client, err := threshold.Dial(config)
	check(err)
	defer client.Close()
	ctx := context.Background()
	key, err := client.Key(ctx, 0) // of the newest active epoch
	check(err)
	public, err := client.PublicKey(ctx, key)
	check(err)
	list, err := threshold.Encrypt(key, public, []uint64{1, 2, 3}, lwe.Plain)
	check(err)
	result, err := client.Decrypt(ctx, key, &threshold.Request{Ring: list, Coefficients: 3})
	check(err)
	fmt.Println(result.Messages)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
