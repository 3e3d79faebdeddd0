package lwe_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/lwe"
)

// everySet runs f for the default and the sets for tests. Where long tests run, it also runs f for
// the paper's modulus, whose keys take up to a gigabyte, and for legacy sets.
func everySet(t *testing.T, f func(t *testing.T, s *subject)) {
	var cases []longtest.Case
	for _, set := range lwe.Sets() {
		if set.Insecure && set.Legacy() { // the same numbers as insecure-L8-50
			continue
		}
		cases = append(cases, longtest.Case{Name: set.Name, Everyday: set.Insecure || set.Name == lwe.Default, Run: func(t *testing.T) {
			f(t, newSubject(t, set.Name))
		}})
	}
	longtest.Run(t, cases)
}

// count is large for tiny sets, small for others.
func (s *subject) count(large, small int) int {
	if s.Insecure {
		return large
	}
	return small
}

func (s *subject) table(t testing.TB, e lwe.Encoding, values []uint64) *lwe.Table {
	t.Helper()
	table, err := s.NewTable(values, e)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// identity is the table of m -> m.
func (s *subject) identity(t testing.TB) *lwe.Table {
	values := make([]uint64, s.P)
	for m := range values {
		values[m] = uint64(m)
	}
	return s.table(t, lwe.Padded, values)
}

// Random tables at every input, fresh and looked up before, with values in every encoding.
func TestLookupOnEverySet(t *testing.T) {
	everySet(t, func(t *testing.T, s *subject) {
		r, out := rand.New(rand.NewPCG(7, 7)), s.NewLWE()
		inputs, identity := [2][]*lwe.LWE{}, s.identity(t)
		for m := range s.P {
			again := s.NewLWE()
			inputs[0] = append(inputs[0], s.encrypt(t, m, lwe.Padded))
			if err := s.e.Lookup(again, inputs[0][m], identity); err != nil {
				t.Fatal(err)
			}
			inputs[1] = append(inputs[1], again)
		}
		for k := range s.count(5, 1) {
			for _, e := range []lwe.Encoding{lwe.Padded, lwe.Plain, lwe.Boolean} {
				count, _ := messages(s.Scheme, e)
				values := make([]uint64, s.P)
				for m := range values {
					values[m] = r.Uint64N(count)
				}
				table := s.table(t, e, values)
				for m := range s.P {
					if err := s.e.Lookup(out, inputs[k%2][m], table); err != nil {
						t.Fatal(err)
					}
					s.want(t, out, values[m], e, "%v table at %d", e, m)
				}
			}
		}
	})
}

// A phase in the upper half of the circle, where no padded message is, gives minus the value of the
// other half.
func TestLookupIsNegacyclic(t *testing.T) {
	for _, name := range tiny {
		s := newSubject(t, name)
		values := make([]uint64, s.P)
		for m := range values {
			values[m] = uint64(m+3) % s.P
		}
		table, out := s.table(t, lwe.Plain, values), s.NewLWE()
		for m := range s.P {
			c := s.encrypt(t, m, lwe.Padded)
			s.AddPhase(c, (s.Q+1)/2)
			if err := s.e.Lookup(out, c, table); err != nil {
				t.Fatal(err)
			}
			s.want(t, out, (s.P-values[m])%s.P, lwe.Plain, "table at %d and half the circle", m)
		}
	}
}

// Sums of digits are looked up as one; bits become digits and digits bits.
func TestConversionsOnEverySet(t *testing.T) {
	everySet(t, func(t *testing.T, s *subject) {
		out, sum := s.NewLWE(), s.NewLWE()
		high, parity := make([]uint64, s.P), make([]uint64, s.P)
		for m := range s.P {
			high[m], parity[m] = 5+m/(s.P/2), m%2
		}
		for bit := range uint64(2) {
			s.Digit(sum, s.encrypt(t, bit, lwe.Boolean))
			if err := s.e.Lookup(out, sum, s.table(t, lwe.Padded, high)); err != nil {
				t.Fatal(err)
			}
			s.want(t, out, 5+bit, lwe.Padded, "5 + %d", bit)
		}
		for m := range s.P {
			s.Add(sum, s.encrypt(t, m/2, lwe.Padded), s.encrypt(t, m-m/2, lwe.Padded, 1))
			if err := s.e.Lookup(out, sum, s.table(t, lwe.Boolean, parity)); err != nil {
				t.Fatal(err)
			}
			s.wantBit(t, out, m%2, "parity of %d", m)
			s.Scale(sum, sum, 2)
			if got := s.secret.Decrypt(sum, lwe.Plain); got != m {
				t.Errorf("%s: twice the sum %d opens as %d", s.Name, m, got)
			}
		}
	})
}

// A chain of lookups in place, and a counter of gates whose every bit depends on all before.
func TestChainsOnEverySet(t *testing.T) {
	everySet(t, func(t *testing.T, s *subject) {
		r := rand.New(rand.NewPCG(8, 8))
		m := uint64(11)
		c := s.encrypt(t, m, lwe.Padded)
		for step := range s.count(100, 8) {
			values := make([]uint64, s.P)
			for i, v := range r.Perm(len(values)) {
				values[i] = uint64(v)
			}
			if err := s.e.Lookup(c, c, s.table(t, lwe.Padded, values)); err != nil {
				t.Fatal(err)
			}
			m = values[m]
			s.want(t, c, m, lwe.Padded, "step %d", step)
		}

		const width = 4
		var counter [width]*lwe.LWE
		for i := range counter {
			counter[i] = s.encrypt(t, 0, lwe.Boolean, uint64(i))
		}
		carry := s.NewLWE()
		for n := 1; n <= s.count(20, 2); n++ {
			carry.Copy(s.encrypt(t, 1, lwe.Boolean, uint64(n)))
			for i, bit := range counter {
				next := s.NewLWE()
				if err := errors.Join(s.e.Gate(next, lwe.And, bit, carry), s.e.Gate(bit, lwe.Xor, bit, carry)); err != nil {
					t.Fatal(err)
				}
				s.wantBit(t, bit, uint64(n>>i&1), "bit %d of %d", i, n)
				carry = next
			}
		}
	})
}

func TestTablesAreRefused(t *testing.T) {
	s := newScheme(t, tiny[0])
	for name, c := range map[string]struct {
		values []uint64
		e      lwe.Encoding
	}{
		"empty":             {nil, lwe.Padded},
		"short":             {make([]uint64, s.P-1), lwe.Padded},
		"long":              {make([]uint64, s.P+1), lwe.Padded},
		"a value of p":      {append(make([]uint64, s.P-1), s.P), lwe.Plain},
		"2 as a bit":        {append(make([]uint64, s.P-1), 2), lwe.Boolean},
		"of no encoding":    {make([]uint64, s.P), 0},
		"of encoding seven": {make([]uint64, s.P), 7},
	} {
		if _, err := s.NewTable(c.values, c.e); !errors.Is(err, lwe.ErrMessage) {
			t.Errorf("table %s: %v", name, err)
		}
	}
}
