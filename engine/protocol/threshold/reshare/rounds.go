package reshare

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/table"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
)

// Names of the messages of a run.
const (
	stepCoin       = "reshare/coin"
	nameShares     = "reshare/shares"
	namePolynomial = "reshare/polynomial"
	nameDifference = "reshare/difference"
	nameComplaints = "reshare/complaints"
)

type transition = round.Transition[Result]

// party is the state of one party during a run. Numbers are by field.
type party struct {
	*Config
	*plan
	dealer, heir int          // this party's places in Old and New, or -1
	got          [][][]uint64 // received shares, by dealer's place in Old
	dealt        [][][]uint64 // this dealer's shares, by place in New
	secrets      [][]uint64   // the values that this dealer shares
	said         [][][]uint64 // announced polynomials, by dealer's place in Old
	differences  [][][]uint64 // shares of the differences, by place in New
	complaints   []byte       // of this new party, by dealer's place in Old: 1 for a complaint
}

// Wipe erases the dealt shares and the shared values.
func (p *party) Wipe() {
	for _, v := range slices.Concat(p.got, p.dealt, [][][]uint64{p.secrets}) {
		table.Wipe(v)
	}
}

// Start begins a run.
//
// Hooks for tests: reshare/party receives each *party, with the values that a dealer shares as
// secrets, and reshare/shares its shares, by new party ([][][]uint64). reshare/polynomial,
// reshare/difference and reshare/complaints receive the next broadcast ([][]uint64, and []byte).
func Start(c Config) (transition, error) {
	if err := c.check(); err != nil {
		return transition{}, err
	}
	plan, err := newPlan(&c)
	if err != nil {
		return transition{}, err
	}
	p := &party{
		Config: &c, plan: plan, dealer: c.Old.index(c.Session.Self), heir: c.New.index(c.Session.Self),
		got: make([][][]uint64, len(c.Old.Parties)), said: make([][][]uint64, len(c.Old.Parties)),
		differences: make([][][]uint64, len(c.New.Parties)),
	}
	c.Session.Secrets.Own(c.Source)
	if p.dealer >= 0 {
		p.collect()
	}
	round.Own(c.Session, "reshare/party", p)
	var send []round.Message
	if p.dealer >= 0 {
		send = p.deal()
	}
	return round.Next(round.Round[Result](dealt{p}), send...), nil
}

// collect takes the values that this dealer shares: its share and a random mask.
func (p *party) collect() {
	p.secrets = rows(p.widths())
	stream := p.Source.Stream("mask")
	for k, f := range p.fields {
		to := p.secrets[k]
		for _, i := range f.parts {
			to = to[copy(to, p.Share[i].Open()):]
		}
		sample.Uniform(to, f.from.Q, stream)
	}
	stream.Wipe()
}

// deal shares this dealer's values, and sends each new party its shares.
func (p *party) deal() (send []round.Message) {
	for range p.new.Parties {
		p.dealt = append(p.dealt, rows(p.widths()))
	}
	stream := p.Source.Stream("shares")
	for k, f := range p.fields {
		shares := make([][]uint64, len(p.dealt))
		for j, v := range p.dealt {
			shares[j] = v[k]
		}
		f.to.Share(shares, p.secrets[k], p.new.Threshold, stream)
	}
	stream.Wipe()
	for j, to := range p.new.Parties {
		if to == p.Session.Self {
			p.got[p.dealer] = p.dealt[j]
			continue
		}
		body := round.Encoded(p.dealt, func(dealt [][][]uint64) []byte { return p.pack(dealt[j]) })
		send = append(send, round.Message{To: to, Name: nameShares, Body: body})
	}
	return send
}

// rows allocates rows of the given lengths.
func rows(lengths []int) (v [][]uint64) {
	for _, n := range lengths {
		v = append(v, make([]uint64, n))
	}
	return v
}

func (p *plan) pack(v [][]uint64) []byte { return codec.AppendPoly(nil, v, p.primes) }

func (p *plan) size(lengths []int) (size int64) {
	for k, n := range lengths {
		size += int64(codec.PolySize(n, p.primes[k:k+1]))
	}
	return size
}

