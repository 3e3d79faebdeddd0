package gbfv_test

import (
	"context"
	"crypto/sha3"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// vectorInputs generates the inputs of testdata/vectors.json: residue k of prime l of a polynomial
// is word k of SHAKE256 of its label, reduced.
type vectorInputs struct{ *gbfv.Scheme }

func (v vectorInputs) poly(label string) ring.Poly {
	p := v.Q.NewPoly()
	for l, q := range v.Q.Primes() {
		h := sha3.NewSHAKE256()
		fmt.Fprintf(h, "lodge gbfv vectors/%s/%s/%d", v.Set.Name, label, l)
		buf := make([]byte, 8*v.N())
		h.Read(buf)
		for k := range p.C[l] {
			p.C[l][k] = binary.LittleEndian.Uint64(buf[8*k:]) % q
		}
	}
	return p
}

func (v vectorInputs) ciphertext(label string) *gbfv.Ciphertext {
	return &gbfv.Ciphertext{C0: v.poly(label + ".c0"), C1: v.poly(label + ".c1")}
}

func (v vectorInputs) key(label string) *gbfv.SwitchKey {
	var key gbfv.SwitchKey
	for j := range v.GadgetDigits() {
		for i, half := range []*[]ring.NTT{&key.K0, &key.K1} {
			n := v.Q.NewNTT()
			v.Q.Forward(n, v.poly(fmt.Sprintf("%s.k%d.%d", label, i, j)))
			*half = append(*half, n)
		}
	}
	return &key
}

// vectorKeys provides one rotation key.
type vectorKeys struct{ relin, rotation *gbfv.SwitchKey }

func (k vectorKeys) Relin() *gbfv.SwitchKey { return k.relin }

func (k vectorKeys) Rotation(i, d int) (*gbfv.SwitchKey, error) {
	if i != 1 || d != 2 {
		return nil, gbfv.ErrNoKey
	}
	key := &gbfv.SwitchKey{K0: k.rotation.K0}
	for _, a := range k.rotation.K1 {
		key.K1 = append(key.K1, a.Clone())
	}
	return key, nil
}

// TestVectors compares evaluated ciphertexts, residue for residue, with those of an oracle with big
// integers (testdata/vectors.py), for every shipped set.
func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Set, Field, Mul, Rotate, Matmul, Switch string }
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, v := range vectors {
		have[v.Set] = true
		t.Run(v.Set, func(t *testing.T) {
			if testing.Short() && !strings.HasPrefix(v.Set, params.InsecurePrefix) {
				t.Skip("needs the full ring degree; run without -short")
			}
			s := newScheme(t, v.Set, v.Field)
			in := vectorInputs{s}
			e := gbfv.NewEvaluator(s, vectorKeys{relin: in.key("relin"), rotation: in.key("rotation")})
			a, b := gbfv.Grid{Rows: 1, Cols: 1, Dim: 2}, gbfv.Grid{Rows: 1, Cols: 1, Dim: 2}
			for k := range 2 {
				a.C = append(a.C, in.ciphertext(fmt.Sprintf("a.%d", k)))
				b.C = append(b.C, in.ciphertext(fmt.Sprintf("b.%d", k)))
			}
			rotated, err := e.Rotate(a.C[0], 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			product, err := e.MatMul(context.Background(), a, b, 2)
			if err != nil {
				t.Fatal(err)
			}
			check := func(what, want string, cts ...*gbfv.Ciphertext) {
				if h := gbfv.Hash(cts); hex.EncodeToString(h[:]) != want {
					t.Errorf("%s differs from the oracle's result", what)
				}
			}
			check("product", v.Mul, e.Mul(s.Left(a.C[0]), s.Right(b.C[0])))
			check("rotation", v.Rotate, rotated)
			check("matrix product", v.Matmul, product.C...)
			check("modulus switch", v.Switch, s.SwitchModulus(a.C[0], min(3, s.Q.Len()-1)))
		})
	}
	for _, set := range params.Sets() {
		if !set.Insecure && !have[set.Name] {
			t.Errorf("no vectors for %s", set.Name)
		}
	}
}
