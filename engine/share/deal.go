package share

import (
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Dealing is how a dealer makes sharings of one degree d and what of them it sends. A sharing is determined by the
// secret and d shares, so those of the d parties that follow the dealer in the roster, cyclically, are uniform, and
// expanded from a seed that the dealer has sent to each once (pseudorandom secret sharing in its simplest form). The
// others are computed: the dealer's own, and those of the n-1-d parties left over, which it sends. With d = n-1 it
// sends none.
type Dealing struct {
	s              *Shamir
	dealer, degree int
	seeded, sent   []int
	weights        map[int][]kernel.Factor // of the secret and the seeded shares, by whose share is computed
}

// Dealing prepares the sharings of a degree, 1 <= degree < n, by a dealer.
func (s *Shamir) Dealing(dealer, degree int) *Dealing {
	if dealer < 0 || dealer >= s.parties || degree < 1 || degree >= s.parties {
		panic(fmt.Sprintf("share: party %d of %d cannot deal sharings of degree %d", dealer, s.parties, degree))
	}
	d := &Dealing{s: s, dealer: dealer, degree: degree, weights: map[int][]kernel.Factor{}}
	points := []uint64{0}
	for k := 1; k < s.parties; k++ {
		p := (dealer + k) % s.parties
		if k <= degree {
			d.seeded = append(d.seeded, p)
			points = append(points, s.Point(p))
		} else {
			d.sent = append(d.sent, p)
		}
	}
	for _, p := range append([]int{dealer}, d.sent...) {
		d.weights[p] = s.factors(s.interpolation(s.Point(p), points))
	}
	return d
}

// Seeded lists the parties that expand their shares, in the order from the dealer.
func (d *Dealing) Seeded() []int { return d.seeded }

// Sent lists the parties that are sent their shares, in the order from the dealer.
func (d *Dealing) Sent() []int { return d.sent }

// Degree is the degree.
func (d *Dealing) Degree() int { return d.degree }

// Deal computes the shares of parties that do not expand theirs: shares[i] for each of them for which it is not nil,
// from the secrets and the shares of those that do. Vectors are as long as secrets.
func (d *Dealing) Deal(shares [][]uint64, secrets []uint64) {
	known := make([][]uint64, 1, 1+d.degree)
	known[0] = secrets
	for _, p := range d.seeded {
		known = append(known, shares[p])
	}
	for p, w := range d.weights {
		if shares[p] != nil {
			d.s.combine(shares[p][:len(secrets)], w, known)
		}
	}
}

// Value is the share of a party of one value, of which the secret and then the shares of those that expand theirs are
// known.
func (d *Dealing) Value(party int, known []uint64) uint64 {
	if k := slices.Index(d.seeded, party); k >= 0 {
		return known[1+k]
	}
	shares := make([][]uint64, d.s.parties)
	for k, p := range d.seeded {
		shares[p] = known[1+k : 2+k]
	}
	shares[party] = make([]uint64, 1)
	d.Deal(shares, known[:1])
	return shares[party][0]
}

// Expand sets dst to the shares of this name that a seed gives, which its dealer and one other party know.
func (s *Shamir) Expand(dst []uint64, seed *sample.Source, label string, index ...uint64) {
	stream := seed.Stream(label, index...)
	sample.Uniform(dst, s.Q, stream)
	stream.Wipe()
}

// Extractor turns sharings of all parties into ones that nobody knows: of n sharings, one by each dealer, the n-t
// combinations with the rows of the Vandermonde matrix (Point(d)^m), m below n-t and d below n. Any n-t columns of it
// are an invertible matrix, so that whatever t dealers know and choose, the combinations are as uniform and independent
// as the sharings of the n-t others. It is the same for sharings of degree t, of degree 2t and pairs of both.
type Extractor struct {
	s       *Shamir
	weights [][]kernel.Factor // by row and dealer
}

// Extractor prepares extraction with up to t dealers that are not honest, 0 <= t < n.
func (s *Shamir) Extractor(t int) *Extractor {
	if t < 0 || t >= s.parties {
		panic(fmt.Sprintf("share: no randomness is left of %d parties without %d", s.parties, t))
	}
	e := &Extractor{s: s, weights: make([][]kernel.Factor, s.parties-t)}
	row := make([]uint64, s.parties)
	for m := range e.weights {
		for d := range row {
			if m == 0 {
				row[d] = 1
			} else {
				row[d] = s.Mul(row[d], s.Point(d))
			}
		}
		e.weights[m] = s.factors(row)
	}
	return e
}

// Rows is n-t, the number of combinations.
func (e *Extractor) Rows() int { return len(e.weights) }

// Add adds to each of the combinations, which begin as zeros, what is due to a dealer's sharing. Vectors are as long as
// mine, this party's share of it. room, of that length too, is overwritten with secrets.
func (e *Extractor) Add(combinations [][]uint64, dealer int, mine, room []uint64) {
	room = room[:len(mine)]
	for m, dst := range combinations[:len(e.weights)] {
		e.s.ScaleByVec(room, mine, e.weights[m][dealer])
		e.s.AddVec(dst[:len(mine)], dst, room)
	}
}
