package popk

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// negation is the attack that the figure of the paper allows: the culprit waits in every round and sends minus the sum
// of what the others send, ciphertexts, masks and responses. With half, it answers honestly for its own secrets instead.
func negation(b *bench, culprit round.Party, p params.Proof, half bool) []roundtest.Option {
	v := &roundtest.View{}
	h := byzantine.New()
	byzantine.On(h, "p/statement/open", func(body *round.Body) {
		frames := make([][]byte, (*body).Frames())
		for i := range frames {
			sum, poly := b.scheme.Q.NewPoly(), b.scheme.Q.NewPoly()
			for from := range culprit {
				mustDecode(b.scheme, poly, v.Frames(from, culprit, "p/statement/open")[1+i])
				b.scheme.Q.Sub(sum, sum, poly)
			}
			frames[i] = codec.AppendPoly(nil, sum.C, b.scheme.Q.Primes())
		}
		*body = bodyOf(frames)
	})
	if !half {
		byzantine.On(h, "p/responses", func(own []response) {
			other := newResponse(b.scheme.N(), p)
			for j, r := range own {
				r.wipe()
				for from := range culprit {
					frames := v.Frames(from, culprit, "p/response")
					if frames == nil {
						return // the others have refused the statement
					}
					if err := other.decode(p, frames[j]); err != nil {
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

// zeros are n ciphertexts of 0 without noise.
func zeros(s *gbfv.Scheme, n int) []*gbfv.Ciphertext {
	list := make([]*gbfv.Ciphertext, n)
	for i := range list {
		list[i] = s.NewCiphertext()
	}
	return list
}

// sums is the verifier of the figure: it adds up what all parties sent and checks bounds and equations of the sums, and
// nothing else. It gives the sums of the ciphertexts when they pass. fields is what the parties' challenge hashed.
func (b *bench) sums(p params.Proof, fields [][]byte, r *roundtest.Recording) ([]*gbfv.Ciphertext, error) {
	s := b.scheme
	total := newSums(s, zeros(s, p.U+p.V))
	answers := make([]response, p.V)
	for j := range answers {
		answers[j] = newResponse(s.N(), p)
	}
	one := newResponse(s.N(), p)
	for from := range round.Party(b.n) {
		for i, frame := range r.Frames(from, round.All, "p/statement/open")[1:] {
			if err := total.Frame(context.Background(), from, i, false, frame); err != nil {
				return nil, err
			}
		}
		for j, frame := range r.Frames(from, round.All, "p/response") {
			if err := one.decode(p, frame); err != nil {
				return nil, err
			}
			answers[j].add(one)
		}
	}
	w, err := newChallenge(s, p, round.XOF("lodge popk challenge", fields...))
	if err != nil {
		return nil, err
	}
	wide := p // n times the bounds
	wide.B1, wide.Bt1 = times(p.B1, b.n), times(p.Bt1, b.n)
	for j, a := range answers {
		if check := a.fault(s, wide); check != "" {
			return nil, errors.New(check)
		}
		if !encryption(s, b.key.Public, a.z, a.t).Equal(combined(s, w, total.list, j)) {
			return nil, errors.New(CheckEquation)
		}
	}
	return total.list[:p.U], nil
}

// The negation of the others' messages does not open the culprit's commitment, and that is all that stops it: the sum of
// everything is zero, which is an encryption of zero with randomness zero, so a verifier of sums accepts, and a, or the
// MAC key, is zero. So do the parties of this package when they leave the commitments unchecked.
func TestNegationIsStoppedByTheCommitment(t *testing.T) {
	for _, n := range []int{2, 3} {
		for _, mac := range []bool{false, true} {
			t.Run(fmt.Sprint(n, " parties, MAC key: ", mac), func(t *testing.T) {
				b, culprit := newJointBench(t, n), round.Party(n-1)
				p := b.instance.Proof
				if mac {
					p = b.instance.MACKey
				}
				b.run(mac, nil, negation(b, culprit, p, false)...).Blamed(t, culprit, round.CheckCommitment)

				zero := b.scheme.NewCiphertext()
				for _, run := range []struct {
					name    string
					options []roundtest.Option
					sum     string // what the verifier of sums says
					parties string // and the honest parties without commitments
					zero    bool
				}{
					{"honest", nil, "", "", false},
					{"negated", negation(b, culprit, p, false), "", "", true},
					{"negated without the responses", negation(b, culprit, p, true), CheckEquation, CheckEquation, false},
				} {
					var fields [][]byte
					options := append(run.options, roundtest.Record())
					for q := range culprit {
						watch := byzantine.New().Skip(round.CheckCommitment)
						byzantine.On(watch, "p/challenge", func(f [][]byte) {
							if q == 0 {
								fields = slices.Clone(f)
							}
						})
						options = append(options, roundtest.Watch(q, watch))
					}
					out := b.run(mac, nil, options...)
					list, err := b.sums(p, fields, out.Recording)
					if got := fmt.Sprint(err); run.sum == "" && err != nil || run.sum != "" && got != run.sum {
						t.Errorf("%s: the verifier of sums says %v, want %q", run.name, err, run.sum)
					}
					if run.parties != "" {
						out.Blamed(t, culprit, run.parties)
						continue
					}
					for q := range culprit {
						if out.Errors[q] != nil {
							t.Fatalf("%s: without commitments party %d ends with %v", run.name, q, out.Errors[q])
						}
						for i, ct := range out.Results[q].Ciphertexts {
							if ct.Equal(zero) != run.zero || list[i].Equal(zero) != run.zero {
								t.Errorf("%s: ciphertext %d is zero: %v, want %v", run.name, i, !run.zero, run.zero)
							}
						}
					}
				}
			})
		}
	}
}
