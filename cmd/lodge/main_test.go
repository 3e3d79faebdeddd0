package main

import (
	"os"
	"strings"
	"testing"
)

// TestMain runs the processes of clusters and the commands of the quickstart, which are this test
// program started again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	os.Exit(m.Run())
}
