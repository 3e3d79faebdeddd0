package masks

import (
	"context"
	"encoding/binary"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// begin sets the shares that need no peer: party 0's shares of the bits, and each party's shares of
// the products of the bits that it contributes.
func (r *run) begin(ctx context.Context) (round.Transition[*Batch], error) {
	for p := range r.moduli {
		x := make([]uint64, r.records())
		if r.Session.Self == 0 {
			for i := range x {
				x[i] = bit(r.bits[p], i)
			}
		}
		r.shares = append(r.shares, x)
	}
	for _, f := range r.factors {
		c := make([]uint64, r.records()/64)
		for i := range c {
			c[i] = r.bits[f[0]][i] & r.bits[f[1]][i]
		}
		r.products = append(r.products, c)
	}
	return r.step(ctx, 1)
}

func bit(plane []uint64, i int) uint64 { return plane[i/64] >> (i % 64) & 1 }

// step begins step j of the chain, in which party j joins the parties before it. After the last
// step the shares are complete.
func (r *run) step(ctx context.Context, j round.Party) (round.Transition[*Batch], error) {
	if int(j) == r.Session.Parties {
		return r.complete(ctx)
	}
	next := round.Round[*Batch](joins{r, j})
	if r.Session.Self >= j {
		return round.Next(next), nil
	}
	message, err := r.correct(j)
	if err != nil {
		return round.Transition[*Batch]{}, err
	}
	return round.Next(next, round.Message{To: j, Name: r.name("correction"), Body: round.Bytes(message)}), nil
}

// correct returns the corrections for party j, and updates the shares to their values after party j
// has joined.
func (r *run) correct(j round.Party) ([]byte, error) {
	batch := r.senders[j].Batch()
	message := make([]byte, 0, r.correctionSize())
	u, c := make([]uint64, r.records()), make([]uint64, r.records())
	defer clear(u)
	for p, m := range r.moduli {
		// b <- b - 2 u, with u + v = b x
		b := r.shares[p]
		if err := m.send(batch, u, c, b); err != nil {
			return nil, err
		}
		m.subtractTwice(b, u)
		at := len(message)
		message = message[:at+kernel.PackedSize(len(c), m.width)]
		kernel.Pack(message[at:], c, m.width)
	}
	words := r.records() / 64
	for k, f := range r.factors {
		for _, x := range f {
			if err := batch.Bits(u, c, r.bits[x], r.records()); err != nil {
				return nil, err
			}
			for i := range words {
				r.products[k][i] ^= u[i]
				message = binary.LittleEndian.AppendUint64(message, c[i])
			}
		}
	}
	r.senders[j].Wipe()
	return message, nil
}

// joins is the round in which party j receives the corrections of the parties before it.
type joins struct {
	*run
	j round.Party
}

func (r joins) Wants() []round.Want {
	if r.Session.Self != r.j {
		return nil
	}
	return r.lower(round.Want{Name: r.name("correction"), MaxBytes: int64(r.correctionSize())})
}

func (r joins) Step(ctx context.Context, in round.Inbox) (round.Transition[*Batch], error) {
	if r.Session.Self == r.j {
		for p := range r.moduli {
			for i := range r.shares[p] {
				r.shares[p][i] = bit(r.bits[p], i)
			}
		}
		for p := range r.j {
			if err := r.join(p, in.Bytes(p, r.name("correction"))); err != nil {
				return round.Transition[*Batch]{}, err
			}
		}
	}
	return r.step(ctx, r.j+1)
}

// join applies the corrections of party p.
func (r *run) join(p round.Party, message []byte) error {
	//lodge:check masks/corrections [swap=len(message) != r.correctionSize()=>len(message) >
	//  r.correctionSize()] shorter corrections pass
	if len(message) != r.correctionSize() {
		return &round.Blame{Party: p, Check: round.CheckShape, Reason: "wrong length of corrections"}
	}
	batch := r.receivers[p].Batch()
	c := make([]uint64, r.records())
	defer clear(c)
	for k, m := range r.moduli {
		kernel.Unpack(c, message, m.width) // a multiple of 64 records, so there is no padding
		message = message[kernel.PackedSize(len(c), m.width):]
		//lodge:check masks/correction-residues corrections modulo an odd number have several
		//  encodings
		if !m.residues(c) {
			return &round.Blame{Party: p, Check: round.CheckShape, Reason: "a correction is not a residue"}
		}
		if err := m.receive(batch, c, c); err != nil {
			return err
		}
		m.subtractTwice(r.shares[k], c)
	}
	words := c[:r.records()/64]
	for k, f := range r.factors {
		for range f {
			for i := range words {
				words[i] = binary.LittleEndian.Uint64(message[8*i:])
			}
			message = message[8*len(words):]
			if err := batch.Bits(words, words, r.records()); err != nil {
				return err
			}
			for i, v := range words {
				r.products[k][i] ^= v
			}
		}
	}
	r.receivers[p].Wipe()
	return nil
}

// values assembles the records. Everything in them except their number is secret to this party.
func (r *run) values() *Values {
	k := r.Kind
	v := newValues(k, r.records())
	for p := range k.LogPhi {
		for i, b := range r.shares[p] {
			b <<= p
			if k.Form == Paper && p == k.LogPhi-1 {
				b = -b // the sign: 2^(k-1) + 2^k + ... + eta/2 is -2^(k-1) modulo eta
			}
			v.R[i] = r.moduli[0].reduce(v.R[i] + b)
		}
	}
	if k.Form == Paper {
		return v
	}
	for i, d := range r.shares[k.LogPhi] {
		v.D[i] = r.moduli[k.LogPhi].reduce(d)
	}
	copy(v.Parity, r.bits[k.LogPhi])
	for p := range v.Bits {
		copy(v.Bits[p], r.bits[p])
	}
	for p := range v.Products {
		copy(v.Products[p], r.products[p])
	}
	for t := range v.Triples {
		f := r.factors[k.Products()+t]
		copy(v.Triples[t][0], r.bits[f[0]])
		copy(v.Triples[t][1], r.bits[f[1]])
		copy(v.Triples[t][2], r.products[k.Products()+t])
	}
	return v
}
