package multikey

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
)

// table runs truth tables: every gate, every assignment of the groups of parties to operands, and
// all bits.
func table(t *testing.T, s *subject, workers int, groups [][]int, gates []Gate) {
	t.Helper()
	type expected struct {
		name string
		want bool
	}
	var tasks []Task
	var results []expected
	operand := map[string]*Ciphertext{}
	of := func(place, group int, bit bool) *Ciphertext {
		name := fmt.Sprint(place, group, bit)
		if operand[name] == nil {
			value := uint64(0)
			if bit {
				value = 1
			}
			operand[name] = s.of(t, bit, groups[group], uint64(place), uint64(group), value)
		}
		return operand[name]
	}
	for _, g := range gates {
		assignments := 1
		for range g.Operands() {
			assignments *= len(groups)
		}
		for x := range assignments {
			at := [3]int{x % len(groups), x / len(groups) % len(groups), x / len(groups) / len(groups)}
			for bits := range 1 << g.Operands() {
				var in [3]*Ciphertext
				var b [3]bool
				for i := range g.Operands() {
					b[i] = bits>>i&1 == 1
					in[i] = of(i, at[i], b[i])
				}
				tasks = append(tasks, Task{Gate: g, Dst: new(Ciphertext), A: in[0], B: in[1], C: in[2]})
				results = append(results, expected{fmt.Sprint(g, at[:g.Operands()], b[:g.Operands()]), g.Bit(b[0], b[1], b[2])})
			}
		}
	}
	if err := s.e.Run(t.Context(), workers, tasks); err != nil {
		t.Fatal(err)
	}
	for i, task := range tasks {
		if got, off := s.decrypt(t, task.Dst); got != results[i].want {
			t.Errorf("%s, %s: decrypts to %v, off by %g", s.Name, results[i].name, got, off)
		}
	}
}

func TestBits(t *testing.T) {
	for bits := range 8 {
		a, b, c := bits&1 == 1, bits&2 == 2, bits&4 == 4
		mux := c
		if a {
			mux = b
		}
		for g, want := range map[Gate]bool{
			And: a && b, Nand: !(a && b), Or: a || b, Nor: !(a || b), Xor: a != b, Xnor: a == b,
			AndNot: a && !b, NotAnd: !a && b, OrNot: a || !b, NotOr: !a || b, Mux: mux,
		} {
			if g.Bit(a, b, c) != want {
				t.Errorf("%v of %v, %v, %v is not %v", g, a, b, c, want)
			}
		}
	}
	if len(Gates()) != 11 || Gate(0).String() != "Gate(0)" || gates.String() != "Gate(12)" || NotOr.String() != "NOTOR" {
		t.Error("gates are", Gates())
	}
}

// Tests all gates, with every assignment of one, two and three keys to operands, and with operands
// under one to four keys.
func TestTruthTables(t *testing.T) {
	s := newSubject(t, cheap, 4)
	table(t, s, 2, [][]int{{0}, {1}, {2}}, Gates())
	table(t, s, 1, [][]int{{0, 1, 2, 3}, {2}}, Gates())
	for k := 1; k <= 4; k++ {
		table(t, s, 1, [][]int{everyParty(k)}, []Gate{Nand, Xor, Mux})
	}
}

// Tests all gates with every assignment of the given number of keys to operands, and with all of
// them in every operand.
func TestAssignments(t *testing.T) {
	alone := func(k int) (groups [][]int) {
		for i := range k {
			groups = append(groups, []int{i})
		}
		return groups
	}
	two := Gates()[:len(Gates())-1]
	var cases []longtest.Case
	for _, k := range []int{4, 8, 16, 32} {
		cases = append(cases, longtest.Case{Name: fmt.Sprint(k), Everyday: k <= 8, Run: func(t *testing.T) {
			s := newSubject(t, cheap, k)
			table(t, s, 2, alone(k), two)
			table(t, s, 2, [][]int{everyParty(k)}, Gates())
			if k == 4 || k == 16 {
				table(t, s, 2, alone(k), []Gate{Mux})
			}
		}})
	}
	longtest.Run(t, cases)
}

// Tests a shipped set; runs daily.
func TestShippedSet(t *testing.T) {
	s := newSubject(t, "M11-2", 2)
	table(t, s, 2, [][]int{{0, 1}}, []Gate{Xor})
}

