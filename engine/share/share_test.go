package share

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/sample"
)

// primes have several sizes: small enough to try everything, those of the sets, and the largest.
var primes = []uint64{11, 65537, 1125899906826241, 9007199254614017, 1<<61 - 1}

func source(label string) *sample.Source {
	seed := make([]byte, sample.SeedSize)
	copy(seed, label)
	return sample.NewSource(seed)
}

func shamir(t testing.TB, q uint64, n int) *Shamir {
	t.Helper()
	s, err := New(q, n)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func table(n, width int) [][]uint64 {
	v := make([][]uint64, n)
	for i := range v {
		v[i] = make([]uint64, width)
	}
	return v
}

func everyone(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func pick(shares [][]uint64, parties []int) (list [][]uint64) {
	for _, p := range parties {
		list = append(list, shares[p])
	}
	return list
}

// Every quorum of d+1 parties reconstructs, for every number of parties and degree, and with
// additive shares too.
func TestEveryQuorum(t *testing.T) {
	const width = 700 // more than a block, and not a multiple of the block length
	for _, q := range primes {
		for _, n := range []int{3, 5, 7} {
			s := shamir(t, q, n)
			for degree := 1; degree < n; degree++ {
				stream := source(fmt.Sprint(q, n, degree)).Stream("x")
				secrets, shares := make([]uint64, width), table(n, width)
				sample.Uniform(secrets, q, stream)
				s.Share(shares, secrets, degree, stream)
				got, sum, part := make([]uint64, width), make([]uint64, width), make([]uint64, width)
				subsets(everyone(n), degree+1, func(quorum []int) {
					s.Reconstruct(got, quorum, pick(shares, quorum))
					if !slices.Equal(got, secrets) {
						t.Fatalf("q %d, n %d, degree %d: quorum %v reconstructs another value", q, n, degree, quorum)
					}
					clear(sum)
					for _, p := range quorum {
						s.Additive(part, quorum, p, shares[p])
						s.AddVec(sum, sum, part)
					}
					if !slices.Equal(sum, secrets) {
						t.Fatalf("q %d, n %d, degree %d: additive shares of %v have another sum", q, n, degree, quorum)
					}
				})
				all := everyone(n)
				if !s.Consistent(degree, all, shares) {
					t.Fatal("shares of one polynomial are reported as inconsistent")
				}
				shares[n-1][width-1] = s.Add(shares[n-1][width-1], 1)
				if consistent := s.Consistent(degree, all, shares); consistent != (degree == n-1) {
					t.Fatalf("n %d, degree %d: with a wrong share consistent is %v", n, degree, consistent)
				}
			}
		}
	}
}

// Over a small field, for every secret, the shares of any d parties take all values equally often
// as the seeds vary.
func TestSharesRevealNothing(t *testing.T) {
	const q, n = 11, 5
	s := shamir(t, q, n)
	for degree := 1; degree <= 2; degree++ {
		for dealer := range n {
			d := s.Dealing(dealer, degree)
			total := 1
			for range degree {
				total *= q
			}
			for secret := range uint64(q) {
				shares := table(n, total)
				for k, p := range d.Seeded() {
					for i := range total {
						v := i
						for range k {
							v /= q
						}
						shares[p][i] = uint64(v % q)
					}
				}
				d.Deal(shares, slices.Repeat([]uint64{secret}, total))
				subsets(everyone(n), degree, func(set []int) {
					seen := map[string]bool{}
					for i := range total {
						var view []uint64
						for _, p := range set {
							view = append(view, shares[p][i])
						}
						seen[fmt.Sprint(view)] = true
					}
					if len(seen) != total {
						t.Fatalf("dealer %d, secret %d: parties %v have %d of %d views", dealer, secret, set, len(seen), total)
					}
				})
			}
		}
	}
}

// The parties of a dealing are the dealer, those that expand their shares and those that are sent
// shares, each once. The computed shares lie on the polynomial, and Deal writes only the requested
// ones.
func TestDealing(t *testing.T) {
	for _, n := range []int{3, 5, 7} {
		s := shamir(t, primes[3], n)
		for dealer := range n {
			for degree := 1; degree < n; degree++ {
				d := s.Dealing(dealer, degree)
				all := slices.Concat([]int{dealer}, d.Seeded(), d.Sent())
				slices.Sort(all)
				if len(d.Seeded()) != degree || len(slices.Compact(all)) != n || d.Degree() != degree {
					t.Fatalf("n %d, dealer %d, degree %d: %v expand their shares and %v are sent theirs", n, dealer, degree, d.Seeded(), d.Sent())
				}
				shares, again := table(n, 9), table(n, 9)
				for _, p := range d.Seeded() {
					s.Expand(shares[p], source("seed"), "share", uint64(p))
					s.Expand(again[p], source("seed"), "share", uint64(p))
				}
				secrets := []uint64{0, 1, 2, 3, s.Q - 1, 5, 6, 7, 8}
				d.Deal(shares, secrets)
				if !s.Consistent(degree, all, shares) {
					t.Fatal("the shares do not lie on a polynomial of the degree")
				}
				got := make([]uint64, 9)
				if s.Reconstruct(got, all[:degree+1], shares[:degree+1]); !slices.Equal(got, secrets) {
					t.Fatal("the shares have another secret")
				}
				again[dealer] = nil
				d.Deal(again, secrets)
				for _, p := range d.Sent() {
					if !slices.Equal(again[p], shares[p]) {
						t.Fatal("a share depends on which shares are requested")
					}
				}
			}
		}
	}
}

// Any choice of t known columns of the extraction leaves an invertible matrix.
func TestExtraction(t *testing.T) {
	for _, q := range primes {
		for _, n := range []int{3, 5, 7} {
			s := shamir(t, q, n)
			for faults := range (n + 1) / 2 {
				e := s.Extractor(faults)
				if e.Rows() != n-faults {
					t.Fatalf("%d rows", e.Rows())
				}
				columns := make([][]uint64, n)
				for d := range n {
					out := table(e.Rows(), 1)
					e.Add(out, d, []uint64{1}, make([]uint64, 1))
					for _, v := range out {
						columns[d] = append(columns[d], v[0])
					}
				}
				subsets(everyone(n), e.Rows(), func(set []int) {
					if !invertible(s, pick(columns, set)) {
						t.Fatalf("n %d, t %d: columns %v are dependent modulo %d", n, faults, set, q)
					}
				})
			}
		}
	}
}

// Combinations of sharings are sharings of the combinations, for degrees t and 2t.
func TestExtractedSharings(t *testing.T) {
	const n, faults, width = 5, 2, 8
	s := shamir(t, primes[2], n)
	e := s.Extractor(faults)
	stream := source("extraction").Stream("x")
	for _, degree := range []int{faults, 2 * faults} {
		secrets := make([]uint64, width)
		want, room := table(e.Rows(), width), make([]uint64, width)
		got := make([][][]uint64, n) // by party
		for i := range got {
			got[i] = table(e.Rows(), width)
		}
		for d := range n {
			shares := table(n, width)
			sample.Uniform(secrets, s.Q, stream)
			s.Share(shares, secrets, degree, stream)
			e.Add(want, d, secrets, room)
			for i := range n {
				e.Add(got[i], d, shares[i], room)
			}
		}
		for m := range want {
			var list [][]uint64
			for i := range n {
				list = append(list, got[i][m])
			}
			all := []int{0, 1, 2, 3, 4}
			s.Reconstruct(room, all[:degree+1], list[:degree+1])
			if !slices.Equal(room, want[m]) || !s.Consistent(degree, all, list) {
				t.Fatalf("degree %d: combination %d is not a sharing of the combination", degree, m)
			}
		}
	}
}

func invertible(s *Shamir, rows [][]uint64) bool {
	m := make([][]uint64, len(rows))
	for i := range m {
		m[i] = slices.Clone(rows[i])
	}
	for c := range m {
		pivot := -1
		for r := c; r < len(m); r++ {
			if m[r][c] != 0 {
				pivot = r
			}
		}
		if pivot < 0 {
			return false
		}
		m[c], m[pivot] = m[pivot], m[c]
		inverse := s.Inverse(m[c][c])
		for r := c + 1; r < len(m); r++ {
			f := s.Mul(m[r][c], inverse)
			for k := range m {
				m[r][k] = s.Sub(m[r][k], s.Mul(f, m[c][k]))
			}
		}
	}
	return true
}

// Wrong shares are located if there are enough honest ones, and an honest party is never certain to
// be wrong.
func TestLocate(t *testing.T) {
	for _, c := range []struct {
		n, degree, faults int
		wrong, honest     []int
		certain, possible []int
	}{
		{5, 2, 2, nil, nil, nil, nil},
		{4, 1, 1, []int{2}, nil, []int{2}, []int{2}},
		{7, 2, 2, []int{1, 6}, nil, []int{1, 6}, []int{1, 6}},
		{7, 2, 2, []int{3}, []int{0}, []int{3}, []int{3}},
		// With n = 2t+1 any t others may be wrong.
		{3, 1, 1, []int{2}, nil, nil, []int{0, 1, 2}},
		{3, 1, 1, []int{2}, []int{0}, nil, []int{1, 2}},
		{3, 1, 1, []int{2}, []int{0, 1}, []int{2}, []int{2}},
		{5, 2, 2, []int{4}, []int{0}, nil, []int{1, 2, 3, 4}},
		{5, 2, 1, []int{4}, nil, []int{4}, []int{4}},
		{5, 4, 2, []int{4}, nil, nil, nil}, // no redundancy, so no fault can be detected
	} {
		s := shamir(t, primes[4], c.n)
		shares := table(c.n, 1)
		s.Share(shares, []uint64{12345}, c.degree, source("locate").Stream("x", uint64(c.n)))
		flat := slices.Concat(shares...)
		for k, w := range c.wrong {
			flat[w] = s.Add(flat[w], uint64(7+k*k))
		}
		f := s.Locate(everyone(c.n), flat, c.degree, c.faults, c.honest...)
		if !slices.Equal(f.Certain, c.certain) || !slices.Equal(f.Possible, c.possible) {
			t.Errorf("%+v: certain %v, possible %v", c, f.Certain, f.Possible)
		}
	}
}

// A party that gives no share is never a suspect.
func TestLocateWithMissingShares(t *testing.T) {
	s := shamir(t, primes[2], 7)
	shares := table(7, 1)
	s.Share(shares, []uint64{5}, 1, source("some").Stream("x"))
	flat := slices.Concat(shares...)
	present := []int{6, 1, 3, 4, 5}
	values := []uint64{flat[6], flat[1], s.Add(flat[3], 9), flat[4], flat[5]}
	if f := s.Locate(present, values, 1, 2); !slices.Equal(f.Certain, []int{3}) || !slices.Equal(f.Possible, []int{3}) {
		t.Errorf("certain %v, possible %v", f.Certain, f.Possible)
	}
	if f := s.Locate(present, []uint64{flat[6], flat[1], flat[3], flat[4], flat[5]}, 1, 2); f.Possible != nil {
		t.Errorf("possible %v", f.Possible)
	}
}

// No set of liars within the bound makes an honest party certain to be wrong: if two liars of five
// shift their shares onto a polynomial through an honest share, they cannot be distinguished from
// it.
func TestLocateNeverFramesHonestParties(t *testing.T) {
	s := shamir(t, primes[2], 5)
	shares := table(5, 1)
	s.Share(shares, []uint64{99}, 2, source("frame").Stream("x"))
	flat := slices.Concat(shares...)
	// Parties 3 and 4 move to another polynomial through the shares of 0 and 1; the share of the
	// honest party 2 does not lie on it.
	other := s.Add(flat[2], 1)
	for _, p := range []int{3, 4} {
		c := s.Lagrange(s.Point(p), []int{0, 1, 2})
		flat[p] = s.Add(s.Add(s.Mul(c[0], flat[0]), s.Mul(c[1], flat[1])), s.Mul(c[2], other))
	}
	if f := s.Locate(everyone(5), flat, 2, 2); len(f.Certain) > 0 || !slices.Contains(f.Possible, 3) && !slices.Contains(f.Possible, 4) {
		t.Fatalf("certain %v, possible %v", f.Certain, f.Possible)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		q    uint64
		n    int
		want string
	}{
		{15, 3, "not prime"},
		{1 << 20, 3, "odd"},
		{1<<61 + 15, 3, "bits"},
		{5, 5, "cannot share"},
		{65537, 1, "cannot share"},
		{65537, MaxParties + 1, "cannot share"},
	} {
		if _, err := New(c.q, c.n); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d parties modulo %d: %v, want %s", c.n, c.q, err, c.want)
		}
	}
	s := shamir(t, 65537, 3)
	for name, f := range map[string]func(){
		"a party twice":      func() { s.Lagrange(0, []int{1, 1}) },
		"an unknown party":   func() { s.Lagrange(0, []int{3}) },
		"not in the quorum":  func() { s.Additive(nil, []int{0, 1}, 2, nil) },
		"degree 0":           func() { s.Dealing(0, 0) },
		"a degree too large": func() { s.Dealing(0, 3) },
		"weights missing":    func() { s.Combine(nil, nil, nil) },
		"all are dishonest":  func() { s.Extractor(3) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestVecIsRedacted(t *testing.T) {
	v := Vec{123456789, 987654321}
	encoded, err := json.Marshal(struct{ V Vec }{v})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(v), fmt.Sprintf("%d %x %#v", v, v, struct{ v Vec }{v}.v), string(encoded)} {
		if strings.Contains(s, "1234") || strings.Contains(s, "75bcd15") {
			t.Errorf("%s reveals a share", s)
		}
	}
	if _, err := v.MarshalBinary(); err == nil {
		t.Error("a share was encoded")
	}
	if _, err := v.GobEncode(); err == nil {
		t.Error("a share was encoded")
	}
	if v.Wipe(); v[0] != 0 || v[1] != 0 {
		t.Error("a wiped vector still has values")
	}
}
