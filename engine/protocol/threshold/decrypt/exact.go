package decrypt

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
)

// group holds this party's shares over GF(2), packed 64 ciphertexts to a word, of g = [v < rho] and
// e = [v = rho] for some of the bits of v and rho. The group of the lowest bits does not need e.
type group struct{ g, e []uint64 }

// comparison is the state of the comparison of v with rho, level by level.
type comparison struct {
	*run
	v      []uint64 // public in the quorum
	groups []group  // lowest bits first
	levels [][]masks.And
	done   int // levels finished
	spent  int // triples spent
}

// Wipe erases the shares.
func (c *comparison) Wipe() {
	for _, g := range c.groups {
		clear(g.g)
		clear(g.e)
	}
}

func (r *run) words() int { return (r.count + 63) / 64 }

// valid returns a mask of the bits of a word that belong to a ciphertext.
func (r *run) valid(word int) uint64 {
	return ^uint64(0) >> max(0, 64*(word+1)-r.count)
}

// compare begins the comparison: it joins pairs of bits with the products that the records contain.
func (r *run) compare(v []uint64) (round.Transition[*Result], error) {
	k := r.Params.Kind
	bits := make([][]uint64, k.LogPhi) // of v
	for b := range bits {
		bits[b] = make([]uint64, r.words())
		for i, x := range v {
			bits[b][i/64] |= x >> b & 1 << (i % 64)
		}
	}
	c := &comparison{run: r, v: v, levels: k.Levels()}
	r.Session.Secrets.Own(c)
	for low := 0; low < k.LogPhi; low += 2 {
		g := group{make([]uint64, r.words()), make([]uint64, r.words())}
		for i := range g.g {
			// With a = 1 + v_i over GF(2): g_i = a rho_i and e_i = a + rho_i. Party 0 adds the
			// public summand.
			a0, r0 := ^bits[low][i]&r.valid(i), r.values.Bits[low][i]
			if low+1 == k.LogPhi {
				g.g[i], g.e[i] = a0&r0, r0^r.public(a0)
				continue
			}
			a1, r1 := ^bits[low+1][i]&r.valid(i), r.values.Bits[low+1][i]
			both := r.values.Products[low/2][i]
			g.g[i] = a1&r1 ^ a0&(a1&r0^both)
			g.e[i] = r.public(a1&a0) ^ a1&r0 ^ a0&r1 ^ both
		}
		c.groups = append(c.groups, g)
	}
	return c.next()
}

// public returns this party's share of a public word.
func (r *run) public(w uint64) uint64 {
	if r.first() {
		return w
	}
	return 0
}

// toAll returns a message to every other party, without an echo.
func (r *run) toAll(name string, b []byte) []round.Message {
	var send []round.Message
	for p := range round.Party(r.Session.Parties) {
		if p != r.Session.Self {
			send = append(send, round.Message{To: p, Name: r.name(name), Body: round.Bytes(b)})
		}
	}
	return send
}

// next opens the masked factors of the next level's products, or the masked carry after the last
// level.
func (c *comparison) next() (round.Transition[*Result], error) {
	if c.done == len(c.levels) {
		return c.carry()
	}
	var list [][]uint64
	for t, a := range c.levels[c.done] {
		triple := c.values.Triples[c.spent+t]
		x, y := c.factors(a)
		eps, delta := make([]uint64, c.words()), make([]uint64, c.words())
		for i := range eps {
			eps[i], delta[i] = x[i]^triple[0][i], y[i]^triple[1][i]
		}
		list = append(list, eps, delta)
	}
	return round.Next(round.Round[*Result](&level{c, list}), c.toAll("level", planes(list...))...), nil
}

func (c *comparison) factors(a masks.And) (x, y []uint64) {
	if a.Equal {
		return c.groups[a.High].e, c.groups[a.Low].e
	}
	return c.groups[a.High].e, c.groups[a.Low].g
}

