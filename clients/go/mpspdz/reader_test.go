package mpspdz

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dealer creates authenticated shares with math/big, for tests.
type dealer struct {
	p     *big.Int
	keys  []*big.Int
	alpha *big.Int
	rng   *rand.Rand
}

func newDealer(p *big.Int, n int) *dealer {
	d := &dealer{p: p, alpha: new(big.Int), rng: rand.New(rand.NewPCG(3, uint64(n)))}
	for range n {
		d.keys = append(d.keys, d.value())
		d.alpha.Add(d.alpha, d.keys[len(d.keys)-1])
	}
	return d
}

func (d *dealer) value() *big.Int {
	b := make([]byte, 40)
	for i := range b {
		b[i] = byte(d.rng.Uint32())
	}
	return new(big.Int).Mod(new(big.Int).SetBytes(b), d.p)
}

func (d *dealer) mul(a, b *big.Int) *big.Int {
	c := new(big.Int).Mul(a, b)
	return c.Mod(c, d.p)
}

// share returns every party an encoded share of x.
func (d *dealer) share(x *big.Int) [][]byte {
	out, rest := make([][]byte, len(d.keys)), new(big.Int).Set(x)
	for i := 1; i < len(d.keys); i++ {
		r := d.value()
		rest.Sub(rest, r)
		out[i] = encode(d.p, r)
	}
	out[0] = encode(d.p, rest)
	return out
}

// record returns the values of a target's tuple.
func (d *dealer) record(t Target) []*big.Int {
	a, b := d.value(), d.value()
	switch t.Kind {
	case Scalar:
		return []*big.Int{a, b, d.mul(a, b)}
	case Square:
		return []*big.Int{a, d.mul(a, a)}
	case Inverse:
		return []*big.Int{a, new(big.Int).ModInverse(a, d.p)}
	case Bit:
		return []*big.Int{big.NewInt(d.rng.Int64N(2))}
	case Input:
		return []*big.Int{a}
	}
	s := t.Shape
	v := make([]*big.Int, t.values())
	c := v[s.Rows*s.Inner+s.Inner*s.Cols:]
	for i := range v[:len(v)-len(c)] {
		v[i] = d.value()
	}
	for i := range c {
		c[i] = new(big.Int)
		for k := range s.Inner {
			c[i].Add(c[i], d.mul(v[i/s.Cols*s.Inner+k], v[s.Rows*s.Inner+k*s.Cols+i%s.Cols]))
		}
		c[i].Mod(c[i], d.p)
	}
	return v
}

// deal returns every party its shares of some records, in Lodge's encoding.
func (d *dealer) deal(t Target, records int) [][]byte {
	var values [][]*big.Int
	for range records {
		values = append(values, d.record(t))
	}
	return d.dealValues(t, values)
}

// dealValues is deal for records chosen by the caller.
func (d *dealer) dealValues(t Target, records [][]*big.Int) [][]byte {
	out := make([][]byte, len(d.keys))
	for _, v := range records {
		for _, key := range []*big.Int{big.NewInt(1), d.alpha} {
			for _, x := range v {
				for i, s := range d.share(d.mul(key, x)) {
					out[i] = append(out[i], s...)
				}
			}
		}
		if t.Kind == Input {
			out[t.Owner] = append(out[t.Owner], encode(d.p, v[0])...)
		}
	}
	return out
}

func allTargets(n int) []Target {
	targets := []Target{{Kind: Scalar}, {Kind: Square}, {Kind: Bit}, {Kind: Inverse}, {Kind: Matrix, Shape: Shape{2, 3, 1}}}
	for i := range n {
		targets = append(targets, Target{Kind: Input, Owner: i})
	}
	return targets
}

