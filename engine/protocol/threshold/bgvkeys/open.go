package bgvkeys

import (
	"context"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
)

// open turns the shares of errors into shares of the keys' samples, in place, and sends them to all
// parties.
func (p *party) open(ctx context.Context) (transition, error) {
	var err error
	if p.keys, err = p.scheme.NewKeys(p.seed, p.galois); err != nil {
		return transition{}, err
	}
	s, squares := p.evaluations()
	defer s.Zero()
	defer squares.Zero()
	err = parallel.Try(ctx, p.Workers, p.samples(), func(i int) error {
		p.makeSample(i, s, squares)
		return nil
	})
	if err != nil {
		return transition{}, err
	}
	body := round.FramesOf(p.shares, p.samples(), func(shares []ring.Poly, i int) ([]byte, error) {
		return p.packSample(shares[i].C), nil
	})
	return round.Next(round.Round[Result](newOpened(p)), round.Message{To: round.All, Name: nameOpened, Body: body}), nil
}

// evaluations returns this party's shares of s and s^2; the latter have degree 2t.
func (p *party) evaluations() (s, squares ring.NTT) {
	basis := p.scheme.Basis()
	s, squares = basis.NewNTT(), basis.NewNTT()
	basis.Forward(s, p.secret)
	basis.MulNTT(squares, s, s)
	return s, squares
}

// makeSample turns the share of an error into the share of its sample.
func (p *party) makeSample(number int, s, squares ring.NTT) {
	basis := p.scheme.Basis()
	a, under, b := basis.NewNTT(), basis.NewNTT(), ring.NTT(p.shares[number])
	defer under.Zero()
	p.scheme.Uniform(a, (*[sample.SeedSize]byte)(&p.seed), number)
	under.Copy(s) // the key under which the sample encrypts
	message, digit := s, -1
	if number > 0 {
		message, digit = squares, (number-1)%p.scheme.Digits()
		if k := (number - 1) / p.scheme.Digits(); k > 0 {
			message = s
			basis.AutomorphismNTT(under, s, p.inverse(p.galois[k-1]))
		}
	}
	basis.Forward(b, p.shares[number])
	basis.NegNTT(under, under)
	basis.MulAddNTT(b, a, under)
	for k := range p.scheme.Q {
		if digit >= 0 && p.inDigit(digit, k) {
			p.fields[k].ScaleVec(under.C[k], message.C[k], p.scheme.SpecialProduct(k))
			p.fields[k].AddVec(b.C[k], b.C[k], under.C[k])
		}
	}
}

// inverse returns 1/g mod 2N.
func (p *plan) inverse(g uint64) int {
	inverse := g // g^2 = 1 mod 8, and each step doubles the number of correct bits
	for range 5 {
		inverse *= 2 - g*inverse
	}
	return int(inverse % uint64(2*p.width))
}

func (p *plan) sampleSize() (n int) {
	for k := range p.primes {
		n += p.valuesSize(k, p.width)
	}
	return n
}

func (p *plan) packSample(rows [][]uint64) []byte {
	b := make([]byte, 0, p.sampleSize())
	for k, v := range rows {
		b = p.pack(b, k, v)
	}
	return b
}

// opened is the round in which all parties' shares of the keys arrive.
type opened struct {
	*party
	lagrange [2][][]kernel.Factor // by degree, prime and party: the weight of its share
	alpha    [][]kernel.Factor    // by prime and sample: this party's own weights of the check
	sums     combinations
	rows     [][]uint64
	room     []uint64
}

func newOpened(p *party) *opened {
	r := &opened{party: p, sums: p.combinations(p.n), rows: p.table(), room: make([]uint64, p.width)}
	for k, f := range p.fields {
		for g := range r.lagrange {
			quorum := make([]int, (1+g)*p.t+1)
			for i := range quorum {
				quorum[i] = i
			}
			r.lagrange[g] = append(r.lagrange[g], p.factors(k, f.Lagrange(0, quorum)))
		}
		alpha, stream := make([]uint64, p.samples()), p.Source.Stream("check", uint64(k))
		sample.Uniform(alpha, f.Q, stream)
		stream.Wipe()
		r.alpha = append(r.alpha, p.factors(k, alpha))
	}
	return r
}

func (r *opened) Wants() []round.Want {
	return r.Session.Each(round.Want{
		Name: nameOpened, MaxFrames: r.samples(), MaxBytes: int64(r.samples()) * int64(r.sampleSize()), Broadcast: true,
		Stream: true,
	})
}

// take adds a party's shares of a sample to the sums.
func (r *opened) take(from, number int, rows [][]uint64) {
	for k, v := range rows {
		of := row{k, r.product(number, k)}
		r.add(r.sums[from][group(of)][k], v, k, r.alpha[k][number], r.room)
		if from <= r.degree(of) {
			r.add(r.keys.B[number].C[k], v, k, r.lagrange[group(of)][k][from], r.room)
		}
	}
}

func (r *opened) Frame(_ context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	//lodge:check bgvkeys/opened-frame [drop=last != (index == r.samples()-1)] some opened shares
	//  can be missing
	if last != (index == r.samples()-1) || len(frame) != r.sampleSize() {
		return round.Malformed(from, errFrame)
	}
	for k, v := range r.rows {
		var err error
		//lodge:check bgvkeys/opened-residues opened shares have several encodings
		if frame, err = r.unpack(v, k, frame); err != nil {
			return round.Malformed(from, err)
		}
	}
	r.take(int(from), index, r.rows)
	return nil
}

func (r *opened) Step(context.Context, round.Inbox) (transition, error) {
	for i := range r.samples() {
		r.take(r.self, i, r.shares[i].C)
	}
	degree, faults := r.locate(r.sums, r.self)
	//lodge:check bgvkeys/opened keys need not match what was dealt
	if len(faults.Possible) > 0 && !r.Session.Omits(CheckOpened) {
		//lodge:check bgvkeys/opened-blame a party that must be wrong is not blamed
		if len(faults.Certain) > 0 {
			return transition{}, &round.Blame{
				Party: round.Party(faults.Certain[0]), Check: CheckOpened, Reason: "opened other shares of the keys than it holds",
			}
		}
		var suspects []round.Party
		for _, i := range faults.Possible {
			suspects = append(suspects, round.Party(i))
		}
		return transition{}, &round.Abort{
			Check: CheckOpened, Suspects: suspects,
			Reason: fmt.Sprintf("the parties' shares of the keys do not lie on polynomials of degree %d", degree),
		}
	}
	digest := round.Digest(r.scheme.KeysDigest(r.party.keys))
	return round.Next(round.Round[Result](agreed{r.party, digest}), round.Broadcast(nameAgree, digest[:])), nil
}

// agreed is the round in which all parties' digests of the keys arrive.
type agreed struct {
	*party
	digest round.Digest
}

func (r agreed) Wants() []round.Want {
	return r.Session.Each(round.Want{Name: nameAgree, MaxBytes: int64(len(r.digest)), Broadcast: true})
}

func (r agreed) Step(_ context.Context, in round.Inbox) (transition, error) {
	//lodge:check bgvkeys/agree parties continue with different keys
	if err := round.Compare(r.Session, in, nameAgree, CheckAgree, r.digest); err != nil {
		return transition{}, err
	}
	all := make(share.Vec, 0, len(r.primes)*r.width)
	for _, v := range r.party.secret.C {
		all = append(all, v...)
	}
	return round.Done(Result{Keys: r.party.keys, Share: secret.NewBox(all)}), nil
}
