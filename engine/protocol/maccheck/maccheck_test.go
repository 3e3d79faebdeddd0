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

// dealt is every party's input, dealt by somebody who knows everything.
type dealt struct {
	f      *field.Field
	alpha  field.Element
	inputs []Config
}

// deal shares two lists of random values, the second longer than one block of weights, and zeros if there are any.
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
	z, sacrificed := pairs(f.NewVec(zeros)), pairs(f.NewVec(zeros))
	for p, a := range share(alpha) {
		d.inputs[p] = Config{Step: step, Field: f, Values: []Pair{x[p], y[p]}, Mask: mask[p], Alpha: a}
		if zeros > 0 {
			d.inputs[p].Zeros, d.inputs[p].Sacrificed = []Pair{z[p]}, []Pair{sacrificed[p]}
		}
	}
	return d
}

func (d *dealt) run(options ...roundtest.Option) *roundtest.Outcome[Passed] {
	return roundtest.Lockstep(len(d.inputs), func(s round.Session) (round.Transition[Passed], error) {
		c := d.inputs[s.Self]
		c.Session, c.Source = s, source("run", s.Self)
		return Start(c)
	}, options...)
}

// bump adds one.
func bump(f *field.Field, x field.Element) { f.Add(x, x, f.One()) }

// aborts fails the test unless every honest party ends with an abort of this check that names nobody and says nothing
// about values.
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

// The result is a hash of this session's messages: other values or another session give another.
func TestTranscriptsDiffer(t *testing.T) {
	f := testField(t, "p128")
	d := deal(t, f, 2, 0)
	first := d.run().OK(t).Results[0]
	if again := d.run(roundtest.ID(round.Digest{1})).OK(t).Results[0]; again == first {
		t.Error("two sessions have one transcript")
	}
}

