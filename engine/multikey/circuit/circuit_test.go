package circuit

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// world holds the test set with some parties.
type world struct {
	*multikey.Scheme
	local   Local
	secrets []*multikey.Secret
	source  *sample.Source
	count   uint64
}

func newWorld(t testing.TB, parties int) *world {
	t.Helper()
	set, err := multikey.Lookup("insecure-M8-32")
	if err != nil {
		t.Fatal(err)
	}
	s, err := multikey.New(set, multikey.StandardSeed())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Scheme: s, local: Local{Evaluator: multikey.NewEvaluator(s), Workers: 2}, source: sample.NewSource(make([]byte, 32)).Sub("circuits")}
	for i := range parties {
		secret, keys := s.Generate(uint32(i), w.source.Sub("party", uint64(i)), 2)
		if _, err := w.local.Evaluator.Add(keys, 2); err != nil {
			t.Fatal(err)
		}
		w.secrets = append(w.secrets, secret)
	}
	return w
}

// encrypt encrypts bit i of a circuit under the key that owner names; -1 means a public bit.
func (w *world) encrypt(bits []bool, owner func(i int) int) []*multikey.Ciphertext {
	list := make([]*multikey.Ciphertext, len(bits))
	for i, bit := range bits {
		if o := owner(i); o < 0 {
			list[i] = multikey.Trivial(bit)
		} else {
			w.count++
			list[i] = w.secrets[o].Encrypt([]bool{bit}, w.source.Sub("bit", w.count)).Ciphertext(0)
		}
	}
	return list
}

func keysOf(list []*multikey.Ciphertext) (keys [][]multikey.KeyID) {
	for _, c := range list {
		keys = append(keys, c.Keys())
	}
	return keys
}

