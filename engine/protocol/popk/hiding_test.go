package popk

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// A successful run does not show whether the masks hide the witness: masks that are too narrow,
// reused or of a known message give the same results. These tests therefore examine the samples of
// a prover.

// drawn holds copies of the values that one party sampled, and the nonce of its commitment.
type drawn struct {
	sizes  params.Proof
	secret []response // witnesses followed by masks
	nonce  []byte
}

func (r response) clone() response {
	c := response{z: r.z.Clone()}
	for i := range r.t {
		c.t[i] = r.t[i].Clone()
	}
	return c
}

// draw runs a proof and returns the values that each party sampled.
func (b *bench) draw(t *testing.T, mac bool, change func(c *Config)) []drawn {
	t.Helper()
	all := make([]drawn, b.n)
	options := []roundtest.Option{roundtest.Record()}
	for p := range round.Party(b.n) {
		options = append(options, roundtest.Watch(p, byzantine.On(byzantine.New(), "p/witness", func(own *prover) {
			all[p].sizes = own.sizes
			for _, r := range own.secret {
				all[p].secret = append(all[p].secret, r.clone())
			}
		})))
	}
	out := b.run(mac, change, options...).OK(t)
	for p := range all {
		if len(all[p].secret) == 0 {
			t.Fatal("the hook did not run")
		}
		all[p].nonce = out.Recording.Frames(round.Party(p), roundtest.Any, "p/statement/open")[0][:32]
	}
	return all
}

// message returns the message of a witness or mask, as the coefficients of Z_p[X]/(X^D-b).
func message(s *gbfv.Scheme, r response) field.Vec {
	coeffs := s.Field.NewVec(s.Slots())
	s.Pack.Reduce(coeffs, r.z)
	return coeffs
}

// spread collects the mean square of values in some unit.
type spread struct{ n, squares float64 }

// add includes every step-th coefficient. All other coefficients must be 0.
func (s *spread) add(t *testing.T, p intpoly.Poly, step int, unit float64) {
	t.Helper()
	for k := range p.N() {
		v, _ := new(big.Float).SetInt(p.Big(k)).Float64()
		if k%step != 0 {
			if v != 0 {
				t.Fatalf("coefficient %d is not 0", k)
			}
			continue
		}
		s.n++
		s.squares += v / unit * v / unit
	}
}

// check fails the test unless the values have the variance w^2/2pi of a Gaussian of width w.
func (s *spread) check(t *testing.T, what string, width float64) {
	t.Helper()
	got := math.Sqrt(s.squares / s.n * 2 * math.Pi)
	if math.Abs(got/width-1) > 6/math.Sqrt(2*s.n) { // six standard deviations
		t.Errorf("%s: width %.1f of %v values, want %.1f", what, got, s.n, width)
	}
}

// Witnesses and masks have the widths that the instance specifies for each.
func TestWidthsOfWitnessesAndMasks(t *testing.T) {
	b := newBench(t, 2)
	bound, _ := new(big.Float).SetInt(b.scheme.Spec.B).Float64()
	for _, mac := range []bool{false, true} {
		for p, d := range b.draw(t, mac, nil) {
			step := 1
			if mac {
				step = b.scheme.Slots()
			}
			var x, y, r, s spread
			for i, w := range d.secret {
				mu, rand := &x, &r
				if i >= d.sizes.U {
					mu, rand = &y, &s
				}
				// mu_k = x_{k-D} - b x_k has sqrt(b^2+1) times the width of x.
				mu.add(t, w.z, step, math.Hypot(bound, 1))
				for _, v := range w.t {
					rand.add(t, v, 1, 1)
				}
			}
			for _, c := range []struct {
				what  string
				got   *spread
				width float64
			}{
				{"message witnesses", &x, d.sizes.WidthX}, {"message masks", &y, d.sizes.WidthY},
				{"witnesses of encryption", &r, d.sizes.WidthR}, {"masks of encryption", &s, d.sizes.WidthS},
			} {
				c.got.check(t, fmt.Sprintf("MAC key %v, party %d, %s", mac, p, c.what), c.width)
			}
		}
	}
}

// The message of a mask is uniform. Otherwise a response to a known challenge reveals the witness's
// message.
func TestMasksCarryRandomMessages(t *testing.T) {
	b := newBench(t, 2)
	s := b.scheme
	fixed := func(c *Config) {
		c.Message = func(_ int, slots, coeffs field.Vec, _ *sample.Stream) {
			s.Field.Fill(slots, s.Field.One())
			s.Pack.Pack(coeffs, slots)
		}
	}
	for _, c := range []struct {
		name   string
		mac    bool
		change func(c *Config)
	}{{"random messages", false, nil}, {"given messages", false, fixed}, {"a MAC key", true, nil}} {
		all := b.draw(t, c.mac, c.change)
		seen := map[string]string{}
		for p, d := range all {
			for i, r := range d.secret {
				if i < d.sizes.U && c.change != nil {
					continue
				}
				m, where := message(s, r), fmt.Sprintf("%s: party %d, %d", c.name, p, i)
				count := m.Len()
				if c.mac {
					if count = 1; !s.Pack.IsConstant(m) {
						t.Errorf("%s is not a constant", where)
					}
				}
				for k := range count {
					value := fmt.Sprint(m.At(k))
					if s.Field.IsZero(m.At(k)) || seen[value] != "" {
						t.Fatalf("%s: coefficient %d is zero or that of %s", where, k, seen[value])
					}
					seen[value] = where
				}
			}
		}
	}
}

