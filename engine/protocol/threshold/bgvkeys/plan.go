package bgvkeys

import (
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/table"
	"github.com/lodge-mpc/lodge/engine/share"
)

// plan holds the public parameters of a run. Dealings are sent in frames: 0 is the secret, 1+i the
// error of sample i of the keys, and the last has the masks of the check. A frame consists of ring
// elements, in rows of N residues modulo one prime.
type plan struct {
	scheme *bgv.Scheme
	n, t   int
	width  int // N
	primes []uint64
	fields []*share.Shamir // by prime
	galois []uint64
}

func newPlan(c *Config) (*plan, error) {
	p := &plan{
		scheme: c.Scheme, n: c.Session.Parties, t: c.Threshold, width: c.Scheme.N(), primes: c.Scheme.QP(), galois: c.Galois,
	}
	for _, q := range p.primes {
		f, err := share.New(q, p.n)
		if err != nil {
			return nil, err
		}
		p.fields = append(p.fields, f)
	}
	return p, nil
}

func (p *plan) samples() int { return p.scheme.Samples(len(p.galois)) }

func (p *plan) frames() int { return p.samples() + 2 }

// row is one of the rows of a frame. If it is high, its shares have degree 2t.
type row struct {
	prime int
	high  bool
}

// product reports whether the message of a sample contains s^2 modulo a prime. Then its shares have
// degree 2t.
func (p *plan) product(number, prime int) bool {
	digit := number - 1 // of the relinearisation key
	return digit >= 0 && digit < p.scheme.Digits() && p.inDigit(digit, prime)
}

// inDigit reports whether the message of a digit is nonzero modulo a prime.
func (p *plan) inDigit(digit, prime int) bool {
	return prime < len(p.scheme.Q) && p.scheme.Digit(prime) == digit
}

// rows returns the rows of a frame.
func (p *plan) rows(f int) (list []row) {
	for k := range p.primes {
		list = append(list, row{k, f > 0 && f <= p.samples() && p.product(f-1, k)})
	}
	if f > p.samples() { // masks for both degrees
		for k := range p.scheme.Q {
			list = append(list, row{k, true})
		}
	}
	return list
}

func (p *plan) degree(r row) int {
	if r.high {
		return 2 * p.t
	}
	return p.t
}

// distance returns how many places party to follows the dealer in the roster.
func (p *plan) distance(dealer, to int) int { return (to - dealer + p.n) % p.n }

// sent returns the rows of a frame for which a dealer sends shares to a party. The party expands
// its shares of the other rows.
func (p *plan) sent(f, dealer, to int) (list []row) {
	for _, r := range p.rows(f) {
		if p.distance(dealer, to) > p.degree(r) {
			list = append(list, r)
		}
	}
	return list
}

// sends reports whether a dealer sends shares to a party.
func (p *plan) sends(dealer, to int) bool { return p.distance(dealer, to) > p.t }

// size returns the length in bytes of rows.
func (p *plan) size(rows []row) (n int) {
	for _, r := range rows {
		n += p.valuesSize(r.prime, p.width)
	}
	return n
}

// valuesSize returns the length in bytes of n residues modulo a prime.
func (p *plan) valuesSize(prime, n int) int { return codec.PolySize(n, p.primes[prime:prime+1]) }

func (p *plan) pack(dst []byte, prime int, v []uint64) []byte {
	return codec.AppendPoly(dst, [][]uint64{v}, p.primes[prime:prime+1])
}

// unpack decodes a row at the beginning of b, which must be long enough, and returns the rest of b.
func (p *plan) unpack(dst []uint64, prime int, b []byte) ([]byte, error) {
	n := p.valuesSize(prime, len(dst))
	return b[n:], codec.DecodePoly([][]uint64{dst}, p.primes[prime:prime+1], b[:n])
}

// table allocates a row for every prime, in one block.
func (p *plan) table() [][]uint64 { return table.New(len(p.primes), p.width) }

// add sets dst += weight v modulo a prime; room is overwritten.
func (p *plan) add(dst, v []uint64, prime int, weight kernel.Factor, room []uint64) {
	f := p.fields[prime]
	f.ScaleByVec(room[:len(v)], v, weight)
	f.AddVec(dst[:len(v)], dst, room)
}

// dot returns the inner product of residues modulo a prime.
func (p *plan) dot(prime int, a, b []uint64) uint64 {
	f := p.fields[prime]
	var sum uint64
	for i, x := range a {
		sum = f.Add(sum, f.Mul(x, b[i]))
	}
	return sum
}
