package lwekeys

import (
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/share"
)

// plan holds the public sizes of a run: the numbers of sharings that are dealt, in rows of N.
type plan struct {
	*share.Shamir
	n, t, width int // parties, threshold, N
	primes      []uint64
	nonresidue  uint64 // of the squares modulo Q

	bits             int // rows of random bits
	dim              int // rows of products, one for each coordinate of s
	keys             int // rows of the keys: one of the public key, 2 dim digits of blind rotation, and those of key switching
	digits, switches int // lengths of the gadgets

	dealt [kinds]int // rows that every party deals
	rowsPerFrame,
	rowBytes int
}

// kind is the purpose of a dealt row. Rows of degree t are numbered through the kinds from random
// to pairMask. Rows of degree 2t, which belong to rows of the kinds pair and pairMask, are numbered
// separately.
type kind int

const (
	random   kind = iota // [x]_t
	pair                 // [r]_t, with [r]_2t
	noise                // [e]_t of an error e
	mask                 // hides the check of random and noise
	pairMask             // hides the check of pair
	kinds
)

func newPlan(c *Config) (*plan, error) {
	s, err := share.New(c.Scheme.Q, c.Session.Parties)
	if err != nil {
		return nil, err
	}
	p := &plan{
		Shamir: s, n: c.Session.Parties, t: c.Threshold, width: c.Scheme.N(), primes: []uint64{c.Scheme.Q},
		dim: c.Scheme.Dim, digits: c.Scheme.Set.Rotation.Digits, switches: c.Scheme.Switch.Digits,
	}
	p.bits = (2*p.width + p.dim + spare + p.width - 1) / p.width
	p.keys = 1 + p.switches + 2*p.dim*p.digits
	extracted := p.n - p.t
	p.dealt = [kinds]int{
		random: (p.bits + extracted - 1) / extracted, pair: (p.bits + p.dim + extracted - 1) / extracted,
		noise: p.keys, mask: 1, pairMask: 1,
	}
	for p.nonresidue = 2; p.Exp(p.nonresidue, (p.Q-1)/2) == 1; {
		p.nonresidue++
	}
	p.rowBytes = codec.PolySize(p.width, p.primes)
	p.rowsPerFrame = round.MaxFrame / p.rowBytes
	return p, nil
}

// lowRows returns the number of rows of degree t that a party deals.
func (p *plan) lowRows() (total int) {
	for _, rows := range p.dealt {
		total += rows
	}
	return total
}

// highRows returns the number of rows of degree 2t that a party deals.
func (p *plan) highRows() int { return p.dealt[pair] + p.dealt[pairMask] }

// place is one row of a kind.
type place struct {
	kind  kind
	index int
}

// kindOf returns the kind and index of dealt row r of degree t, or of degree 2t.
func (p *plan) kindOf(high bool, r int) place {
	if high {
		if r < p.dealt[pair] {
			return place{pair, r}
		}
		return place{pairMask, 0}
	}
	for k, rows := range p.dealt {
		if r < rows {
			return place{kind(k), r}
		}
		r -= rows
	}
	panic("threshold: no such row")
}

// distance returns how many places party to follows the dealer in the roster.
func (p *plan) distance(dealer, to int) int { return (to - dealer + p.n) % p.n }

// sends reports whether a dealer sends a party any shares.
func (p *plan) sends(dealer, to int) bool { return p.distance(dealer, to) > p.t }

// framesOf returns the number of frames of rows.
func (p *plan) framesOf(rows int) int { return (rows + p.rowsPerFrame - 1) / p.rowsPerFrame }

// dealtFrames returns the number of frames of shares that a dealer sends to a party: rows of degree
// t, followed by rows of degree 2t in separate frames.
func (p *plan) dealtFrames(dealer, to int) (low, high int) {
	d := p.distance(dealer, to)
	if d > p.t {
		low = p.framesOf(p.lowRows())
	}
	if d > 2*p.t {
		high = p.framesOf(p.highRows())
	}
	return low, high
}

// span returns the range of rows in frame f.
func (p *plan) span(f, rows int) (from, to int) {
	return f * p.rowsPerFrame, min((f+1)*p.rowsPerFrame, rows)
}

// slice returns the range of rows that a king opens.
func (p *plan) slice(king, rows int) (from, to int) {
	return king * rows / p.n, (king + 1) * rows / p.n
}

// senders returns the parties that send a king their shares of sharings of a degree, one per
// degree.
func (p *plan) senders(king, degree int) []int {
	list := make([]int, degree)
	for k := range list {
		list[k] = (king + 1 + k) % p.n
	}
	return list
}

// pack appends rows to a frame.
func (p *plan) pack(dst []byte, rows [][]uint64) []byte {
	for _, r := range rows {
		dst = codec.AppendPoly(dst, [][]uint64{r}, p.primes)
	}
	return dst
}

// unpack decodes row k of a frame.
func (p *plan) unpack(dst []uint64, frame []byte, k int) error {
	return codec.DecodePoly([][]uint64{dst}, p.primes, frame[k*p.rowBytes:(k+1)*p.rowBytes])
}

// packValues encodes a list of residues.
func (p *plan) packValues(v []uint64) []byte { return codec.AppendPoly(nil, [][]uint64{v}, p.primes) }

// valuesSize returns the length in bytes of n residues.
func (p *plan) valuesSize(n int) int { return codec.PolySize(n, p.primes) }

// values decodes exactly n residues from a party.
func (p *plan) values(from round.Party, b []byte, n int) ([]uint64, error) {
	v := make([]uint64, n)
	if err := codec.DecodePoly([][]uint64{v}, p.primes, b); err != nil {
		return nil, round.Malformed(from, err)
	}
	return v, nil
}

// add sets dst += weight v. It overwrites room.
func (p *plan) add(dst, v []uint64, weight kernel.Factor, room []uint64) {
	p.ScaleByVec(room[:len(v)], v, weight)
	p.AddVec(dst[:len(v)], dst, room)
}

// sum returns the sum of v, which it overwrites.
func (p *plan) sum(v []uint64) uint64 {
	for len(v) > 1 {
		half := len(v) / 2
		p.AddVec(v[:half], v[:half], v[len(v)-half:])
		v = v[:len(v)-half]
	}
	return v[0]
}

// dot returns the inner product of a and b. It overwrites room, which must have the same length.
func (p *plan) dot(a, b, room []uint64) uint64 {
	p.MulVec(room[:len(a)], a, b)
	return p.sum(room[:len(a)])
}
