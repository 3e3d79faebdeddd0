package popk

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// negation is the attack that the figure of the paper allows: the cheating party waits in every
// round and sends the negated sum of the other parties' ciphertexts, masks and responses. With
// half, it sends honest responses for its own secrets instead.
func negation(b *bench, culprit round.Party, p params.Proof, half bool) []roundtest.Option {
	v := &roundtest.View{}
	h := byzantine.New()
	byzantine.On(h, "p/ciphertexts", func(body *round.Body) {
		frames := make([][]byte, (*body).Frames())
		for i := range frames {
			sum, poly := b.scheme.Q.NewPoly(), b.scheme.Q.NewPoly()
			for from := range culprit {
				mustDecode(b.scheme, poly, v.Frames(from, culprit, "p/ciphertexts")[i])
				b.scheme.Q.Sub(sum, sum, poly)
			}
			frames[i] = codec.AppendPoly(nil, sum.C, b.scheme.Q.Primes())
		}
		*body = round.FrameList(frames)
	})
	if !half {
		byzantine.On(h, "p/response", func(own []response) {
			other := newResponse(b.scheme.N(), p)
			for j, r := range own {
				r.wipe()
				for from := range culprit {
					if err := other.decode(p, v.Frames(from, culprit, "p/response")[j]); err != nil {
						panic(err)
					}
					intpoly.Sub(r.z, r.z, other.z)
					for k := range r.t {
						intpoly.Sub(r.t[k], r.t[k], other.t[k])
					}
				}
			}
		})
	}
	return []roundtest.Option{roundtest.Cheat(culprit, h), roundtest.Rushing(culprit, v)}
}

func mustDecode(s *gbfv.Scheme, p ring.Poly, frame []byte) {
	if err := codec.DecodePoly(p.C, s.Q.Primes(), frame); err != nil {
		panic(err)
	}
}

// zeros returns n ciphertexts of 0 without noise.
func zeros(s *gbfv.Scheme, n int) []*gbfv.Ciphertext {
	list := make([]*gbfv.Ciphertext, n)
	for i := range list {
		list[i] = s.NewCiphertext()
	}
	return list
}

// drawnMasks collects the sums of the masks that these parties sample during a run.
func (b *bench) drawnMasks(parties round.Party, p params.Proof) (sums []*gbfv.Ciphertext, watch func(q round.Party, h byzantine.Hooks)) {
	var mu sync.Mutex
	sums = zeros(b.scheme, p.V)
	return sums, func(q round.Party, h byzantine.Hooks) {
		byzantine.On(h, "p/witness", func(own *prover) {
			mu.Lock()
			defer mu.Unlock()
			for j, m := range own.secret[p.U:] {
				if q < parties {
					b.scheme.Add(sums[j], sums[j], encryption(b.scheme, b.instance.Proof, b.key.Public, m))
				}
			}
		})
	}
}

// verifySums is the verifier of the figure: it adds up the messages of all parties and checks only
// the bounds and equations of the sums. It returns the sums of the ciphertexts if they pass. The
// argument fields lists the values that the parties' challenge hashed.
func (b *bench) verifySums(p params.Proof, fields [][]byte, masks []*gbfv.Ciphertext, r *roundtest.Recording) ([]*gbfv.Ciphertext, error) {
	s := b.scheme
	list, poly, one := zeros(s, p.U), s.Q.NewPoly(), newResponse(s.N(), p)
	answers := make([]response, p.V)
	for j := range answers {
		answers[j] = newResponse(s.N(), p)
	}
	for from := range round.Party(b.n) {
		for i, frame := range r.Frames(from, round.All, "p/ciphertexts") {
			mustDecode(s, poly, frame)
			sum := ring.Poly{C: part(list, i)}
			s.Q.Add(sum, sum, poly)
		}
		for j, frame := range r.Frames(from, round.All, "p/response") {
			if err := one.decode(p, frame); err != nil {
				return nil, err
			}
			intpoly.Add(answers[j].z, answers[j].z, one.z)
			for k := range one.t {
				intpoly.Add(answers[j].t[k], answers[j].t[k], one.t[k])
			}
		}
	}
	w, err := newChallenge(s, p, round.XOF("lodge popk challenge", fields...))
	if err != nil {
		return nil, err
	}
	wide := p // n times the bounds
	wide.B1, wide.Bt1 = times(p.B1, b.n), times(p.Bt1, b.n)
	for j, a := range answers {
		if check := a.fault(wide); check != "" {
			return nil, errors.New(check)
		}
		left := encryption(s, p, b.key.Public, a)
		subtractCombination(s, left, w, list, j)
		if !left.Equal(masks[j]) {
			return nil, errors.New(CheckEquation)
		}
	}
	return list, nil
}

// The negated messages contradict the cheating party's statement, which it opened before it saw the
// other messages, and its responses do not open its masks. A verifier of sums that receives masks
// and lets the cheating party wait accepts the attack: all sums are zero, which is an encryption of
// zero with zero randomness, so that a, or the MAC key, is zero.
func TestNegationIsRefused(t *testing.T) {
	for _, n := range []int{2, 3} {
		for _, mac := range []bool{false, true} {
			t.Run(fmt.Sprint(n, " parties, MAC key: ", mac), func(t *testing.T) {
				b, culprit := newBench(t, n), round.Party(n-1)
				p := b.instance.Proof
				if mac {
					p = b.instance.MACKey
				}
				b.run(mac, nil, negation(b, culprit, p, false)...).Blamed(t, culprit, round.CheckCommitment)

				zero := b.scheme.NewCiphertext()
				for _, run := range []struct {
					name    string
					options []roundtest.Option
					masks   round.Party // number of parties whose masks are summed; the cheating party negates the others' sum
					sum     string      // the result of the verifier of sums
					zero    bool
				}{
					{"honest", nil, round.Party(n), "", false},
					{"negated", negation(b, culprit, p, false), 0, "", true},
					{"negated without the responses", negation(b, culprit, p, true), 0, CheckEquation, false},
				} {
					var fields [][]byte
					masks, watch := b.drawnMasks(run.masks, p)
					options := append(run.options, roundtest.Record())
					for q := range round.Party(n) {
						if q == culprit && run.options != nil {
							continue
						}
						h := byzantine.New().Skip(round.CheckCommitment)
						watch(q, h)
						if q == 0 {
							byzantine.On(h, "p/challenge", func(f [][]byte) { fields = slices.Clone(f) })
						}
						options = append(options, roundtest.Watch(q, h))
					}
					out := b.run(mac, nil, options...)
					if run.options == nil {
						out.OK(t)
					} else {
						out.Blamed(t, culprit, CheckEquation)
					}
					list, err := b.verifySums(p, fields, masks, out.Recording)
					if got := fmt.Sprint(err); run.sum == "" && err != nil || run.sum != "" && got != run.sum {
						t.Errorf("%s: the verifier of sums says %v, want %q", run.name, err, run.sum)
					}
					for i, ct := range list {
						if ct.Equal(zero) != run.zero {
							t.Errorf("%s: ciphertext %d is zero: %v, want %v", run.name, i, !run.zero, run.zero)
						}
					}
				}
			})
		}
	}
}