func (p *plan) unpack(from round.Party, b []byte, lengths []int) ([][]uint64, error) {
	v := rows(lengths)
	if err := codec.DecodePoly(v, p.primes, b); err != nil {
		return nil, round.Malformed(from, err)
	}
	return v, nil
}

// dealt is the round in which a new party receives the dealers' shares.
type dealt struct{ *party }

func (r dealt) Wants() (wants []round.Want) {
	if r.heir < 0 {
		return nil
	}
	for _, i := range r.dealers {
		if from := r.old.Parties[i]; from != r.Session.Self {
			wants = append(wants, round.Want{From: from, Name: nameShares, MaxBytes: r.size(r.widths())})
		}
	}
	return wants
}

func (r dealt) Step(_ context.Context, in round.Inbox) (transition, error) {
	for _, w := range r.Wants() {
		v, err := r.unpack(w.From, in.Bytes(w.From, nameShares), r.widths())
		if err != nil {
			return transition{}, err
		}
		r.got[r.old.index(w.From)] = v
		clear(in.Bytes(w.From, nameShares))
	}
	t, err := round.CoinToss(r.Session, stepCoin, r.Source.Stream("coin"))
	if err != nil {
		return transition{}, err
	}
	return round.Then(t, r.announce), nil
}

// announce broadcasts the weighted sums of this dealer's sharings, at 0 and at t' of the new
// parties, and this new party's shares of the differences.
func (p *party) announce(_ context.Context, coin round.Digest) (transition, error) {
	weights := rows(p.widths())
	sample.Expand(weights, p.primes, coin[:], "reshare weights")
	for _, w := range weights {
		w[len(w)-1] = 1
	}
	var send []round.Message
	if p.dealer >= 0 {
		said := rows(p.each(1 + p.new.Threshold))
		for k := range p.fields {
			said[k][0] = p.sum(k, p.secrets, weights)
			for i, j := range p.points() {
				said[k][1+i] = p.sum(k, p.dealt[j], weights)
			}
		}
		p.said[p.dealer] = said
		send = append(send, round.Message{To: round.All, Name: namePolynomial, Body: round.Encoded(said, p.pack)})
	}
	sums := make([][]uint64, len(p.old.Parties)) // of this new party's shares, with the masks, by prime
	if p.heir >= 0 {
		for _, i := range p.dealers {
			for k := range p.fields {
				sums[i] = append(sums[i], p.sum(k, p.got[i], weights))
			}
		}
		if len(p.others()) > 0 {
			own := p.difference(weights)
			p.differences[p.heir] = own
			send = append(send, round.Message{To: round.All, Name: nameDifference, Body: round.Encoded(own, p.pack)})
		}
	}
	return round.Next(round.Round[Result](announced{p, sums}), send...), nil
}

// sum returns an inner product in field k.
func (p *plan) sum(k int, v, weights [][]uint64) (sum uint64) {
	f := p.fields[k].from
	for i, w := range weights[k] {
		sum = f.Add(sum, f.Mul(v[k][i], w))
	}
	return sum
}

// difference returns this new party's shares of the differences: for each of the other dealers, its
// sum without the mask minus the value that follows from the first dealers' sums.
func (p *party) difference(weights [][]uint64) [][]uint64 {
	own, bare := rows(p.each(len(p.others()))), make([][]uint64, len(weights))
	for k, w := range weights {
		bare[k] = w[:len(w)-1]
	}
	for k, field := range p.fields {
		f := field.from
		for j, i := range p.others() {
			d := p.sum(k, p.got[i], bare)
			for m, l := range f.Lagrange(f.Point(i), p.first()) {
				d = f.Sub(d, f.Mul(l, p.sum(k, p.got[p.first()[m]], bare)))
			}
			own[k][j] = d
		}
	}
	return own
}

// announced is the round in which the dealers' polynomials and the new parties' shares of the
// differences arrive.
type announced struct {
	*party
	sums [][]uint64
}