// What the last party does, and how the run ends. The name of a check alone is an abort that names nobody.
var cheats = []struct {
	name    string
	parties int // 0 is two and three
	wrong   func(f *field.Field, c *Config)
	fault   func(culprit round.Party) roundtest.Option
	copies  string // step whose messages of party 0 the culprit repeats
	check   string
	blamed  bool // the culprit is named
	none    bool // nothing must be zero
}{
	{name: "a wrong share of a value", wrong: func(f *field.Field, c *Config) { bump(f, c.Values[0].Value.At(3)) }, check: CheckMAC},
	{name: "a wrong share of the last value", wrong: func(f *field.Field, c *Config) { bump(f, c.Values[1].Value.At(299)) }, check: CheckMAC},
	{name: "a wrong share of a MAC", wrong: func(f *field.Field, c *Config) { bump(f, c.Values[1].MAC.At(256)) }, check: CheckMAC},
	{name: "a wrong share of alpha", wrong: func(f *field.Field, c *Config) { bump(f, c.Alpha.At(0)) }, check: CheckMAC},
	{name: "a wrong share of the mask", wrong: func(f *field.Field, c *Config) { bump(f, c.Mask.Value.At(0)) }, check: CheckMAC},
	{name: "a wrong share of the mask's MAC", wrong: func(f *field.Field, c *Config) { bump(f, c.Mask.MAC.At(0)) }, check: CheckMAC},
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
	{name: "sigma wrong from the start", fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/sigma/commit", func(b *[]byte) { *b = append([]byte{(*b)[0] ^ 1}, (*b)[1:]...) })
	}, check: CheckMAC},
	{name: "sigma of the zeros wrong from the start", fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/sigma/commit", func(b *[]byte) {
			*b = bytes.Clone(*b)
			(*b)[16] ^= 1
		})
	}, check: CheckMAC},
	{name: "sigma of the products wrong from the start", fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/sigma/commit", func(b *[]byte) {
			*b = bytes.Clone(*b)
			(*b)[32] ^= 1
		})
	}, check: CheckMAC},
	{name: "sigma changed after its commitment", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/sigma/open", roundtest.Flip(-9))
	}, check: round.CheckCommitment, blamed: true},
	{name: "sigma copied from another party", copies: step + "/sigma", check: round.CheckCommitment, blamed: true},
	{name: "a coin changed after its commitment", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/coin/open", roundtest.Flip(-1))
	}, check: round.CheckCommitment, blamed: true},
	{name: "a sigma that is no field element", fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/sigma/commit", func(b *[]byte) { *b = bytes.Repeat([]byte{0xff}, len(*b)) })
	}, check: round.CheckShape, blamed: true},
	{name: "a value that is no field element", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Payload(bytes.Repeat([]byte{0xff}, combinations*16)))
	}, check: round.CheckShape, blamed: true},
	{name: "values cut short", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Truncate(1))
	}, check: round.CheckShape, blamed: true},
	{name: "values with something after them", fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Extend(1))
	}, check: round.CheckSize, blamed: true},
	{name: "sigma cut short", fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/sigma/commit", func(b *[]byte) { *b = (*b)[:len(*b)-1] })
	}, check: round.CheckShape, blamed: true},
	{name: "a zero is opened where there are none", none: true, fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(8*16))
	}, check: round.CheckShape, blamed: true},
	{name: "a sigma of zeros where there are none", none: true, fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/sigma/commit", func(b *[]byte) {
			*b = bytes.Clone(*b)
			(*b)[16] ^= 1
		})
	}, check: round.CheckShape, blamed: true},
	{name: "a product is opened where there are none", none: true, fault: func(p round.Party) roundtest.Option {
		return roundtest.Rewrite(p, step+"/open", roundtest.Flip(8*32))
	}, check: round.CheckShape, blamed: true},
	{name: "a sigma of products where there are none", none: true, fault: func(p round.Party) roundtest.Option {
		return hooked(p, step+"/sigma/commit", func(b *[]byte) {
			*b = bytes.Clone(*b)
			(*b)[32] ^= 1
		})
	}, check: round.CheckShape, blamed: true},
	{name: "different values to different parties", parties: 3, fault: func(p round.Party) roundtest.Option {
		return roundtest.Link(p, 0, step+"/open", roundtest.Flip(0))
	}, check: round.CheckEcho},
	{name: "different commitments to different parties", parties: 3, fault: func(p round.Party) roundtest.Option {
		return roundtest.Link(p, 0, step+"/sigma/commit", roundtest.Flip(0))
	}, check: round.CheckEcho},
	{name: "different openings to different parties", parties: 3, fault: func(p round.Party) roundtest.Option {
		return roundtest.Link(p, 0, step+"/sigma/open", roundtest.Flip(-1))
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

// An error in a value's share with the same error, times alpha, in the MAC's share is a value of another kind: the check
// is about their relation, and nobody but all parties together can make it.
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

// A product that is wrong with a right MAC, as malformed keys make it, has a check of its own, and one with a wrong share has
// not. Among zeros, whose MACs are not looked at first, both are one.
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

// Why Exposed exists: a peer with an error of its own in one value, which waits for the sigma of the others and never
// opens its own, knows alpha. Whoever waits for it has called Exposed, and burns alpha.
func TestAPeerThatWithholdsItsSigmaKnowsAlpha(t *testing.T) {
	f := testField(t, "p128")
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		d := deal(t, f, n, 0)
		own := &d.inputs[culprit]
		// The error takes the place of the mask's share: its weight is 1.
		bump(f, own.Mask.Value.At(0))
		exposed := make([]bool, n)
		for p := range d.inputs {
			d.inputs[p].Exposed = func() error {
				exposed[p] = true
				return nil
			}
		}
		ownSigma := f.NewVec(combinations)
		h := byzantine.On(byzantine.New(), step+"/sigma/commit", func(b *[]byte) {
			if err := f.DecodeVec(ownSigma, *b); err != nil {
				t.Error(err)
			}
		})
		out := d.run(roundtest.Cheat(culprit, h), roundtest.Rewrite(culprit, step+"/sigma/open", roundtest.Drop), roundtest.Record())
		out.Stalls(t, culprit, step+"/sigma/open")

		sum, v := ownSigma.Clone(), f.NewVec(combinations)
		for p := range culprit {
			opening := out.Recording.Frames(p, culprit, step+"/sigma/open")[0]
			if err := f.DecodeVec(v, opening[len(opening)-combinations*f.Size():]); err != nil {
				t.Fatal(err)
			}
			f.AddVec(sum, sum, v)
			if !exposed[p] {
				t.Errorf("party %d has opened its sigma and does not know that alpha is exposed", p)
			}
		}
		f.Neg(sum.At(0), sum.At(0))
		if !f.Equal(sum.At(0), d.alpha) {
			t.Errorf("%d parties: the experiment does not find alpha", n)
		}
	}
}

// Exposed runs when all commitments are there and before anything is opened, and its error keeps sigma back.
func TestExposed(t *testing.T) {
	f := testField(t, "p128")
	const n = 3
	for name, c := range map[string]struct {
		fault roundtest.Option
		want  bool
	}{
		"no value from a peer":        {roundtest.Rewrite(2, step+"/open", roundtest.Drop), false},
		"no commitment from a peer":   {roundtest.Rewrite(2, step+"/sigma/commit", roundtest.Drop), false},
		"two commitments from a peer": {roundtest.Link(2, 0, step+"/sigma/commit", roundtest.Flip(0)), false},
		"two openings from a peer":    {roundtest.Link(2, 0, step+"/sigma/open", roundtest.Flip(0)), true},
		"a zero where there are none": {roundtest.Rewrite(2, step+"/open", roundtest.Flip(8*16)), false},
		"sigma wrong":                 {roundtest.Rewrite(2, step+"/sigma/open", roundtest.Flip(0)), true},
	} {
		d := deal(t, f, n, 0)
		calls := make([]int, n)
		for p := range d.inputs {
			d.inputs[p].Exposed = func() error {
				calls[p]++
				return nil
			}
		}
		out := d.run(c.fault, roundtest.Record())
		for p := range round.Party(2) {
			opened := out.Recording.Frames(p, roundtest.Any, step+"/sigma/open") != nil
			if opened != c.want || (calls[p] == 1) != c.want || out.Errors[p] == nil {
				t.Errorf("%s: party %d has opened: %v, calls: %d, error: %v", name, p, opened, calls[p], out.Errors[p])
			}
		}
	}
	d := deal(t, f, n, 0)
	failure := errors.New("disk is full")
	d.inputs[0].Exposed = func() error { return failure }
	out := d.run(roundtest.Record())
	if !errors.Is(out.Errors[0], failure) || out.Recording.Frames(0, roundtest.Any, step+"/sigma/open") != nil {
		t.Errorf("a party that cannot note the exposure ends with %v", out.Errors[0])
	}
}

func TestStartRefuses(t *testing.T) {
	f := testField(t, "p128")
	for name, change := range map[string]func(c *Config){
		"no field":                func(c *Config) { c.Field = nil },
		"no source":               func(c *Config) { c.Source = nil },
		"no mask":                 func(c *Config) { c.Mask = Pair{f.NewVec(0), f.NewVec(0)} },
		"two masks":               func(c *Config) { c.Mask.Value = f.NewVec(2) },
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
