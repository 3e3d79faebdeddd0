package main

import (
	"os"
	"testing"
)

// TestMain serves the processes of clusters, which are this test program started again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "party" || os.Args[1] == "coordinator") {
		main()
		return
	}
	os.Exit(m.Run())
}