// collect adds the other parties' planes with this name to the list.
func (r *run) collect(in round.Inbox, name string, list [][]uint64) error {
	for _, w := range r.wants(name, len(list)) {
		b := in.Bytes(w.From, w.Name)
		//lodge:check decrypt/planes-length [swap=len(b) != 8*r.words()*len(list)=>len(b) >
		//  8*r.words()*len(list)] the shared bits of some ciphertexts can be missing
		if len(b) != 8*r.words()*len(list) {
			return round.Malformed(w.From, errors.New("wrong length"))
		}
		for _, plane := range list {
			for i := range plane {
				x := binary.LittleEndian.Uint64(b)
				//lodge:check decrypt/planes shared bits have several encodings
				if x&^r.valid(i) != 0 {
					return round.Malformed(w.From, errors.New("padding"))
				}
				plane[i] ^= x
				b = b[8:]
			}
		}
	}
	return nil
}

func (r *run) wants(name string, planes int) []round.Want {
	return r.Session.Each(round.Want{Name: r.name(name), MaxBytes: int64(8 * r.words() * planes)})
}

// level is the round in which the masked factors of a level arrive.
type level struct {
	*comparison
	list [][]uint64
}

func (r *level) Wants() []round.Want { return r.wants("level", len(r.list)) }

func (r *level) Step(_ context.Context, in round.Inbox) (round.Transition[*Result], error) {
	if err := r.collect(in, "level", r.list); err != nil {
		return round.Transition[*Result]{}, err
	}
	ands := r.levels[r.done]
	next := make([]group, (len(r.groups)+1)/2)
	if len(r.groups)%2 == 1 {
		next[len(next)-1] = r.groups[len(r.groups)-1]
	}
	for t, a := range ands {
		// xy = z + eps y + delta x + eps delta, for the triple's shares x, y, z (Beaver)
		triple, eps, delta := r.values.Triples[r.spent+t], r.list[2*t], r.list[2*t+1]
		product := make([]uint64, r.words())
		for i := range product {
			product[i] = triple[2][i] ^ eps[i]&triple[1][i] ^ delta[i]&triple[0][i] ^ r.public(eps[i]&delta[i])
		}
		to := &next[a.Low/2]
		if a.Equal {
			to.e = product
			continue
		}
		for i, g := range r.groups[a.High].g {
			product[i] ^= g
		}
		to.g = product
	}
	old := comparison{groups: r.groups[:len(r.groups)&^1]}
	r.groups = next
	old.Wipe()
	r.done++
	r.spent += len(ands)
	return r.comparison.next()
}

// carry opens c under the mask d.
func (c *comparison) carry() (round.Transition[*Result], error) {
	y := append([]uint64(nil), c.groups[0].g...)
	for i, d := range c.values.Parity {
		y[i] ^= d
	}
	return round.Next(round.Round[*Result](&carried{c, y}), c.toAll("carry", planes(y))...), nil
}

// carried is the round in which the masked carries arrive.
type carried struct {
	*comparison
	y []uint64
}

func (r *carried) Wants() []round.Want { return r.wants("carry", 1) }

func (r *carried) Step(_ context.Context, in round.Inbox) (round.Transition[*Result], error) {
	if err := r.collect(in, "carry", [][]uint64{r.y}); err != nil {
		return round.Transition[*Result]{}, err
	}
	phi, p := r.Params.Kind.LogPhi, residues(r.Params.Kind.P())
	for i, d := range r.values.D {
		c, one := d, uint64(0)
		if r.first() {
			one = 1
			r.w[i] = r.eta.sub(r.w[i], r.v[i])
		}
		if r.y[i/64]>>(i%64)&1 == 1 { // y is known to all parties
			c = p.sub(one, d)
		}
		r.w[i] = r.eta.sub(r.w[i], c<<phi)
	}
	r.comparison.Wipe()
	return r.answer()
}