// Tests all sets with one key, with some, and with their maximal number; 32 included.
func TestTruthTablesOnEverySet(t *testing.T) {
	var cases []longtest.Case
	for _, set := range Sets() {
		for k := 1; k <= set.Parties; k *= 2 {
			if k < 8 && k < set.Parties && set.LogN == 8 {
				continue // runs daily
			}
			cases = append(cases, longtest.Case{Name: fmt.Sprintf("%s/%d", set.Name, k), Run: func(t *testing.T) {
				defer forget(set.Name)
				defer debug.SetGCPercent(debug.SetGCPercent(20)) // the keys of 32 parties are half of a machine's memory
				s := newSubject(t, set.Name, k)
				all := everyParty(k)
				if set.Name == "insecure-M11-V" && k == 32 { // this one fails once in 2^12
					table(t, s, 2, [][]int{all}, []Gate{Nand})
					return
				}
				table(t, s, 2, [][]int{all}, Gates())
				if k > 1 {
					table(t, s, 2, [][]int{all[:k/2], all[k/2:]}, []Gate{Nand, Xor})
				}
			}})
		}
	}
	longtest.Run(t, cases)
}

// Random circuits of depth 20 compute the same as on plaintext bits, for any number of goroutines
// and with the noise of gates.
func TestCircuits(t *testing.T) {
	cases := []longtest.Case{{Name: cheap, Everyday: true, Run: func(t *testing.T) { randomCircuit(t, cheap, 4) }}}
	for _, name := range []string{Default, "M11-8"} {
		set, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, longtest.Case{Name: name, Run: func(t *testing.T) {
			defer forget(name)
			randomCircuit(t, name, set.Parties)
		}})
	}
	longtest.Run(t, cases)
}

// randomCircuit computes six gates a level, or one per party if there are more parties, on bits of
// all parties.
func randomCircuit(t *testing.T, set string, parties int) {
	s := newSubject(t, set, parties)
	r := rand.New(rand.NewPCG(3, 3))
	const depth = 20
	width := max(6, parties)
	values, wires := make([]bool, width), make([]*Ciphertext, width)
	for i := range wires {
		values[i] = r.IntN(2) == 1
		wires[i] = s.encrypt(i%parties, values[i], 9, uint64(i))
	}
	list := Gates()
	for level := range depth {
		next, results := make([]bool, width), make([]*Ciphertext, width)
		var tasks []Task
		for i := range width {
			g := list[r.IntN(len(list))]
			a, b, c := r.IntN(width), r.IntN(width), r.IntN(width)
			next[i], results[i] = g.Bit(values[a], values[b], values[c]), new(Ciphertext)
			tasks = append(tasks, Task{Gate: g, Dst: results[i], A: wires[a], B: wires[b], C: wires[c]})
		}
		if err := s.e.Run(t.Context(), 1+level%3, tasks); err != nil {
			t.Fatal(err)
		}
		for i, c := range results {
			if level%5 == 0 {
				c, next[i] = Not(c), !next[i]
			}
			if got, off := s.decrypt(t, c); got != next[i] {
				t.Fatalf("level %d, %v: %v, off by %g", level, tasks[i].Gate, got, off)
			}
			results[i] = c
		}
		values, wires = next, results
	}
}

