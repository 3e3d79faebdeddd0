package keyring

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
)

func testScheme(t testing.TB) *gbfv.Scheme {
	t.Helper()
	set, err := params.Lookup("insecure-6")
	if err != nil {
		t.Fatal(err)
	}
	s, err := gbfv.New(set, set.Fields[0])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stored is the file of public keys.
func stored(s *gbfv.Scheme, k *keygen.PublicKeys) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(k.Dim))
	for i := range keygen.EncodedFrames(s, k.Dim) {
		f := k.Frame(s, i)
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(f))), f...)
	}
	return b
}

// Stored public keys are rejected unless they are the canonical encoding of the decoded keys.
func FuzzStoredKeys(f *testing.F) {
	s := testScheme(f)
	out := roundtest.Lockstep(2, func(rs round.Session) (round.Transition[keygen.Result], error) {
		seed := round.Hash("fuzz", round.Uint(uint64(rs.Self)))
		return keygen.Start(keygen.Config{Session: rs, Scheme: s, Dim: 2, Security: keygen.Passive, Source: sample.NewSource(seed[:]), Workers: 1})
	})
	if out.Errors[0] != nil {
		f.Fatal(out.Errors[0])
	}
	valid := stored(s, out.Results[0].Keys)
	f.Add(valid)
	f.Add(valid[:len(valid)-1])
	f.Add(append(bytes.Clone(valid), 0))
	f.Add(append([]byte{0, 0, 0, 0}, valid[4:]...))
	f.Add(append(bytes.Clone(valid[:4]), 255, 255, 255, 255))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := readPublic(bytes.NewReader(b), s)
		if err == nil && !bytes.Equal(stored(s, k), b) {
			t.Error("another encoding was accepted")
		}
	})
}

// A stored secret is two bytes a coefficient and nothing else.
func FuzzStoredSecret(f *testing.F) {
	s := testScheme(f)
	valid := make([]byte, 2*s.N())
	for i := range valid {
		valid[i] = byte(i)
	}
	f.Add(valid)
	f.Add(valid[1:])
	f.Add(append(bytes.Clone(valid), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readSecret(bytes.NewReader(b), s)
		if (err == nil) != (len(b) == 2*s.N()) {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		if err != nil {
			return
		}
		p := s.Q.NewPoly()
		s.Q.Inverse(p, got)
		for i, c := range s.Q.ToBig(p) {
			if c.Int64() != int64(int16(binary.LittleEndian.Uint16(b[2*i:]))) {
				t.Fatalf("coefficient %d is %v", i, c)
			}
		}
	})
}
