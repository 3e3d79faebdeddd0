package main

import (
	"testing"

	"google.golang.org/grpc/encoding"
)

// A library that registers a compressor does so for the whole process, and then a server unpacks
// what anybody sends.
func TestNothingIsUnpacked(t *testing.T) {
	for _, name := range []string{"gzip", "snappy", "zstd", "deflate"} {
		if encoding.GetCompressor(name) != nil {
			t.Errorf("%s is registered: `go list -deps ./cmd/lodge` says who imports it", name)
		}
	}
}
