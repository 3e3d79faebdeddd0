package lwekeys

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// The check of the opened values. With the weights of a coin that is tossed now, every party
// combines its shares of each king's slice of each opening and broadcasts the results. A king also
// reports the combinations of the shares that it received, except those of its last sender, which
// follow from the opened values.

// tossChecks tosses the coin.
func (p *party) tossChecks(_ context.Context, o *opening) (transition, error) {
	t, err := round.CoinToss(p.Session, stepOpened, p.Source.Stream("coin", 1))
	if err != nil {
		return transition{}, err
	}
	return round.Then(t, p.report), nil
}

// claims are the parties' reports about one king's slice of one opening.
type claims struct {
	opening *opening
	king    int
	shares  []uint64 // by party: the combination of its shares
	sent    []uint64 // by sender except the last: the combination of the shares that the king received
	opened  uint64   // of the opened values
}

// slices lists the opened slices in order, without claims.
func (p *party) slices() (list []*claims) {
	for _, o := range p.openings {
		for king := range p.n {
			if o.frames(king) > 0 {
				list = append(list, &claims{opening: o, king: king, shares: make([]uint64, p.n), sent: make([]uint64, o.degree-1)})
			}
		}
	}
	return list
}

// report computes and sends this party's claims: the combination of its shares for each slice, and
// the combinations of the received shares for the slice of which it is king.
func (p *party) report(ctx context.Context, coin round.Digest) (transition, error) {
	list := p.slices()
	beta, room := make([]uint64, p.width), make([]uint64, p.width)
	sample.Expand([][]uint64{beta}, p.primes, coin[:], "threshold opened columns")
	var values []uint64
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return transition{}, err
		}
		o := c.opening
		from, to := o.slice(c.king, len(o.mine))
		alpha := make([]uint64, to-from)
		sample.Expand([][]uint64{alpha}, p.primes, coin[:], "threshold opened rows of "+o.name, uint64(c.king))
		combine := func(rows [][]uint64) uint64 {
			sum := make([]uint64, p.width)
			for r, v := range rows {
				p.add(sum, v, p.Factor(alpha[r]), room)
			}
			return p.dot(sum, beta, room)
		}
		c.opened = combine(o.opened[from:to])
		c.shares[p.self] = combine(o.mine[from:to])
		values = append(values, c.shares[p.self])
		if c.king == p.self {
			for k, i := range o.senders(p.self, o.degree)[:o.degree-1] {
				c.sent[k] = combine(o.kept[i])
			}
			values = append(values, c.sent...)
		}
	}
	clear(room)
	body := round.Encoded(values, p.packValues)
	return round.Next(round.Round[Result](reported{p, list, values}), round.Message{To: round.All, Name: nameReport, Body: body}), nil
}

// reported waits for all parties' claims.
type reported struct {
	*party
	list []*claims
	mine []uint64 // this party's claims
}

// count returns the number of values that a party claims.
func (r reported) count(of int) (n int) {
	for _, c := range r.list {
		n++
		if c.king == of {
			n += len(c.sent)
		}
	}
	return n
}

func (r reported) Wants() []round.Want {
	wants := r.Session.Each(round.Want{Name: nameReport, Broadcast: true})
	for i := range wants {
		wants[i].MaxBytes = int64(r.valuesSize(r.count(int(wants[i].From))))
	}
	return wants
}

// take records a party's claims.
func (r reported) take(from int, b []byte) error {
	v, err := r.values(round.Party(from), b, r.count(from))
	if err != nil {
		return err
	}
	for _, c := range r.list {
		c.shares[from] = v[0]
		v = v[1:]
		if c.king == from {
			v = v[copy(c.sent, v):]
		}
	}
	return nil
}

func (r reported) Step(_ context.Context, in round.Inbox) (transition, error) {
	if err := r.take(r.self, r.packValues(r.mine)); err != nil {
		return transition{}, err
	}
	for from := range r.n {
		if from != r.self {
			if err := r.take(from, in.Bytes(round.Party(from), nameReport)); err != nil {
				return transition{}, err
			}
		}
	}
	//lodge:check thresholdkeys/opened [run=TestKingAndSender] opened values need not match the
	//  shares
	if err := r.judge(); err != nil && !r.Session.Omits(CheckOpened) {
		return transition{}, err
	}
	//lodge:check thresholdkeys/square [run=TestSquareThatIsNone] a shared bit can be another value
	if r.unsquare && !r.Session.Omits(CheckSquare) {
		return transition{}, &round.Abort{Check: CheckSquare, Reason: "an opened value is not a square, and all shares agree"}
	}
	digest := round.Digest(r.party.keys.Digest())
	return round.Next(round.Round[Result](agreed{r.party, digest}), round.Broadcast(nameAgree, digest[:])), nil
}

