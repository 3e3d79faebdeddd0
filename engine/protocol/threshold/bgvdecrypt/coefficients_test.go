package bgvdecrypt

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
)

// Every quorum decrypts chosen coefficients of ciphertexts that Lattigo evaluated, in both modes.
func TestCoefficients(t *testing.T) {
	for _, c := range []struct {
		set  string
		n, t int
	}{{"insecure-B5-8", 3, 1}, {"insecure-B5-17", 3, 1}, {"insecure-B5-17", 5, 2}, {"insecure-B6-31", 7, 3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := newWorld(t, c.set, c.n, c.t)
			var list []Chosen
			var want [][]uint64
			for i, e := range w.user.Evaluate(t) {
				degrees := []int{0, w.N() - 1, i + 1, i + 1, 7}
				message := w.message(e.Cipher)
				if got, err := w.Slots(message); err != nil || !slices.Equal(got, e.Slots) {
					t.Fatalf("%s has another secret key", e.Name)
				}
				var m []uint64
				for _, k := range degrees {
					m = append(m, message[k])
				}
				list, want = append(list, Chosen{e.Cipher, degrees}), append(want, m)
			}
			for i, quorum := range quorums(c.n, c.t+1) {
				to := round.Party(i%(c.t+2)) - 1 // one of the quorum, or Outside
				got := w.coefficients(t, quorum, list, to)
				if !slices.EqualFunc(got, want, slices.Equal[[]uint64]) {
					t.Fatalf("quorum %v: %v, want %v", quorum, got, want)
				}
			}
		})
	}
}

// The shipped sets decrypt every coefficient of a ciphertext.
func TestShippedSets(t *testing.T) {
	var cases []longtest.Case
	for _, name := range bgv.Names() {
		cases = append(cases, longtest.Case{Name: name, Everyday: name == bgv.Default, Run: func(t *testing.T) {
			w := newWorld(t, name, 3, 1)
			list := w.user.Evaluate(t)
			for i, e := range list {
				degrees := make([]int, 40)
				for k := range degrees {
					degrees[k] = w.random.IntN(w.N())
				}
				message := w.message(e.Cipher)
				got := w.coefficients(t, []int{i % 2, 2}, []Chosen{{e.Cipher, degrees}}, 1)[0]
				for j, k := range degrees {
					if got[j] != message[k] {
						t.Fatalf("%s: coefficient %d is %d, want %d", e.Name, k, got[j], message[k])
					}
				}
				if w.FloodLevel < 0 {
					continue
				}
				one := []*bgv.Ciphertext{e.Cipher}
				all := w.flooded(t, one, Outside, w.flood(t, []int{i % 2, 2}, one, Outside))[0]
				if !slices.Equal(all, message) {
					t.Fatalf("%s: decryption with flooding yields another message", e.Name)
				}
			}
		}})
	}
	longtest.Run(t, cases)
}

// Noise of the largest allowed size, of either sign, does not change the message at any level.
// Larger noise does.
func TestNoiseOfCoefficients(t *testing.T) {
	w := newWorld(t, "insecure-B6-31", 3, 1)
	ct, err := w.FromLattigo(w.user.Encrypt(t, w.user.Values(5)))
	if err != nil {
		t.Fatal(err)
	}
	message := w.message(ct)
	for level := w.MaxLevel(); level >= 0; level-- {
		at, err := w.Switch(ct, level)
		if err != nil {
			t.Fatal(err)
		}
		basis := w.Level(level)
		most := w.MaxNoise(level, 0, w.n)
		most.Sub(most, big.NewInt(100)) // the noise of the ciphertext itself
		if level < w.MaxLevel() {
			most.Sub(most, big.NewInt(int64(w.Rounding(w.n))))
		}
		loud, e := *at, basis.NewPoly()
		v := make([]*big.Int, w.N())
		for k := range v {
			v[k] = new(big.Int).Mul(most, big.NewInt(int64(1-2*(k%2))))
		}
		basis.FromBig(e, v)
		loud.C0 = at.C0.Clone()
		basis.Add(loud.C0, loud.C0, e)
		got := w.coefficients(t, []int{0, 1}, []Chosen{{&loud, []int{0, 1, 2, 62, 63}}}, 0)[0]
		if want := []uint64{message[0], message[1], message[2], message[62], message[63]}; !slices.Equal(got, want) {
			t.Errorf("level %d: %v, want %v", level, got, want)
		}
	}
}

func TestSelectionsAreRefused(t *testing.T) {
	w := newWorld(t, "insecure-B5-17", 3, 1)
	ct, err := w.FromLattigo(w.user.Encrypt(t, w.user.Values(5)))
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]Chosen{
		"nothing": nil, "no degrees": {{ct, nil}}, "below": {{ct, []int{0, -1}}}, "above": {{ct, []int{32}}},
	} {
		if _, err := Select(w.Scheme, list); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"not in the quorum": second(Additive(w.Scheme, 3, []int{0, 1}, 2, w.shares[2], 1)),
		"a short share":     second(Additive(w.Scheme, 3, []int{0, 1}, 1, w.shares[1][1:], 1)),
		"no primes":         second(Additive(w.Scheme, 3, []int{0, 1}, 1, w.shares[1], 0)),
		"special primes":    second(Additive(w.Scheme, 3, []int{0, 1}, 1, w.shares[1], 4)),
	} {
		if !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range bgv.Names() {
		set, err := bgv.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := bgv.New(set)
		if err != nil {
			t.Fatal(err)
		}
		for threshold := 1; threshold <= (bgv.MaxParties-1)/2; threshold++ {
			if _, err := Params(s, threshold); err != nil {
				t.Errorf("%s, %d parties: %v", name, threshold+1, err)
			}
		}
		if _, err := Params(s, 0); !errors.Is(err, decrypt.ErrParams) {
			t.Errorf("%s, one party: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