// write writes all kinds, each party's files below the directory returned by dir.
func (d *dealer) write(t *testing.T, records int, suffix string, dir func(party int) string) {
	t.Helper()
	for _, target := range allTargets(len(d.keys)) {
		for i, shares := range d.deal(target, records) {
			tree, err := NewTree(t.Context(), dir(i), Options{
				Prime: d.p, Parties: len(d.keys), Party: i, KeyShare: encode(d.p, d.keys[i]), Suffix: suffix,
			})
			if err != nil {
				t.Fatal(err)
			}
			f, err := tree.File(target)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write(shares)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const tools = "../../python/tools"

// reader runs the independent reader.
func reader(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.Command("python3", append([]string{"-I", "-B", filepath.Join(tools, "read_mpspdz.py")}, args...)...)
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	return string(b), err
}

// A reader that shares no code with the writer opens every record of every kind and accepts it.
func TestIndependentReader(t *testing.T) {
	for _, c := range []struct{ bits, parties, records int }{{64, 2, 101}, {128, 3, 101}, {128, 2, 150}, {192, 2, 5}, {256, 3, 35}} {
		t.Run(fmt.Sprintf("bits=%d,n=%d,records=%d", c.bits, c.parties, c.records), func(t *testing.T) {
			t.Parallel()
			d := newDealer(testPrimes[c.bits], c.parties)
			one, apart := t.TempDir(), t.TempDir()
			dirs := []string{"--json"}
			for i := range c.parties {
				dirs = append(dirs, filepath.Join(apart, fmt.Sprint(i)))
			}
			d.write(t, c.records, "", func(int) string { return one })
			d.write(t, c.records, "-T0", func(i int) string { return dirs[1+i] })
			for _, args := range [][]string{{"--json", filepath.Join(one, "Player-Data")}, dirs} {
				out, err := reader(t, args...)
				if err != nil {
					t.Fatal(err, out)
				}
				var r struct {
					OK        bool
					Parties   int
					PrimeBits int `json:"prime_bits"`
					Kinds     []struct {
						Name            string
						Files           []string
						Records, Usable int64
						OK              bool
					}
				}
				if err := json.Unmarshal([]byte(out), &r); err != nil {
					t.Fatal(err)
				}
				if !r.OK || r.Parties != c.parties || r.PrimeBits != c.bits || len(r.Kinds) != len(allTargets(c.parties)) {
					t.Errorf("%s", out)
				}
				usable := make(map[string]int64)
				for _, target := range allTargets(c.parties) {
					usable[strings.SplitN(target.name(0), "-", 2)[0]] = target.Usable(int64(c.records))
				}
				for _, k := range r.Kinds {
					want := usable[strings.FieldsFunc(k.Name, func(r rune) bool { return r == ' ' || r == '-' })[0]]
					if !k.OK || k.Records != int64(c.records) || k.Usable != want || len(k.Files) != c.parties {
						t.Errorf("%v, want %d usable", k, want)
					}
				}
			}
		})
	}
}

// The reader refuses a tree that differs from a valid one in any byte of any file (with three
// parties, in a sample of bytes).
func TestReaderRefusesEveryByte(t *testing.T) {
	for _, c := range []struct{ bits, parties, step, least int }{{64, 2, 1, 1300}, {128, 3, 9, 400}} {
		t.Run(fmt.Sprintf("bits=%d,n=%d", c.bits, c.parties), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			newDealer(testPrimes[c.bits], c.parties).write(t, 1, "", func(int) string { return dir })
			cmd := exec.Command("python3", "-B", filepath.Join("testdata", "everybyte.py"), tools, dir, fmt.Sprint(c.step))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var changed, missed int
			if _, err := fmt.Sscan(string(out), &changed, &missed); err != nil {
				t.Fatal(err)
			}
			if changed < c.least || missed > 0 {
				t.Errorf("%d changes, %d of them not refused", changed, missed)
			}
			t.Logf("%d changes refused", changed)
		})
	}
}

// Defects of a whole tree, and the messages for them; the exit status is 1.
func TestReaderRefuses(t *testing.T) {
	const sub = "Player-Data/2-p-64/"
	rename := func(from, to string) func(string) error {
		return func(dir string) error { return os.Rename(filepath.Join(dir, sub, from), filepath.Join(dir, sub, to)) }
	}
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
	}
	for want, change := range map[string]func(dir string) error{
		"not of all 2":                remove(sub + "Bits-p-P1"),
		"MAC keys of parties [0]":     remove(sub + "Player-MAC-Keys-p-P1"),
		"No such file":                remove(sub + "Params-Data"),
		"no directory like 2-p-128":   remove(sub),
		"c is not a b":                nil, // below
		"different numbers of record": nil,
		"is no file that":             rename("Bits-p-P1", "Bits-p-P1.new"),
		"the header is not that":      rename("Squares-p-P0", "Inverses-p-P1"),
		"not a prime": func(dir string) error { // one that stock builds accept
			if err := os.Rename(filepath.Join(dir, sub), filepath.Join(dir, "Player-Data/2-p-61")); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "Player-Data/2-p-61/Params-Data"), []byte("2305843009213693951\n1\n"), 0o600)
		},
		"for 65": func(dir string) error {
			return os.Rename(filepath.Join(dir, sub), filepath.Join(dir, "Player-Data/2-p-65"))
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := newDealer(testPrimes[64], 2)
			at := func(int) string { return dir }
			switch want {
			case "c is not a b": // consistent in all respects except the relation
				shares := d.deal(Target{Kind: Input}, 3)
				shares[0] = append(shares[0][:16], append(shares[0][24:40], shares[0][48:64]...)...) // no plaintext values
				for i, s := range shares {
					var record []byte // the three values, then the three MACs
					for _, k := range []int{0, 16, 32, 8, 24, 40} {
						record = append(record, s[k:k+8]...)
					}
					d.writeOne(t, dir, i, Target{Kind: Scalar}, "", record)
				}
			case "different numbers of record":
				for i, s := range d.deal(Target{Kind: Bit}, 2) {
					d.writeOne(t, dir, i, Target{Kind: Bit}, "", s[:len(s)-16*i])
				}
			default:
				d.write(t, 2, "", at)
				if err := change(dir); err != nil {
					t.Fatal(err)
				}
			}
			var exit *exec.ExitError
			if out, err := reader(t, dir); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, want) {
				t.Errorf("%v, %s", err, out)
			}
		})
	}
}