func (r announced) Wants() (wants []round.Want) {
	for from := range r.n {
		if from == r.Session.Self {
			continue
		}
		if r.old.index(from) >= 0 {
			size := r.size(r.each(1 + r.new.Threshold))
			wants = append(wants, round.Want{From: from, Name: namePolynomial, MaxBytes: size, Broadcast: true})
		}
		if r.new.index(from) >= 0 && len(r.others()) > 0 {
			size := r.size(r.each(len(r.others())))
			wants = append(wants, round.Want{From: from, Name: nameDifference, MaxBytes: size, Broadcast: true})
		}
	}
	return wants
}

func (r announced) Step(_ context.Context, in round.Inbox) (transition, error) {
	for _, w := range r.Wants() {
		places, at, n := r.said, r.old.index(w.From), 1+r.new.Threshold
		if w.Name == nameDifference {
			places, at, n = r.differences, r.new.index(w.From), len(r.others())
		}
		v, err := r.unpack(w.From, in.Bytes(w.From, w.Name), r.each(n))
		if err != nil {
			return transition{}, err
		}
		places[at] = v
	}
	if r.heir < 0 {
		return round.Next(round.Round[Result](complained{r.party})), nil
	}
	r.complaints = make([]byte, len(r.old.Parties))
	for _, i := range r.dealers {
		//lodge:check reshare/degree/primes [swap=r.sums[i]=>r.sums[i][:min(1, len(r.sums[i]))]]
		//  [run=TestWrongDegree] new shares are verified modulo the first prime only
		for k, sum := range r.sums[i] {
			if r.old.Parties[i] != r.Session.Self && r.valueAt(k, r.said[i][k]) != sum {
				r.complaints[i] = 1
			}
		}
	}
	return round.Next(round.Round[Result](complained{r.party}), round.Broadcast(nameComplaints, r.complaints)), nil
}

// valueAt returns the value, at this new party's point, of the polynomial in field k with the given
// values at 0 and at points.
func (r announced) valueAt(k int, said []uint64) uint64 {
	if r.heir < r.new.Threshold {
		return said[1+r.heir]
	}
	// Interpolation between points and 0: f(x) - f(0) is x times a polynomial of degree t'-1.
	m, v := r.fields[k].to, uint64(0)
	x := m.Point(r.heir)
	for i, l := range m.Lagrange(x, r.points()) {
		slope := m.Mul(m.Sub(said[1+i], said[0]), m.Inverse(m.Point(i)))
		v = m.Add(v, m.Mul(l, slope))
	}
	return m.Add(said[0], m.Mul(v, x))
}

// complained is the round in which the new parties' complaints arrive.
type complained struct{ *party }

func (r complained) Wants() (wants []round.Want) {
	for _, from := range r.new.Parties {
		if from != r.Session.Self {
			size := int64(len(r.old.Parties))
			wants = append(wants, round.Want{From: from, Name: nameComplaints, MaxBytes: size, Broadcast: true})
		}
	}
	return wants
}

var errComplaints = errors.New("the complaints are malformed")

func (r complained) Step(_ context.Context, in round.Inbox) (transition, error) {
	against := make([][]round.Party, len(r.old.Parties)) // the complaining parties, by dealer's place in Old
	for _, w := range r.Wants() {
		list := in.Bytes(w.From, nameComplaints)
		if len(list) != len(against) {
			return transition{}, round.Malformed(w.From, errComplaints)
		}
		for i, c := range list {
			if c > 1 || c == 1 && (r.old.Parties[i] == Absent || r.old.Parties[i] == w.From) {
				return transition{}, round.Malformed(w.From, errComplaints)
			}
			if c == 1 {
				against[i] = append(against[i], w.From)
			}
		}
	}
	//lodge:check reshare/degree complaints about new shares have no effect
	if err := r.judgeDegree(against); err != nil && !r.Session.Omits(CheckDegree) {
		return transition{}, err
	}
	//lodge:check reshare/value/primes [swap=r.fields=>r.fields[:1]] [run=TestWrongValue$] values
	//  that are handed over are verified modulo the first prime only
	for k := range r.fields {
		//lodge:check reshare/value a party can hand over other values than it held
		if err := r.judgeValues(k); err != nil && !r.Session.Omits(CheckValue) {
			return transition{}, err
		}
	}
	if r.heir < 0 {
		return round.Done(Result{}), nil
	}
	result := Result{Share: make([]secret.Box[share.Vec], len(r.Parts))}
	for k, f := range r.fields {
		shares := [][]uint64{}
		for _, i := range r.first() {
			shares = append(shares, r.got[i][k])
		}
		all := make([]uint64, f.width)
		f.from.Combine(all, f.from.Lagrange(0, r.first()), shares...)
		rest := all
		for _, i := range f.parts {
			result.Share[i] = secret.NewBox(share.Vec(slices.Clone(rest[:r.Parts[i].N])))
			rest = rest[r.Parts[i].N:]
		}
		clear(all)
	}
	return round.Done(result), nil
}

