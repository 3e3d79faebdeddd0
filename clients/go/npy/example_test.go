package npy_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/lodge-mpc/lodge/clients/go/npy"
)

func Example() {
	var file bytes.Buffer
	check(npy.Write(&file, []int{2, 3}, []int64{1, 2, 3, 4, 5, 6}))

	r, err := npy.NewReader(&file)
	check(err)
	row := make([]int64, r.Shape[1])
	for range r.Shape[0] {
		check(r.Integers(row))
		fmt.Println(row)
	}
	check(r.End())
	// Output:
	// [1 2 3]
	// [4 5 6]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
