package tuplefile_test

import (
	"fmt"
	"io"
	"log"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
)

// Reads one party's shares that `lodge tuples fetch` has written.
func Example() {
	const elementBytes = 16 // of field p128
	manifest, err := tuplefile.ReadManifest("shares-p0")
	check(err)
	r, err := tuplefile.Open("shares-p0", manifest, elementBytes)
	check(err)
	defer r.Close()
	record := make([]byte, manifest.RecordBytes(elementBytes))
	for range manifest.Tuples {
		_, err := io.ReadFull(r, record)
		check(err)
	}
	check(r.Finish()) // compares the length and the SHA-256 with the manifest
	fmt.Println(manifest.Tuples, "tuples of kind", manifest.Kind)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
