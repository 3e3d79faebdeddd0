// Package dealing starts a run in which all parties deal sharings. Every dealer sends each other
// party the seed of the shares that both expand, and the digest of the shares that it will send,
// which binds it to them before the coin of their check is tossed. No party needs to store shares
// until then.
package dealing

import (
	"context"
	"errors"
	"io"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Seeds holds the seeds of one dealer, by party.
type Seeds struct {
	Sources []*sample.Source // nil for the dealer itself
	bytes   [][]byte
}

// Draw samples a dealer's seeds from its randomness.
func Draw(random *sample.Source, parties, self int) (*Seeds, error) {
	o := &Seeds{make([]*sample.Source, parties), make([][]byte, parties)}
	for i := range parties {
		if i == self {
			continue
		}
		o.bytes[i] = make([]byte, sample.SeedSize)
		if _, err := io.ReadFull(random.Stream("seed", uint64(i)), o.bytes[i]); err != nil {
			return nil, err
		}
		o.Sources[i] = sample.NewSource(o.bytes[i])
	}
	return o, nil
}

// Wipe erases the seeds.
func (o *Seeds) Wipe() { wipe(o.Sources) }

// Given holds the seeds that a party received from the dealers, and the digests that bind them.
type Given struct {
	Sources []*sample.Source // nil for the party itself
	Bound   []round.Digest   // zero for dealers that will send no shares
}

// NewGiven allocates seeds and digests for the given number of dealers.
func NewGiven(parties int) *Given {
	return &Given{make([]*sample.Source, parties), make([]round.Digest, parties)}
}

// Wipe erases the seeds.
func (g *Given) Wipe() { wipe(g.Sources) }

func wipe(sources []*sample.Source) {
	for _, s := range sources {
		if s != nil {
			s.Wipe()
		}
	}
}

// Deal is one party's part in the exchange of seeds.
type Deal struct {
	Session round.Session
	Name    string // of the messages
	Own     *Seeds
	Sums    []round.Digest            // digests of the shares that this dealer will send, by party
	Sends   func(dealer, to int) bool // reports whether the dealer will send shares to the party
	Given   *Given                    // receives the others' seeds
	Toss    string                    // name of the step of the coin toss
	Coin    io.Reader                 // this party's randomness for it
}

// Bind sends the seeds. When this party has received all others' seeds, it tosses the coin of the
// check, because all dealers are bound then, and continues with next.
func Bind[R any](d Deal, next func(context.Context, round.Digest) (round.Transition[R], error)) round.Transition[R] {
	self := int(d.Session.Self)
	var send []round.Message
	for to, seed := range d.Own.bytes {
		if to != self {
			body := append(seed, d.Sums[to][:]...)[:d.size(self, to)]
			send = append(send, round.Message{To: round.Party(to), Name: d.Name, Body: round.Bytes(body)})
		}
	}
	return round.Next(round.Round[R](&seeded[R]{d, next}), send...)
}

// size returns the length in bytes of a message: a seed, and a digest if shares follow.
func (d *Deal) size(dealer, to int) int {
	if d.Sends(dealer, to) {
		return sample.SeedSize + len(round.Digest{})
	}
	return sample.SeedSize
}

// seeded is the round in which the seeds arrive.
type seeded[R any] struct {
	Deal
	next func(context.Context, round.Digest) (round.Transition[R], error)
}

func (r *seeded[R]) Wants() []round.Want {
	wants := r.Session.Each(round.Want{Name: r.Name})
	for i := range wants {
		wants[i].MaxBytes = int64(r.size(int(wants[i].From), int(r.Session.Self)))
	}
	return wants
}

func (r *seeded[R]) Step(_ context.Context, in round.Inbox) (round.Transition[R], error) {
	for from := range r.Given.Sources {
		p := round.Party(from)
		if p == r.Session.Self {
			continue
		}
		b := in.Bytes(p, r.Name)
		//lodge:check seeds/length [swap=len(b) != r.size(from, int(r.Session.Self))=>len(b) >
		//  r.size(from, int(r.Session.Self))]
		//  [tests=./engine/protocol/threshold/lwekeys,./engine/protocol/threshold/bgvkeys] a
		//  truncated seed is accepted
		if len(b) != r.size(from, int(r.Session.Self)) {
			return round.Transition[R]{}, round.Malformed(p, errors.New("a seed has the wrong length"))
		}
		r.Given.Sources[from] = sample.NewSource(b[:sample.SeedSize])
		copy(r.Given.Bound[from][:], b[sample.SeedSize:])
		clear(b[:sample.SeedSize])
	}
	t, err := round.CoinToss(r.Session, r.Toss, r.Coin)
	if err != nil {
		return round.Transition[R]{}, err
	}
	return round.Then(t, r.next), nil
}
