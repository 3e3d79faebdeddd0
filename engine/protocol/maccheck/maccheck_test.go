package maccheck

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
)

const step = "check"

func testField(t testing.TB, name string) *field.Field {
	t.Helper()
	set, err := params.Lookup("insecure-6")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := set.Field(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := field.New(spec.B, spec.M)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func source(label string, p round.Party) *sample.Source {
	d := round.Hash("maccheck test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

// dealt has the inputs of all parties, made by a trusted dealer.
type dealt struct {
	f      *field.Field
	alpha  field.Element
	inputs []Config
}

// deal shares two lists of random values, the second longer than one block of weights, and zeros if
// there are any.
func deal(t testing.TB, f *field.Field, n, zeros int) *dealt {
	t.Helper()
	d := &dealt{f: f, alpha: f.NewElement(), inputs: make([]Config, n)}
	stream := source("dealer", 0).Stream("all", uint64(n), uint64(zeros))
	random := func(count int) field.Vec {
		v := f.NewVec(count)
		if err := f.Random(v, stream); err != nil {
			t.Fatal(err)
		}
		return v
	}
	share := func(v field.Vec) []field.Vec {
		shares, rest := make([]field.Vec, n), v.Clone()
		for p := range n - 1 {
			shares[p] = random(v.Len())
			f.SubVec(rest, rest, shares[p])
		}
		shares[n-1] = rest
		return shares
	}
	alpha := random(1)
	copy(d.alpha, alpha.At(0))
	pairs := func(v field.Vec) []Pair {
		mac := f.NewVec(v.Len())
		f.ScaleVec(mac, v, d.alpha)
		out := make([]Pair, n)
		values, macs := share(v), share(mac)
		for p := range out {
			out[p] = Pair{values[p], macs[p]}
		}
		return out
	}
	x, y, mask := pairs(random(7)), pairs(random(300)), pairs(random(1))
	material := make([]*Material, n)
	for p := range material {
		material[p] = &Material{Mask: mask[p]}
	}
	for i := range Combinations {
		a, b, c := random(1), pairs(random(1)), f.NewVec(1)
		for p := range b {
			f.AddVec(c, c, b[p].Value)
		}
		f.MulVec(c, c, a)
		as, cs := share(a), share(c)
		for p := range material {
			material[p].Triples[i] = Triple{A: as[p], B: b[p].Value, C: cs[p], MACB: b[p].MAC}
		}
	}
	z, sacrificed := pairs(f.NewVec(zeros)), pairs(f.NewVec(zeros))
	for p := range n {
		d.inputs[p] = Config{Step: step, Field: f, Values: []Pair{x[p], y[p]}, Material: material[p]}
		if zeros > 0 {
			d.inputs[p].Zeros, d.inputs[p].Sacrificed = []Pair{z[p]}, []Pair{sacrificed[p]}
		}
	}
	return d
}

func (d *dealt) run(options ...roundtest.Option) *roundtest.Outcome[Passed] {
	return roundtest.Lockstep(len(d.inputs), func(s round.Session) (round.Transition[Passed], error) {
		c := d.inputs[s.Self]
		c.Session, c.Source, c.Material = s, source("run", s.Self), c.Material.clone()
		return Start(c)
	}, options...)
}

// clone copies material that has not been consumed, so that a test can run one input several times.
func (m *Material) clone() *Material {
	out := &Material{Mask: Pair{m.Mask.Value.Clone(), m.Mask.MAC.Clone()}}
	for i, t := range m.Triples {
		out.Triples[i] = Triple{A: t.A.Clone(), B: t.B.Clone(), C: t.C.Clone(), MACB: t.MACB.Clone()}
	}
	return out
}

// bump adds one.
func bump(f *field.Field, x field.Element) { f.Add(x, x, f.One()) }

// aborts fails the test unless every honest party ends with an abort of this check that names no
// party and reveals no values.
func aborts(t *testing.T, errs []error, culprit round.Party, check string) {
	t.Helper()
	for p, err := range errs {
		var abort *round.Abort
		if round.Party(p) == culprit {
			continue
		}
		if !errors.As(err, &abort) || abort.Check != check || len(abort.Suspects) > 0 {
			t.Errorf("party %d ends with %v, want an abort of check %s", p, err, check)
		} else if strings.ContainsAny(abort.Reason, "0123456789") {
			t.Errorf("the reason %q says too much", abort.Reason)
		}
	}
}

func TestHonest(t *testing.T) {
	for _, name := range []string{"p64", "p128", "p512"} {
		f := testField(t, name)
		for _, n := range []int{2, 3, 5} {
			for _, zeros := range []int{0, 5} {
				out := deal(t, f, n, zeros).run().OK(t)
				for p := range out.Results {
					if out.Results[p] != out.Results[0] {
						t.Errorf("%s, %d parties: party %d has another transcript", name, n, p)
					}
				}
			}
		}
	}
}

// The result is a hash of this session's messages. It differs for other values or another session.
func TestTranscriptsDiffer(t *testing.T) {
	f := testField(t, "p128")
	d := deal(t, f, 2, 0)
	first := d.run().OK(t).Results[0]
	if again := d.run(roundtest.ID(round.Digest{1})).OK(t).Results[0]; again == first {
		t.Error("two sessions have one transcript")
	}
}

// The cheats of the last party, and the result of the run. A result that is only the name of a
// check is an abort that names no party.
var cheats = []struct {
	name    string
	parties int // 0 is two and three
	wrong   func(f *field.Field, c *Config)
	fault   func(culprit round.Party) roundtest.Option
	copies  string // step in which the cheating party repeats the messages of party 0
	check   string
	blamed  bool // the cheating party is named
	none    bool // nothing must be zero
}{
	{name: "a wrong share of a value", wrong: func(f *field.Field, c *Config) { bump(f, c.Values[0].Value.At(3)) }, check: CheckMAC},
	{name: "a wrong share of the last value", wrong: func(f *field.Field, c *Config) { bump(f, c.Values[1].Value.At(299)) }, check: CheckMAC},
	{name: "a wrong share of a MAC", wrong: func(f *field.Field, c *Config) { bump(f, c.Values[1].MAC.At(256)) }, check: CheckMAC},
	{name: "a wrong share of the mask", wrong: func(f *field.Field, c *Config) { bump(f, c.Material.Mask.Value.At(0)) }, check: CheckMAC},
	{name: "a wrong share of the mask's MAC", wrong: func(f *field.Field, c *Config) { bump(f, c.Material.Mask.MAC.At(0)) }, check: CheckMAC},
	{name: "a wrong share of a check triple's a", wrong: func(f *field.Field, c *Config) { bump(f, c.Material.Triples[0].A.At(0)) }, check: CheckMAC},
	{name: "a wrong share of a check triple's b", wrong: func(f *field.Field, c *Config) { bump(f, c.Material.Triples[1].B.At(0)) }, check: CheckMAC},
	{name: "a wrong share of a check triple's product", wrong: func(f *field.Field, c *Config) { bump(f, c.Material.Triples[2].C.At(0)) }, check: CheckMAC},
	{name: "a wrong share of a check triple's MAC", wrong: func(f *field.Field, c *Config) { bump(f, c.Material.Triples[0].MACB.At(0)) }, check: CheckMAC},
	{name: "two errors that cancel without weights", wrong: func(f *field.Field, c *Config) {
		v := c.Values[0].Value
		bump(f, v.At(0))
		f.Sub(v.At(1), v.At(1), f.One())
	}, check: CheckMAC},
	{name: "values in another order", wrong: func(_ *field.Field, c *Config) {
		for _, v := range []field.Vec{c.Values[0].Value, c.Values[0].MAC} {
			for i, x := range v.At(0) {
				v.At(0)[i], v.At(1)[i] = v.At(1)[i], x
			}
		}
	}, check: CheckMAC},
	{name: "a zero that is not", wrong: func(f *field.Field, c *Config) { bump(f, c.Zeros[0].Value.At(4)) }, check: CheckZero},
	{name: "a zero with a wrong MAC", wrong: func(f *field.Field, c *Config) { bump(f, c.Zeros[0].MAC.At(0)) }, check: CheckMAC},
	{name: "a product that is wrong", wrong: func(f *field.Field, c *Config) { bump(f, c.Sacrificed[0].Value.At(4)) }, check: CheckMAC},
	{name: "a product with a wrong MAC", wrong: func(f *field.Field, c *Config) { bump(f, c.Sacrificed[0].MAC.At(0)) }, check: CheckMAC},
	{name: "errors of products that cancel without weights", wrong: func(f *field.Field, c *Config) {
		v := c.Sacrificed[0].Value
		bump(f, v.At(0))
		f.Sub(v.At(1), v.At(1), f.One())
	}, check: CheckMAC},
	{name: "an opened value that is wrong", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(0))
	}, check: CheckMAC},
	{name: "an opened zero that is wrong", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(8*16))
	}, check: CheckZero},
	{name: "an opened product that is wrong", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(8*32))
	}, check: CheckMAC},
	{name: "an opened m of the values that is wrong", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(8*48))
	}, check: CheckMAC},
	{name: "an opened m of the zeros that is wrong", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(8*64))
	}, check: CheckMAC},
	{name: "an m of zeros where there are none", none: true, fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(8*64))
	}, check: round.CheckShape, blamed: true},
	{name: "an m of products where there are none", none: true, fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(8*80))
	}, check: round.CheckShape, blamed: true},
	{name: "z wrong from the start", fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/z/commit", func(b *[]byte) { *b = append([]byte{(*b)[0] ^ 1}, (*b)[1:]...) })
	}, check: CheckMAC},
	{name: "z of the zeros wrong from the start", fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/z/commit", func(b *[]byte) {
			*b = bytes.Clone(*b)
			(*b)[16] ^= 1
		})
	}, check: CheckMAC},
	{name: "z of the products wrong from the start", fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/z/commit", func(b *[]byte) {
			*b = bytes.Clone(*b)
			(*b)[32] ^= 1
		})
	}, check: CheckMAC},
	{name: "z changed after its commitment", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/z/open", roundtest.Flip(-9))
	}, check: round.CheckCommitment, blamed: true},
	{name: "z copied from another party", copies: step + "/z", check: round.CheckCommitment, blamed: true},
	{name: "a coin changed after its commitment", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/coin/open", roundtest.Flip(-1))
	}, check: round.CheckCommitment, blamed: true},
	{name: "a z that is not a field element", fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/z/commit", func(b *[]byte) { *b = bytes.Repeat([]byte{0xff}, len(*b)) })
	}, check: round.CheckShape, blamed: true},
	{name: "a value that is not a field element", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Payload(bytes.Repeat([]byte{0xff}, 2*Combinations*16)))
	}, check: round.CheckShape, blamed: true},
	{name: "values cut short", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Truncate(1))
	}, check: round.CheckShape, blamed: true},
	{name: "values with something after them", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Extend(1))
	}, check: round.CheckSize, blamed: true},
	{name: "z cut short", fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/z/commit", func(b *[]byte) { *b = (*b)[:len(*b)-1] })
	}, check: round.CheckShape, blamed: true},
	{name: "a zero is opened where there are none", none: true, fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(8*16))
	}, check: round.CheckShape, blamed: true},
	{name: "a z of zeros where there are none", none: true, fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/z/commit", func(b *[]byte) {
			*b = bytes.Clone(*b)
			(*b)[16] ^= 1
		})
	}, check: round.CheckShape, blamed: true},
	{name: "a product is opened where there are none", none: true, fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(8*32))
	}, check: round.CheckShape, blamed: true},
	{name: "a z of products where there are none", none: true, fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/z/commit", func(b *[]byte) {
			*b = bytes.Clone(*b)
			(*b)[32] ^= 1
		})
	}, check: round.CheckShape, blamed: true},
	{name: "different values to different parties", parties: 3, fault: func(p round.Party) roundtest.Option {
		return roundtest.Link(p, 0, step+"/open", roundtest.Flip(0))
	}, check: round.CheckEcho},
	{name: "different commitments to different parties", parties: 3, fault: func(p round.Party) roundtest.Option {
		return roundtest.Link(p, 0, step+"/z/commit", roundtest.Flip(0))
	}, check: round.CheckEcho},
	{name: "different openings to different parties", parties: 3, fault: func(p round.Party) roundtest.Option {
		return roundtest.Link(p, 0, step+"/z/open", roundtest.Flip(-1))
	}, check: round.CheckEcho},
}