// Zeros and repeated values are refused in every kind, also with another suffix and with new shares
// of the same values. For bits only the shares are compared.
func TestReaderRefusesWhatIsNotNew(t *testing.T) {
	factor, share, zero := "a factor was there before", "a share of a bit was there before", "a factor is zero"
	d := newDealer(testPrimes[64], 2)
	products := func(a, b *big.Int) []*big.Int { return []*big.Int{a, b, d.mul(a, b)} }
	none, a, b, x := big.NewInt(0), d.value(), d.value(), d.value()
	scalar, square, input, bit := Target{Kind: Scalar}, Target{Kind: Square}, Target{Kind: Input, Owner: 1}, Target{Kind: Bit}
	matrix := Target{Kind: Matrix, Shape: Shape{1, 1, 2}}
	type values = [][]*big.Int
	type file struct {
		target  Target
		suffix  string
		records values
	}
	type trial struct {
		name, want string
		files      []file
		again      bool // repeats the shares of the first file at its end
	}
	trials := []trial{
		{name: "a and b", want: factor, files: []file{{scalar, "", values{products(a, a)}}}},
		{name: "b of two", want: factor, files: []file{{scalar, "", values{products(a, b), products(x, b)}}}},
		{name: "b of two files", want: factor, files: []file{{scalar, "-T0", values{products(a, b)}}, {scalar, "-T1", values{products(x, b)}}}},
		{name: "of two kinds", want: factor, files: []file{{scalar, "", values{products(a, b)}}, {square, "", values{{b, d.mul(b, b)}}}}},
		{name: "a zero", want: zero, files: []file{{scalar, "", values{products(none, b)}}}},
		{name: "b zero", want: zero, files: []file{{scalar, "", values{products(a, none)}}}},
		{name: "zero square", want: zero, files: []file{{square, "", values{{none, none}}}}},
		{name: "zero mask", want: zero, files: []file{{input, "", values{{none}}}}},
		{name: "zero matrix", want: zero, files: []file{{matrix, "", values{{a, none, none, none, none}}}}},
		{name: "zero in a matrix", files: []file{{matrix, "", values{{a, none, b, none, d.mul(a, b)}}}}},
		{name: "same bit", files: []file{{bit, "", values{{none}, {none}, {big.NewInt(1)}, {big.NewInt(1)}}}}},
		{name: "shares of a bit", want: share, again: true, files: []file{{bit, "", values{{none}}}}},
		{name: "shares of bits in two files", want: share, again: true, files: []file{{bit, "", values{{none}}}, {bit, "-T7", nil}}},
	}
	for _, target := range allTargets(2) {
		if r := d.record(target); target != bit {
			trials = append(trials,
				trial{name: target.name(0), want: factor, files: []file{{target, "", values{r, r}}}},
				trial{name: target.name(0) + "-T2", want: factor, files: []file{{target, "", values{r}}, {target, "-T2", values{r}}}})
		}
	}
	for _, c := range trials {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var first [][]byte
			for i, f := range c.files {
				shares := d.dealValues(f.target, f.records)
				if i == 0 {
					first = shares
				}
				for party := range shares {
					if c.again && i == len(c.files)-1 {
						shares[party] = append(shares[party], first[party]...)
					}
					d.writeOne(t, dir, party, f.target, f.suffix, shares[party])
				}
			}
			out, err := reader(t, dir)
			if c.want == "" {
				if err != nil {
					t.Errorf("%v, %s", err, out)
				}
				return
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || strings.Count(out, "record ") != 1 || !strings.Contains(out, c.want) {
				t.Errorf("%v, %s", err, out)
			}
		})
	}
}

func (d *dealer) writeOne(t *testing.T, dir string, party int, target Target, suffix string, shares []byte) {
	t.Helper()
	tree, err := NewTree(t.Context(), dir, Options{
		Prime: d.p, Parties: len(d.keys), Party: party, KeyShare: encode(d.p, d.keys[party]), Suffix: suffix,
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := tree.File(target)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(shares)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