// judgeDegree identifies the party that lies about a dealer's shares, or two suspects.
func (r complained) judgeDegree(against [][]round.Party) error {
	self := r.Session.Self
	for i, list := range against {
		if r.complaints != nil && r.complaints[i] == 1 || len(list) > r.new.Threshold && r.old.Parties[i] != self {
			return &round.Blame{
				Party: r.old.Parties[i], Check: CheckDegree,
				Reason: "dealt shares that do not lie on the polynomial that it announced",
			}
		}
	}
	for i, list := range against {
		if len(list) == 0 {
			continue
		}
		if i == r.dealer {
			return &round.Blame{Party: list[0], Check: CheckDegree, Reason: "complained about shares that this party dealt correctly"}
		}
	}
	for i, list := range against {
		if len(list) > 0 {
			return &round.Abort{
				Check: CheckDegree, Suspects: ascending(r.old.Parties[i], list[0]),
				Reason: fmt.Sprintf("party %d complains that party %d dealt wrong shares", list[0], r.old.Parties[i]),
			}
		}
	}
	return nil
}

// judgeValues opens the differences in field k. They are shared with degree t' and must be 0.
func (r complained) judgeValues(k int) error {
	if len(r.others()) == 0 {
		return nil
	}
	heirs := make([]int, len(r.new.Parties))
	for j := range heirs {
		heirs[j] = j
	}
	// The word has one entry for each dealer: 0 for the first dealers, and the difference for the
	// others. It consists of shares on a polynomial of degree t if and only if all dealers' values
	// do.
	from, to, word := r.fields[k].from, r.fields[k].to, make([]uint64, len(r.dealers))
	for i := range r.others() {
		shares, list := make([]uint64, len(heirs)), make([][]uint64, len(heirs))
		for j, v := range r.differences {
			shares[j], list[j] = v[k][i], v[k][i:i+1]
		}
		if !to.Consistent(r.new.Threshold, heirs, list) {
			f := to.Locate(heirs, shares, r.new.Threshold, r.new.Threshold, own(r.heir)...)
			return faulty(f, r.new, "sent a wrong share of a difference")
		}
		quorum := heirs[:r.new.Threshold+1]
		to.Reconstruct(word[r.old.Threshold+1+i:][:1], quorum, list[:len(quorum)])
	}
	f := from.Locate(r.dealers, word, r.old.Threshold, r.old.Threshold, own(r.dealer)...)
	if f.Possible == nil {
		return nil
	}
	return faulty(f, r.old, "shared a value other than its share")
}

// own returns the place of this party in a group, if it has one.
func own(place int) []int {
	if place < 0 {
		return nil
	}
	return []int{place}
}

// faulty blames a party that is certainly at fault, or otherwise suspects all that may be.
func faulty(f share.Faults, g Group, reason string) error {
	if len(f.Certain) > 0 {
		return &round.Blame{Party: g.Parties[f.Certain[0]], Check: CheckValue, Reason: reason}
	}
	var suspects []round.Party
	for _, i := range f.Possible {
		suspects = append(suspects, g.Parties[i])
	}
	return &round.Abort{Check: CheckValue, Reason: "a party " + reason, Suspects: ascending(suspects...)}
}

func ascending(list ...round.Party) []round.Party {
	slices.Sort(list)
	return list
}