func hooked[T any](p round.Party, name string, cheat func(T)) roundtest.Option {
	return roundtest.Cheat(p, byzantine.On(byzantine.New(), name, cheat))
}

func TestCheats(t *testing.T) {
	f := testField(t, "p128")
	for _, c := range cheats {
		for _, n := range []int{2, 3} {
			if c.parties != 0 && c.parties != n {
				continue
			}
			t.Run(fmt.Sprint(c.name, ", ", n, " parties"), func(t *testing.T) {
				culprit := round.Party(n - 1)
				zeros := 5
				if c.none {
					zeros = 0
				}
				d := deal(t, f, n, zeros)
				options := []roundtest.Option{roundtest.Cheat(culprit, byzantine.New())}
				if c.wrong != nil {
					c.wrong(f, &d.inputs[culprit])
				}
				if c.fault != nil {
					options = append(options, c.fault(culprit))
				}
				if c.copies != "" {
					options = append(options, roundtest.Rushing(culprit, &roundtest.View{}),
						roundtest.Rewrite(culprit, c.copies+"/commit", roundtest.CopyOf(0, c.copies+"/commit")),
						roundtest.Rewrite(culprit, c.copies+"/open", roundtest.CopyOf(0, c.copies+"/open")))
				}
				out := d.run(options...)
				switch {
				case c.blamed:
					out.Blamed(t, culprit, c.check)
				case c.check == round.CheckEcho:
					out.Aborted(t, culprit, c.check)
				default:
					aborts(t, out.Errors, culprit, c.check)
				}
			})
		}
	}
}

