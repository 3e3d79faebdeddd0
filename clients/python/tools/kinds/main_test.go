package main

import (
	"os"
	"testing"
)

// The committed table is current.
func TestCommittedTable(t *testing.T) {
	have, err := os.ReadFile("../../lodge_mpc/kinds.py")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != table() {
		t.Error("clients/python/lodge_mpc/kinds.py is out of date; run: make kinds")
	}
}
