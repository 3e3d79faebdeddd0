package multikey_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	client "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey"
)

// Two parties encrypt a bit each under their own keys, and their owners decrypt both bits.
func Example() {
	config, err := lodge.Load("lodge-dev/clients/client-p0.yaml")
	check(err)
	c, err := client.Dial(config)
	check(err)
	defer c.Close()
	set, err := multikey.Lookup(multikey.Default)
	check(err)
	scheme, err := multikey.New(set, multikey.StandardSeed())
	check(err)
	ctx := context.Background()
	var list []*multikey.Ciphertext
	for party := range 2 {
		batch, err := c.Encrypt(ctx, scheme, party, 0, []bool{true})
		check(err)
		list = append(list, batch.Ciphertext(0))
	}
	result, err := c.Decrypt(ctx, &client.Decryption{Ciphertexts: list})
	check(err)
	fmt.Println(result.Bits)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
