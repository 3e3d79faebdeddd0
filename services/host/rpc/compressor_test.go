package rpc

import (
	"io"
	"sync"

	"google.golang.org/grpc/encoding"
)

const compressorName = "lodge-test"

// plain is a compressor that changes nothing.
type plain struct{}

func (plain) Compress(w io.Writer) (io.WriteCloser, error) { return nopCloser{w}, nil }
func (plain) Decompress(r io.Reader) (io.Reader, error)    { return r, nil }
func (plain) Name() string                                 { return compressorName }

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

var registerCompressor = sync.OnceFunc(func() { encoding.RegisterCompressor(plain{}) })
