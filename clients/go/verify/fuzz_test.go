package verify

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
)

// A party's shares are refused, or found wrong, unless they match those of the other parties.
func FuzzShares(f *testing.F) {
	e := newExport(f, tuplefile.Scalar, "S14-32", "p64", 2, 2, tuplefile.Dims{M: 1, K: 1, N: 1})
	honest := e.data[1]
	f.Add(honest)
	f.Add(honest[1:])
	f.Add(append(bytes.Clone(honest), 0))
	f.Add(bytes.Repeat([]byte{255}, len(honest)))
	for _, at := range []int{0, 8, 16, len(honest) - 1} {
		b := bytes.Clone(honest)
		b[at] ^= 1
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		other := *e
		other.data = [][]byte{e.data[0], b}
		r, err := Dirs(context.Background(), other.write(t), Options{})
		switch same := bytes.Equal(b, honest); {
		case same && (err != nil || r.Verified != 2):
			t.Errorf("the right shares: %d verified, %v", r.Verified, err)
		case !same && err == nil && r.Verified == 2:
			t.Errorf("shares %x were verified", b)
		case err != nil && len(b) < len(honest) && !errors.Is(err, tuplefile.ErrTruncated) && !errors.Is(err, tuplefile.ErrManifest):
			t.Errorf("%d bytes: %v", len(b), err)
		}
	})
}