// compute returns the outputs of a netlist on encrypted bits.
func (w *world) compute(t testing.TB, n *Netlist, in []*multikey.Ciphertext) []bool {
	t.Helper()
	p, err := n.Compile()
	if err != nil {
		t.Fatal(err)
	}
	cost, err := p.Cost(w.Scheme, keysOf(in))
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	out, err := p.Run(context.Background(), w.local, func(i int) *multikey.Ciphertext { return in[i] }, func(gates int) {
		if gates <= last {
			t.Errorf("progress goes from %d to %d", last, gates)
		}
		last = gates
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != p.Gates() || cost.Total() != p.Bootstraps() || cost.Gates != p.Gates() {
		t.Errorf("progress ends at %d of %d gates, the cost has %d bootstraps of %d", last, p.Gates(), cost.Total(), p.Bootstraps())
	}
	size, bits := 0, make([]bool, len(out))
	for i, c := range out {
		size += w.CiphertextSize(len(c.Parts))
		if bits[i], err = multikey.Decrypt(c, w.secrets...); err != nil {
			t.Fatal(err)
		}
	}
	if size != cost.Output {
		t.Errorf("the cost has %d bytes of output, there are %d", cost.Output, size)
	}
	return bits
}

// random returns a netlist of all gates, negations, copies and constants with the given number of
// levels: each gate uses a wire of the level before.
func random(r *rand.Rand, inputs, depth, width int) *Netlist {
	b := new(Builder)
	all := b.Input(inputs)
	before := slices.Clone(all)
	gates := multikey.Gates()
	for range depth {
		var level []uint32
		for range width {
			in := []uint32{before[r.IntN(len(before))], all[r.IntN(len(all))], all[r.IntN(len(all))]}
			r.Shuffle(3, func(i, j int) { in[i], in[j] = in[j], in[i] })
			var w uint32
			switch k := r.IntN(len(gates) + 3); {
			case k < len(gates):
				w = b.Gate(gates[k], in[:gates[k].Operands()]...)
			case k == len(gates):
				w = b.Not(in[0])
			case k == len(gates)+1:
				w = b.add(Copy, in[0])
			default:
				w = b.Constant(r.IntN(2) == 1)
			}
			level = append(level, w)
		}
		all, before = append(all, level...), level
	}
	return b.Netlist(before, all[:2])
}

func bitsOf(r *rand.Rand, n int) []bool {
	list := make([]bool, n)
	for i := range list {
		list[i] = r.IntN(2) == 1
	}
	return list
}

// A compiled netlist computes the same as its source: many netlists on public bits, which are
// cheap, and a deep one on bits encrypted by four parties.
func TestRandomNetlists(t *testing.T) {
	w := newWorld(t, 4)
	r := rand.New(rand.NewPCG(1, 2))
	check := func(n *Netlist, owner func(i int) int) {
		t.Helper()
		in := bitsOf(r, n.InputBits())
		want, err := n.Eval(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.compute(t, n, w.encrypt(in, owner)); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v, of\n%s", got, want, n.Append(nil))
		}
	}
	for range 300 {
		check(random(r, 2+r.IntN(6), 1+r.IntN(6), 1+r.IntN(8)), func(int) int { return -1 })
	}
	deepest := 0
	for range 3 {
		n := random(r, 16, 44, 8)
		p, err := n.Compile()
		if err != nil {
			t.Fatal(err)
		}
		deepest = max(deepest, p.Depth())
		check(n, func(i int) int { return i % 4 })
	}
	if deepest < 20 {
		t.Errorf("the deepest netlist has %d levels, want 20", deepest)
	}
}

func number(bits []bool) (x int) {
	for i, b := range bits {
		if b {
			x |= 1 << i
		}
	}
	return x
}

func binary(x, width int) (bits []bool) {
	for i := range width {
		bits = append(bits, x>>i&1 == 1)
	}
	return bits
}

// The examples are correct for all small numbers.
func TestExamples(t *testing.T) {
	eval := func(n *Netlist, width int, values ...int) (out []int) {
		t.Helper()
		var in []bool
		for _, v := range values {
			in = append(in, binary(v, width)...)
		}
		bits, err := n.Eval(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range n.Outputs {
			out, bits = append(out, number(bits[:k])), bits[k:]
		}
		return out
	}
	truth := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	for x := range 16 {
		for y := range 16 {
			if got := eval(Adder(4), 4, x, y); got[0] != x+y {
				t.Errorf("%d + %d = %d", x, y, got[0])
			}
			if got := eval(Comparator(4), 4, x, y); got[0] != truth(x < y) || got[1] != truth(x == y) {
				t.Errorf("%d and %d compare as %v", x, y, got)
			}
		}
	}
	for all := range 1 << 9 {
		bids := []int{all & 7, all >> 3 & 7, all >> 6}
		best := slices.Max(bids)
		winner := slices.Index(bids, best)
		second := slices.Max(slices.Delete(slices.Clone(bids), winner, winner+1))
		if got := eval(FirstPrice(3, 3), 3, bids...); got[0] != winner || got[1] != best {
			t.Errorf("of %v the winner is %v", bids, got)
		}
		if got := eval(SecondPrice(3, 3), 3, bids...); got[0] != winner || got[1] != second {
			t.Errorf("of %v the winner is %v at the second price", bids, got)
		}
	}
	if got := eval(Intersection(4, 3, 5), 5, 3, 7, 30, 12, 12, 4, 3); got[0] != 2 {
		t.Errorf("the intersection has %d", got[0])
	}
	if got := eval(Intersection(1, 1, 2), 2, 3, 3); got[0] != 1 {
		t.Errorf("the intersection of equal lists has %d", got[0])
	}
}

// Runs an auction on bids under four parties' own keys.
func TestEncryptedAuction(t *testing.T) {
	w := newWorld(t, 4)
	bids := []int{9, 14, 3, 12}
	var in []bool
	for _, b := range bids {
		in = append(in, binary(b, 4)...)
	}
	for name, want := range map[string][]int{"first-price-auction": {1, 14}, "second-price-auction": {1, 12}} {
		n, err := MakeExample(name, 4, 4)
		if err != nil {
			t.Fatal(err)
		}
		got := w.compute(t, n, w.encrypt(in, func(i int) int { return i / 4 }))
		if number(got[:2]) != want[0] || number(got[2:]) != want[1] {
			t.Errorf("%s: bid %d at %d, want %v", name, number(got[:2]), number(got[2:]), want)
		}
	}
}

// Known and duplicate gates are not computed.
func TestCompiled(t *testing.T) {
	gates := func(build func(b *Builder, x, y, z uint32) []uint32) (*Program, int) {
		b := new(Builder)
		in := b.Input(3)
		p, err := b.Netlist(build(b, in[0], in[1], in[2])).Compile()
		if err != nil {
			t.Fatal(err)
		}
		return p, p.Gates()
	}
	for i, c := range []struct {
		want  int
		build func(b *Builder, x, y, z uint32) []uint32
	}{
		{0, func(b *Builder, x, y, _ uint32) []uint32 { return []uint32{x, b.Not(y), b.Constant(true)} }},
		{0, func(b *Builder, x, _, _ uint32) []uint32 { return []uint32{b.Gate(multikey.Xor, x, b.Not(x))} }},
		{0, func(b *Builder, x, y, _ uint32) []uint32 {
			return []uint32{b.Gate(multikey.Mux, b.Constant(false), x, y), b.Gate(multikey.Mux, y, x, x)}
		}},
		{1, func(b *Builder, x, y, _ uint32) []uint32 {
			return []uint32{b.Gate(multikey.And, x, y), b.Gate(multikey.Nand, y, x), b.Gate(multikey.Nor, b.Not(y), b.Not(x))}
		}},
		{1, func(b *Builder, x, y, _ uint32) []uint32 {
			return []uint32{b.Gate(multikey.Mux, x, y, b.Not(y)), b.Gate(multikey.Xor, x, y)}
		}},
		{1, func(b *Builder, x, y, z uint32) []uint32 {
			return []uint32{b.Gate(multikey.Mux, x, y, z), b.Gate(multikey.Mux, b.Not(x), b.Not(z), b.Not(y))}
		}},
		{1, func(b *Builder, x, y, z uint32) []uint32 {
			b.Gate(multikey.Mux, x, y, z) // unused
			return []uint32{b.Gate(multikey.Or, x, z)}
		}},
	} {
		if _, got := gates(c.build); got != c.want {
			t.Errorf("case %d: %d gates, want %d", i, got, c.want)
		}
	}
	p, _ := gates(func(b *Builder, x, y, z uint32) []uint32 { return []uint32{b.Gate(multikey.Mux, x, y, z)} })
	if p.Bootstraps() != 2 || p.Depth() != 1 || p.InputBits() != 3 || p.OutputBits() != 1 {
		t.Errorf("a multiplexer has %d bootstraps in %d levels", p.Bootstraps(), p.Depth())
	}
}

// The cost counts exactly the parties in ciphertexts.
func TestCost(t *testing.T) {
	w := newWorld(t, 0)
	ids := []multikey.KeyID{{1}, {2}, {3}}
	b := new(Builder)
	in := b.Input(4)
	x := b.Gate(multikey.And, in[0], in[1])    // under party 1
	y := b.Gate(multikey.Xor, in[2], in[3])    // under 2 and 3
	z := b.Gate(multikey.Mux, in[0], x, in[2]) // under 1, and under 1 and 2
	p, err := b.Netlist([]uint32{b.Gate(multikey.Or, y, z)}).Compile()
	if err != nil {
		t.Fatal(err)
	}
	keys := [][]multikey.KeyID{ids[:1], ids[:1], ids[1:2], ids[2:]}
	c, err := p.Cost(w.Scheme, keys)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 2, 2, 1}; !slices.Equal(c.Bootstraps[:4], want) || c.Rotations() != 9 || c.Switches != 8 || c.Depth != 3 {
		t.Errorf("%+v, want bootstraps %v", c, want)
	}
	if c.Output != w.CiphertextSize(3) || c.Held < memory(w.Scheme, 3) {
		t.Errorf("%d bytes of output, %d held", c.Output, c.Held)
	}
	if _, err := p.Cost(w.Scheme, keys[:3]); !errors.Is(err, ErrInputs) {
		t.Errorf("too few inputs: %v", err)
	}
	var many []multikey.KeyID
	for i := range MaxKeys + 1 {
		many = append(many, multikey.KeyID{byte(i), 1})
	}
	keys[0], keys[1], keys[2] = many[:30], many[30:60], many[60:]
	if _, err := p.Cost(w.Scheme, keys); !errors.Is(err, ErrKeys) {
		t.Errorf("too many keys: %v", err)
	}
	keys[2], keys[3] = nil, nil
	if _, err := p.Cost(w.Scheme, keys); !errors.Is(err, multikey.ErrParties) {
		t.Errorf("too many parties in a gate: %v", err)
	}
	keys[0], keys[1] = many[:33], nil
	if _, err := p.Cost(w.Scheme, keys); !errors.Is(err, multikey.ErrParties) {
		t.Errorf("too many parties in an input: %v", err)
	}
}

// An evaluation ends when it is cancelled or a key is missing, and keeps no more results in memory
// than the cost says.
func TestRunEnds(t *testing.T) {
	w := newWorld(t, 2)
	n := Adder(8)
	p, err := n.Compile()
	if err != nil {
		t.Fatal(err)
	}
	in := w.encrypt(make([]bool, 16), func(i int) int { return i / 8 })
	input := func(i int) *multikey.Ciphertext { return in[i] }
	ctx, cancel := context.WithCancel(context.Background())
	_, err = p.Run(ctx, w.local, input, func(gates int) {
		if gates > 4 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	w.local.Evaluator.Remove(w.secrets[1].ID())
	if _, err := p.Run(context.Background(), w.local, input, nil); !errors.Is(err, multikey.ErrUnknownKey) {
		t.Errorf("without a key: %v", err)
	}
}

func TestRefused(t *testing.T) {
	good := "3 6\n2 2 1\n1 1\n\n2 1 0 1 3 AND\n1 1 3 4 INV \r\n3 1 2 3 4 5 MUX\n"
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		old, new string
		want     error
	}{
		"nothing":                  {good, "", ErrSyntax},
		"three numbers in front":   {"3 6\n", "3 6 1\n", ErrSyntax},
		"a sign":                   {"3 6\n", "+3 6\n", ErrSyntax},
		"a leading zero":           {"3 6\n", "03 6\n", ErrSyntax},
		"a huge number":            {"3 6\n", "3 99999999999999999999\n", ErrSyntax},
		"too many wires":           {"3 6\n", "3 1048577\n", ErrTooBig},
		"more gates than wires":    {"3 6\n", "7 6\n", ErrTooBig},
		"no wires":                 {"3 6\n", "0 0\n", ErrWire},
		"a value without bits":     {"2 2 1", "2 3 0", ErrSyntax},
		"no inputs":                {"2 2 1", "0", ErrSyntax},
		"no outputs":               {"1 1\n\n", "0\n\n", ErrSyntax},
		"too few sizes":            {"2 2 1", "3 2 1", ErrSyntax},
		"too many sizes":           {"2 2 1", "1 2 1", ErrSyntax},
		"more inputs than wires":   {"2 2 1", "2 2 9", ErrWire},
		"more outputs than wires":  {"1 1\n\n", "1 7\n\n", ErrWire},
		"too few inputs":           {"2 2 1", "2 1 1", ErrWire},
		"a gate too few":           {"1 1 3 4 INV", "", ErrSyntax},
		"a gate too many":          {"1 1 3 4 INV", "1 1 3 4 INV\n1 1 3 4 INV", ErrSyntax},
		"no such gate":             {"AND", "ADD", ErrSyntax},
		"small letters":            {"AND", "and", ErrSyntax},
		"too few operands":         {"2 1 0 1 3 AND", "1 1 0 3 AND", ErrSyntax},
		"too many operands":        {"1 1 3 4 INV", "2 1 3 0 4 INV", ErrSyntax},
		"two results":              {"1 1 3 4 INV", "1 2 3 4 5 INV", ErrSyntax},
		"too few fields":           {"1 1 3 4 INV", "1 1 3 INV", ErrSyntax},
		"one field":                {"1 1 3 4 INV", "INV", ErrSyntax},
		"more fields than memory":  {"1 1 3 4 INV", "999999999 999999999 INV", ErrSyntax},
		"a wire that is not there": {"1 1 3 4 INV", "1 1 6 4 INV", ErrWire},
		"a wire from later":        {"1 1 3 4 INV", "1 1 5 4 INV", ErrWire},
		"a gate of itself":         {"1 1 3 4 INV", "1 1 4 4 INV", ErrWire},
		"a wire set twice":         {"1 1 3 4 INV", "1 1 2 3 INV", ErrWire},
		"an input that is set":     {"1 1 3 4 INV", "1 1 3 0 INV", ErrWire},
		"a constant of two":        {"1 1 3 4 INV", "1 1 2 4 EQ", ErrSyntax},
		"an uneven MAND":           {"1 1 3 4 INV", "3 1 0 1 2 4 MAND", ErrSyntax},
		"a MAND of nothing":        {"1 1 3 4 INV", "0 0 MAND", ErrSyntax},
		"a MAND of too much":       {"1 1 3 4 INV", "8 4 0 0 0 0 0 0 0 0 1 2 3 4 MAND", ErrWire},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if n, err := Parse([]byte(text)); !errors.Is(err, c.want) || text == good {
			t.Errorf("%s: %v, %v; want %v", name, n, err, c.want)
		}
	}
	if _, err := Parse(make([]byte, MaxText+1)); !errors.Is(err, ErrTooBig) {
		t.Errorf("a huge text: %v", err)
	}
	n := Adder(2)
	if _, err := n.Eval(make([]bool, 3)); !errors.Is(err, ErrInputs) {
		t.Errorf("three bits: %v", err)
	}
	n.Gates[0].Op = 77
	if _, err := n.Compile(); !errors.Is(err, ErrSyntax) {
		t.Errorf("an unknown gate: %v", err)
	}
	n.Gates[0] = Gate{Op: True, In: [3]uint32{0, 0, 1}, Out: 4}
	if err := n.Check(); !errors.Is(err, ErrSyntax) {
		t.Errorf("an operand too many: %v", err)
	}
	if err := new(Netlist).Check(); !errors.Is(err, ErrTooBig) {
		t.Errorf("an empty netlist: %v", err)
	}
	for _, arguments := range [][]int{{}, {0, 3}, {3, 257}} {
		if _, err := MakeExample("first-price-auction", arguments...); !errors.Is(err, ErrInputs) {
			t.Errorf("an auction of %v: %v", arguments, err)
		}
	}
	if _, err := MakeExample("lottery", 3); !errors.Is(err, ErrInputs) {
		t.Errorf("an unknown example: %v", err)
	}
}

// A line with too many fields uses no more memory than a line with the maximal number, anywhere in
// the netlist.
func TestLongLines(t *testing.T) {
	const fields = 1 << 20
	long := strings.Repeat("1 ", fields) + "MAND\n"
	for _, before := range []string{"", "1 3\n", "1 3\n1 2\n", "1 3\n1 2\n1 1\n"} {
		p := &parser{text: []byte(before + long), most: 2}
		if n, err := p.netlist(); !errors.Is(err, ErrSyntax) {
			t.Errorf("after %q: %v, %v", before, n, err)
		}
		if cap(p.fields) > 32 {
			t.Errorf("after %q: memory for %d fields", before, cap(p.fields))
		}
	}
}

// MAND is read as several AND gates.
func TestManyAnd(t *testing.T) {
	n, err := Parse([]byte("2 7\n2 2 2\n1 3\n4 2 0 1 2 3 4 5 MAND\n1 1 1 6 EQ\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(n.Append(nil)), "3 7\n2 2 2\n1 3\n2 1 0 2 4 AND\n2 1 1 3 5 AND\n1 1 1 6 EQ\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range Examples() {
		arguments := []int{2, 2, 2}
		f.Add(e.Make(arguments[:len(e.Arguments)]).Append(nil))
	}
	f.Add([]byte("2 7\n2 2 2\n1 3\n4 2 0 1 2 3 4 5 MAND\n1 1 1 6 EQ\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<12 {
			return
		}
		n, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrTooBig) && !errors.Is(err, ErrWire) {
				t.Fatalf("the error wraps no error of this package: %v", err)
			}
			return
		}
		again, err := Parse(n.Append(nil))
		if err != nil || again.Digest() != n.Digest() {
			t.Fatalf("reading the appended text failed: %v", err)
		}
		p, err := n.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if p.Gates() > len(n.Gates) || p.Depth() > p.Gates() || p.InputBits() != n.InputBits() || p.OutputBits() != n.OutputBits() {
			t.Fatalf("%d gates in %d levels of %d", p.Gates(), p.Depth(), len(n.Gates))
		}
	})
}