// No sample is used twice, neither in two witnesses or masks nor within one.
func TestEverythingIsDrawnAfresh(t *testing.T) {
	b := newBench(t, 2)
	for _, mac := range []bool{false, true} {
		seen := map[string]string{}
		for p, d := range b.draw(t, mac, nil) {
			for i, r := range d.secret {
				for k, v := range append([]intpoly.Poly{r.z}, r.t[:]...) {
					where := fmt.Sprintf("party %d, %d, polynomial %d", p, i, k)
					var values []string
					for at := range v.N() {
						values = append(values, v.Big(at).String())
					}
					value := fmt.Sprint(values)
					if other := seen[value]; other != "" {
						t.Errorf("MAC key %v: %s is %s", mac, where, other)
					}
					seen[value] = where
				}
			}
		}
	}
}

// The nonce of the commitment is independent of all samples, because the opening publishes it.
func TestNonceIsNotProofRandomness(t *testing.T) {
	b := newBench(t, 2)
	f := b.scheme.Field
	for _, mac := range []bool{false, true} {
		all := b.draw(t, mac, nil)
		tried := 0
		for _, d := range all {
			for at := 0; at+f.Size() <= len(d.nonce); at += f.Size() {
				x := f.NewVec(1)
				if f.Random(x, bytes.NewReader(d.nonce[at:at+f.Size()])) != nil {
					continue // not below p, so not a field element
				}
				tried++
				for p, other := range all {
					for i, r := range other.secret {
						if f.Equal(x.At(0), message(b.scheme, r).At(0)) {
							t.Errorf("MAC key %v: a nonce has the message %d of party %d", mac, i, p)
						}
					}
				}
			}
			// and it does not equal the beginning of a stream of witnesses or masks
			for p := range b.n {
				for i := range d.secret {
					for _, label := range []string{"witness", "mask"} {
						first := make([]byte, len(d.nonce))
						if _, err := testSource(fmt.Sprint("party ", p)).Stream(label, uint64(i)).Read(first); err != nil || bytes.Equal(first, d.nonce) {
							t.Errorf("MAC key %v: a nonce is the beginning of stream %s %d, %v", mac, label, i, err)
						}
					}
				}
			}
		}
		if bytes.Equal(all[0].nonce, all[1].nonce) || tried == 0 {
			t.Error("nonces are alike, or never compared")
		}
	}
}

// However a run ends, it erases its witnesses, its randomness, the masks that have not become
// responses, and the messages unless they are part of the result.
func TestEveryEndOfAProofErases(t *testing.T) {
	const n, culprit, watched = 2, round.Party(0), round.Party(1)
	b := newBench(t, n)
	fault := func(name string, e roundtest.Edit) []roundtest.Option {
		return []roundtest.Option{roundtest.Rewrite(culprit, name, e)}
	}
	for _, c := range []struct {
		name     string
		options  []roundtest.Option
		answered bool // the watched party has sent its responses
	}{
		{"success", nil, true},
		{"no commitment", fault("p/statement/commit", roundtest.Drop), false},
		{"no statement", fault("p/statement/open", roundtest.Drop), false},
		{"another statement", fault("p/statement/open", roundtest.Flip(-9)), false},
		{"no ciphertexts", fault("p/ciphertexts", roundtest.Drop), true},
		{"no response", fault("p/response", roundtest.Drop), true},
		{"a wrong response", inside("p/response", func(_ *bench, r []response) { addTo(r[0].z, 0, big.NewInt(1)) })(b, culprit), true},
	} {
		for _, mac := range []bool{false, true} {
			var witnesses, masks []response
			var shares []field.Vec
			var used *sample.Source
			h := byzantine.On(byzantine.New(), "p/witness", func(own *prover) {
				witnesses, masks = own.secret[:own.sizes.U:own.sizes.U], own.secret[own.sizes.U:]
				shares = own.shares
			})
			out := b.run(mac, func(c *Config) { used = c.Source }, append(c.options, roundtest.Watch(watched, h))...)
			success := out.Errors[watched] == nil
			if success != (c.options == nil) || len(witnesses) == 0 {
				t.Fatalf("%s: the party ends with %v and %d witnesses", c.name, out.Errors[watched], len(witnesses))
			}
			for i, r := range witnesses {
				if !blank(r) {
					t.Errorf("%s, MAC key %v: witness %d is still there", c.name, mac, i)
				}
			}
			for j, r := range masks {
				if !c.answered && !blank(r) {
					t.Errorf("%s, MAC key %v: mask %d is still there", c.name, mac, j)
				}
			}
			for i, x := range shares {
				if zero := b.scheme.Field.EqualVec(x, b.scheme.Field.NewVec(x.Len())); zero == success {
					t.Errorf("%s, MAC key %v: message %d is erased: %v", c.name, mac, i, zero)
				}
			}
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: the source still gives randomness", c.name)
					}
				}()
				used.Stream("witness", 0)
			}()
		}
	}
}

// blank reports whether all of r is zero.
func blank(r response) bool {
	for _, v := range append([]intpoly.Poly{r.z}, r.t[:]...) {
		for _, w := range v.C {
			if w != 0 {
				return false
			}
		}
	}
	return true
}