// An error in a value's share passes together with alpha times that error in the MAC's share. The
// check only verifies this relation, and only all parties together can produce it.
func TestARelatedErrorPasses(t *testing.T) {
	f := testField(t, "p128")
	for _, n := range []int{2, 3} {
		d := deal(t, f, n, 0)
		own := d.inputs[n-1].Values[0]
		bump(f, own.Value.At(0))
		f.Add(own.MAC.At(0), own.MAC.At(0), d.alpha)
		d.run().OK(t)
	}
}

// A wrong product with a right MAC, which malformed keys cause, fails CheckSacrifice; a wrong share
// of a product fails CheckMAC. Among zeros both fail CheckZero, because zeros are checked before
// MACs.
func TestAWrongProductWithARightMAC(t *testing.T) {
	f := testField(t, "p128")
	for _, n := range []int{2, 3} {
		for _, at := range []int{0, 4} {
			d := deal(t, f, n, 5)
			own := d.inputs[n-1].Sacrificed[0]
			bump(f, own.Value.At(at))
			f.Add(own.MAC.At(at), own.MAC.At(at), d.alpha)
			aborts(t, d.run(roundtest.Cheat(round.Party(n-1), byzantine.New())).Errors, round.Party(n-1), CheckSacrifice)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	f := testField(t, "p128")
	for name, change := range map[string]func(c *Config){
		"no field":            func(c *Config) { c.Field = nil },
		"no source":           func(c *Config) { c.Source = nil },
		"no material":         func(c *Config) { c.Material = nil },
		"no mask":             func(c *Config) { c.Material.Mask = Pair{f.NewVec(0), f.NewVec(0)} },
		"two masks":           func(c *Config) { c.Material.Mask.Value = f.NewVec(2) },
		"no check triple":     func(c *Config) { c.Material.Triples[0] = Triple{} },
		"no triple for zeros": func(c *Config) { c.Zeros, c.Material.Triples[1] = []Pair{{f.NewVec(1), f.NewVec(1)}}, Triple{} },
		"one triple for two": func(c *Config) {
			c.Zeros, c.Material.Triples[1] = []Pair{{f.NewVec(1), f.NewVec(1)}}, c.Material.Triples[0]
		},
		"the mask in a triple":    func(c *Config) { c.Material.Triples[0].B = c.Material.Mask.Value },
		"a value less":            func(c *Config) { c.Values[0].Value = f.NewVec(6) },
		"a MAC of a product more": func(c *Config) { c.Sacrificed = []Pair{{f.NewVec(1), f.NewVec(2)}} },
		"a MAC of a zero more":    func(c *Config) { c.Zeros = []Pair{{f.NewVec(1), f.NewVec(2)}} },
	} {
		c := deal(t, f, 2, 0).inputs[0]
		c.Session, c.Source = round.Session{Parties: 2}, source("run", 0)
		change(&c)
		if _, err := Start(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
