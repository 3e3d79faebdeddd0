package lwekeys

import (
	"context"
	"sync"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/dealing"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/table"
	"github.com/lodge-mpc/lodge/engine/share"
)

// party is one party's state during a run.
type party struct {
	*Config
	*plan
	self   int
	seed   round.Digest // of the reference string
	dealer *dealer
	given  *dealing.Given
	ex     *share.Extractor
	check  *weights

	// Sums over the dealers: random sharings, pairs of degree t and 2t, and errors, which become
	// the shares of the keys.
	random, low, high, rows [][]uint64
	received, own           *combinations

	z, s     share.Vec // this party's shares of the secrets
	evals    []uint64  // the share of z in evaluation form
	openings []*opening
	keys     *lwe.Keys
	unsquare bool // an opened square was not a square
}

func newParty(c *Config, seed round.Digest) (*party, error) {
	plan, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	rows := plan.n - plan.t
	p := &party{
		Config: c, plan: plan, self: int(c.Session.Self), seed: seed, ex: plan.Extractor(plan.t),
		given:  dealing.NewGiven(plan.n),
		random: table.New(rows*plan.dealt[random], plan.width),
		low:    table.New(rows*plan.dealt[pair], plan.width),
		high:   table.New(rows*plan.dealt[pair], plan.width),
		rows:   table.New(plan.keys, plan.width),
		z:      make(share.Vec, plan.width), s: make(share.Vec, plan.dim), evals: make([]uint64, plan.width),
	}
	p.received = p.combinations(p.n, 1)
	p.own = p.combinations(1, 2*p.t+1)
	c.Session.Secrets.Own(p, c.Source)
	return p, nil
}

// Wipe erases all shares. It leaves the shares of the secrets if the caller owns them.
func (p *party) Wipe() {
	if p.dealer != nil {
		p.dealer.Wipe()
	}
	p.given.Wipe()
	for _, t := range [][][]uint64{p.random, p.low, p.high, p.rows} {
		table.Wipe(t)
	}
	p.received.wipe()
	p.own.wipe()
	p.z.Wipe()
	p.s.Wipe()
	clear(p.evals)
	for _, o := range p.openings {
		o.Wipe()
	}
}

// combinations holds weighted sums of rows: one vector for each party and each group of rows. A
// dealer has several vectors, to combine secrets and other parties' shares.
type combinations struct {
	mu   sync.Mutex
	plan *plan
	sums [][groups][][]uint64
}

func (p *plan) combinations(parties, vectors int) *combinations {
	c := &combinations{plan: p, sums: make([][groups][][]uint64, parties)}
	for i := range c.sums {
		for g := range c.sums[i] {
			c.sums[i][g] = table.New(vectors, p.width)
		}
	}
	return c
}

func (c *combinations) wipe() {
	for i := range c.sums {
		for _, v := range c.sums[i] {
			table.Wipe(v)
		}
	}
}

// like returns empty combinations of the same shape, for one worker.
func (c *combinations) like() *combinations {
	return c.plan.combinations(len(c.sums), len(c.sums[0][0]))
}

// merge adds o and erases it.
func (c *combinations) merge(o *combinations) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.sums {
		for g := range c.sums[i] {
			for k, v := range c.sums[i][g] {
				c.plan.AddVec(v, v, o.sums[i][g][k])
			}
		}
	}
	o.wipe()
}

// values returns the inner products of a group's vectors with beta.
func (c *combinations) values(i, group, vectors int, beta []uint64) []uint64 {
	room, out := make([]uint64, c.plan.width), make([]uint64, vectors)
	for k := range out {
		out[k] = c.plan.dot(c.sums[i][group][k], beta, room)
	}
	clear(room)
	return out
}

// fold adds this party's share v of a dealer's row to the sum for that row, and to c for the check.
// It overwrites room.
func (p *party) fold(c *combinations, from int, high bool, r int, v, room []uint64) {
	group, weight := p.check.of(high, r)
	p.add(c.sums[from][group][0], v, weight, room)
	at, rows := p.kindOf(high, r), p.ex.Rows()
	switch at.kind {
	case random:
		p.ex.Add(p.random[at.index*rows:], from, v, room)
	case pair:
		sums := p.low
		if high {
			sums = p.high
		}
		p.ex.Add(sums[at.index*rows:], from, v, room)
	case noise:
		p.AddVec(p.rows[at.index], p.rows[at.index], v)
	}
}

// foldKnown folds the shares that this party computes itself: its own sharings' shares, and the
// shares that it expands from seeds.
func (p *party) foldKnown(ctx context.Context) error {
	const block = 32
	low, high := p.lowRows(), p.highRows()
	lowBlocks := (low + block - 1) / block
	blocks := lowBlocks + (high+block-1)/block
	return parallel.Try(ctx, p.Workers, blocks, func(b int) error {
		isHigh, first, rows := b >= lowBlocks, b*block, low
		if isHigh {
			first, rows = (b-lowBlocks)*block, high
		}
		received, own, bench := p.received.like(), p.own.like(), dealing.NewBench(p.n, p.width)
		for r := first; r < min(first+block, rows); r++ {
			p.foldRow(received, own, bench, isHigh, r)
		}
		bench.Wipe()
		p.received.merge(received)
		p.own.merge(own)
		return nil
	})
}

// foldRow is foldKnown for one row.
func (p *party) foldRow(received, own *combinations, b *dealing.Bench, high bool, r int) {
	degree, label, dealt := p.t, labelLow, p.dealer.low
	if high {
		degree, label, dealt = 2*p.t, labelHigh, p.dealer.high
	}
	group, weight := p.check.of(high, r)
	shares, room := p.dealer.make(b, high, r, p.self), b.Room
	p.fold(received, p.self, high, r, shares[p.self], room)
	sums := own.sums[0][group]
	p.add(sums[0], b.Secrets, weight, room)
	for k, i := range dealt.Seeded() {
		p.add(sums[1+k], shares[i], weight, room)
	}
	for from := range p.n {
		if p.seededFor(from, p.self, degree) {
			p.Expand(b.Secrets, p.given.Sources[from], label, uint64(r))
			p.fold(received, from, high, r, b.Secrets, room)
		}
	}
}