// judge returns the first fault for which a party can be blamed, or the first fault if there is
// none.
func (r reported) judge() error {
	var first error
	for _, c := range r.list {
		err := r.judgeSlice(c)
		var blame *round.Blame
		if errors.As(err, &blame) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// judgeSlice compares the claims about a slice. If a king and a sender differ about the sent
// shares, they know which of them lies. A king that differs from more parties than there may be
// liars is lying. If no king and sender differ, the opened values match the shares of the king and
// its senders. Parties whose shares do not lie on the same polynomial are then wrong, or the king
// and its senders are.
func (r reported) judgeSlice(c *claims) error {
	o, t := c.opening, r.t
	quorum := o.quorum(c.king)
	senders := quorum[1:]
	lambda := r.Lagrange(0, quorum)
	rest := r.Sub(c.opened, r.Mul(lambda[0], c.shares[c.king]))
	for k, v := range c.sent {
		rest = r.Sub(rest, r.Mul(lambda[1+k], v))
	}
	sent := append(slices.Clone(c.sent), r.Mul(rest, r.Inverse(lambda[len(senders)])))
	var differ []int
	for k, i := range senders {
		if sent[k] != c.shares[i] {
			differ = append(differ, i)
		}
	}
	blame := func(p int, reason string) error {
		return &round.Blame{Party: round.Party(p), Check: CheckOpened, Reason: fmt.Sprintf("%s of %s", reason, o.name)}
	}
	switch {
	case len(differ) == 0:
		return r.judgeOthers(c)
	case c.king == r.self:
		return blame(differ[0], "did not send this king the shares that it reports,")
	case slices.Contains(differ, r.self) || len(differ) > t:
		return blame(c.king, "did not open, as king, the shares that it received,")
	}
	return &round.Abort{
		Check: CheckOpened, Suspects: ascending(c.king, differ[0]),
		Reason: fmt.Sprintf("parties %d and %d disagree about the shares of %s that one sent to the other", c.king, differ[0], o.name),
	}
}

// judgeOthers checks that all parties' shares lie on one polynomial.
func (r reported) judgeOthers(c *claims) error {
	all := make([]int, r.n)
	shares := make([][]uint64, r.n)
	for i := range all {
		all[i], shares[i] = i, c.shares[i:i+1]
	}
	if r.Consistent(c.opening.degree, all, shares) {
		return nil
	}
	f := r.Locate(all, c.shares, c.opening.degree, r.t, r.self)
	if len(f.Certain) > 0 {
		return &round.Blame{
			Party: round.Party(f.Certain[0]), Check: CheckOpened,
			Reason: fmt.Sprintf("its shares of %s do not lie on the polynomial of the other parties", c.opening.name),
		}
	}
	return &round.Abort{
		Check: CheckOpened, Suspects: ascending(f.Possible...),
		Reason: fmt.Sprintf("the parties' shares of %s do not lie on a polynomial of degree %d", c.opening.name, c.opening.degree),
	}
}

func ascending(parties ...int) (list []round.Party) {
	for _, p := range parties {
		list = append(list, round.Party(p))
	}
	slices.Sort(list)
	return list
}

// agreed waits for all parties' digests of the keys.
type agreed struct {
	*party
	digest round.Digest
}

func (r agreed) Wants() []round.Want {
	return r.Session.Each(round.Want{Name: nameAgree, MaxBytes: int64(len(r.digest)), Broadcast: true})
}

func (r agreed) Step(_ context.Context, in round.Inbox) (transition, error) {
	//lodge:check thresholdkeys/agree [run=TestOtherKeys] parties continue with different keys
	if err := round.Compare(r.Session, in, nameAgree, CheckAgree, r.digest); err != nil {
		return transition{}, err
	}
	result := Result{Keys: r.party.keys, Z: secret.NewBox(r.z), S: secret.NewBox(r.s)}
	r.z, r.s = nil, nil // the caller owns them now
	return round.Done(result), nil
}