// The ciphertext is the same with one goroutine or many, alone or with others, and in place of an
// operand.
func TestRun(t *testing.T) {
	s := newSubject(t, cheap, 3)
	a, b, c := s.encrypt(0, true, 1), s.of(t, true, []int{1, 2}, 2), s.encrypt(2, false, 3)
	for _, g := range []Gate{OrNot, Mux} {
		want, err := s.e.Gate(t.Context(), 1, g, a, b, c)
		if err != nil {
			t.Fatal(err)
		}
		for workers := range 5 {
			var tasks []Task
			for i := range 4 {
				in := []*Ciphertext{a.Clone(), b.Clone(), c.Clone()}
				dst := append(slices.Clone(in), new(Ciphertext))[i]
				tasks = append(tasks, Task{Gate: g, Dst: dst, A: in[0], B: in[1], C: in[2]})
			}
			if err := s.e.Run(t.Context(), workers, tasks); err != nil {
				t.Fatal(err)
			}
			for i, task := range tasks {
				if !task.Dst.Equal(want) {
					t.Errorf("%v, %d workers: task %d yields a different ciphertext", g, workers, i)
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.e.Gate(ctx, 2, And, a, b, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := s.e.Run(t.Context(), 2, nil); err != nil {
		t.Errorf("no tasks: %v", err)
	}
}

// Public bits work like others, and a gate of public bits alone needs no key.
func TestTrivial(t *testing.T) {
	s := newSubject(t, cheap, 2)
	for bits := range 4 {
		a, b := bits&1 == 1, bits&2 == 2
		out, err := NewEvaluator(s.Scheme).Gate(t.Context(), 1, Xor, Trivial(a), Trivial(b), nil)
		if err != nil || len(out.Parts) != 0 || Decode(out.B) != (a != b) {
			t.Errorf("%v xor %v: %v, %v", a, b, out, err)
		}
		if out, err = s.e.Gate(t.Context(), 1, Nor, s.encrypt(1, a, 4), Trivial(b), nil); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.decrypt(t, out); got != (!a && !b) {
			t.Errorf("%v nor %v: %v", a, b, got)
		}
	}
}

// A gate needs the keys of the parties in it and no others. Removing keys blocks only gates that
// involve them, with an error that names the key.
func TestPartiesThatAreNotInvolved(t *testing.T) {
	s := newSubject(t, cheap, 4)
	few := NewEvaluator(s.Scheme)
	for _, k := range s.keys[:2] {
		if _, err := few.Add(k, 1); err != nil {
			t.Fatal(err)
		}
	}
	a, b, c := s.encrypt(0, true, 1), s.encrypt(1, true, 2), s.encrypt(2, true, 3)
	want, err := s.e.Gate(t.Context(), 1, And, a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := few.Gate(t.Context(), 1, And, a, b, nil)
	if err != nil || !got.Equal(want) {
		t.Errorf("two of four parties: %v", err)
	}
	if _, err := few.Gate(t.Context(), 1, And, a, c, nil); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("an unknown party: %v", err)
	}
	few.Remove(b.Parts[0].Key)
	if few.Has(b.Parts[0].Key) || !few.Has(a.Parts[0].Key) {
		t.Error("the wrong keys were removed")
	}
	if _, err := few.Gate(t.Context(), 1, And, a, b, nil); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a removed party: %v", err)
	}
	if _, err := few.Gate(t.Context(), 1, And, a, Not(a), nil); err != nil {
		t.Errorf("a remaining party: %v", err)
	}
}

// Malformed tasks are refused before anything is computed.
func TestTasksAreRefused(t *testing.T) {
	s := newSubject(t, cheap, 3)
	good := s.encrypt(0, true, 1)
	short := good.Clone()
	short.Parts[0].A = short.Parts[0].A[1:]
	twice := good.Clone()
	twice.Parts = append(twice.Parts, twice.Parts[0])
	many := good.Clone()
	for i := range byte(32) {
		many.Parts = append(many.Parts, Part{KeyID{i}, make([]uint32, s.Dim)})
	}
	half, other := &Ciphertext{}, &Ciphertext{}
	for i := range byte(32) {
		half.Parts = append(half.Parts, Part{KeyID{1, i}, make([]uint32, s.Dim)})
		other.Parts = append(other.Parts, Part{KeyID{2, i}, make([]uint32, s.Dim)})
	}
	strange := &Ciphertext{Parts: half.Parts[:1]}
	for name, c := range map[string]struct {
		task Task
		want error
	}{
		"no gate":         {Task{Gate: 0, A: good, B: good}, ErrGate},
		"no such gate":    {Task{Gate: gates, A: good, B: good}, ErrGate},
		"no operand":      {Task{Gate: And, A: good}, ErrCiphertext},
		"no third":        {Task{Gate: Mux, A: good, B: good}, ErrCiphertext},
		"short":           {Task{Gate: And, A: short, B: good}, ErrCiphertext},
		"a key twice":     {Task{Gate: And, A: good, B: twice}, ErrCiphertext},
		"many parts":      {Task{Gate: And, A: good, B: many}, ErrParties},
		"many together":   {Task{Gate: And, A: half, B: other}, ErrParties},
		"many in a mux":   {Task{Gate: Mux, A: good, B: half, C: other}, ErrParties},
		"keys not here":   {Task{Gate: And, A: good, B: strange}, ErrUnknownKey},
		"no destination":  {Task{Gate: And, A: good, B: good, Dst: nil}, ErrCiphertext},
		"good, and after": {Task{Gate: And, A: good, B: good, Dst: new(Ciphertext)}, nil},
	} {
		if c.task.Dst == nil && name != "no destination" {
			c.task.Dst = new(Ciphertext)
		}
		first := new(Ciphertext)
		err := s.e.Run(t.Context(), 1, []Task{{Gate: And, Dst: first, A: good, B: good}, c.task})
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if (err != nil) != (len(first.Parts) == 0) {
			t.Errorf("%s: the state of the other task is wrong", name)
		}
	}
}
