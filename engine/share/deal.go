package share

import (
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Dealing makes a dealer's sharings of one degree d. A sharing is determined by the secret and d
// shares. So the shares of the d parties that follow the dealer in the roster, cyclically, are
// uniform: each of these parties expands them from a seed that the dealer sent to it once
// (pseudorandom secret sharing in its simplest form). The dealer computes the other shares, its own
// and those of the remaining n-1-d parties, and sends the latter. With d = n-1 it sends no shares.
type Dealing struct {
	s              *Shamir
	dealer, degree int
	seeded, sent   []int
	weights        map[int][]kernel.Factor // of the secret and the seeded shares, by party whose share is computed
}

// Dealing prepares sharings of the given degree, 1 <= degree < n, by a dealer. It panics for other
// degrees or dealers.
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

// Seeded lists the parties that expand their shares, starting after the dealer.
func (d *Dealing) Seeded() []int { return d.seeded }

// Sent lists the parties that are sent their shares, in roster order from the dealer.
func (d *Dealing) Sent() []int { return d.sent }

// Degree returns the degree of the sharings.
func (d *Dealing) Degree() int { return d.degree }

// Deal computes the shares of parties that do not expand theirs: it sets each shares[i] that is not
// nil, from the secrets and the expanded shares. Vectors must be as long as secrets.
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

// Value returns a party's share of one value. known has the secret, followed by the expanded
// shares.
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

// Expand sets dst to the shares with this label that a seed determines. The dealer and one other
// party know the seed.
func (s *Shamir) Expand(dst []uint64, seed *sample.Source, label string, index ...uint64) {
	stream := seed.Stream(label, index...)
	sample.Uniform(dst, s.Q, stream)
	stream.Wipe()
}

// Extractor turns sharings by all parties into sharings that no party knows. From n sharings, one
// by each dealer, it computes the n-t combinations with the rows of the Vandermonde matrix
// (Point(d)^m), m below n-t and d below n. Any n-t columns of it form an invertible matrix. So
// whatever t dealers know and choose, the combinations are as uniform and independent as the
// sharings of the n-t others. This holds for sharings of degree t, of degree 2t and for pairs of
// both.
type Extractor struct {
	s       *Shamir
	weights [][]kernel.Factor // by row and dealer
}

// Extractor prepares extraction with up to t dishonest dealers, 0 <= t < n.
func (s *Shamir) Extractor(t int) *Extractor {
	if t < 0 || t >= s.parties {
		panic(fmt.Sprintf("share: cannot extract randomness from %d parties if %d are dishonest", s.parties, t))
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

// Rows returns n-t, the number of combinations.
func (e *Extractor) Rows() int { return len(e.weights) }

// Add adds a dealer's sharing to each of the combinations, which start as zeros. mine is this
// party's share of the sharing. All vectors, including room, must have its length. Add overwrites
// room with secrets.
func (e *Extractor) Add(combinations [][]uint64, dealer int, mine, room []uint64) {
	room = room[:len(mine)]
	for m, dst := range combinations[:len(e.weights)] {
		e.s.ScaleByVec(room, mine, e.weights[m][dealer])
		e.s.AddVec(dst[:len(mine)], dst, room)
	}
}
