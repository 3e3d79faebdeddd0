package triple

import (
	"bytes"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
)

// A stored ciphertext is rejected unless it is the canonical encoding of the decoded one.
func FuzzDecodeCiphertext(f *testing.F) {
	s := schemeOf(f, "insecure-6", "p512")
	key := gbfvtest.New(s, 2, 1, bytes.Repeat([]byte{1}, 32))
	valid := EncodeCiphertext(s, key.Encrypt(key.Random(1), 1))
	f.Add(valid[0], valid[1])
	f.Add(valid[0], valid[1][1:])
	f.Add(append(bytes.Clone(valid[0]), 0), valid[1])
	f.Add(valid[0], bytes.Repeat([]byte{0xff}, len(valid[1])))
	f.Add([]byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, c0, c1 []byte) {
		ct, err := DecodeCiphertext(s, [2][]byte{c0, c1})
		if err != nil {
			return
		}
		if again := EncodeCiphertext(s, ct); !bytes.Equal(again[0], c0) || !bytes.Equal(again[1], c1) {
			t.Error("another encoding was accepted")
		}
	})
}
