package popk

import (
	"bytes"
	"context"
	"slices"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

//lodge:tests opening TestOpens|TestMaskDigest|TestAnother|TestEveryRepetition|TestCheats

// statement is another party's statement: the digest of its ciphertexts and the digests of its
// masks, which it opened before the challenge was known. It also accumulates the ciphertexts
// received so far.
type statement struct {
	scheme    *gbfv.Scheme
	challenge sigma.Challenge
	sum       round.Digest
	masks     []byte // V digests
	polys     int    // number of received polynomials of ciphertexts
	// The ciphertexts or, if their number exceeds the number of repetitions, the sum over i of w_ji
	// ct_i for each repetition j.
	list   []*gbfv.Ciphertext
	folded bool
}

// statementSize returns the length in bytes of a statement: a digest of all ciphertexts and one of
// each mask.
func statementSize(p params.Proof) int { return len(round.Digest{}) + digestsSize(p) }

func newStatement(s *gbfv.Scheme, w sigma.Challenge, opened []byte) *statement {
	t := &statement{scheme: s, challenge: w, masks: opened[len(round.Digest{}):], folded: w.Witnesses() > w.Repetitions()}
	copy(t.sum[:], opened)
	for range min(w.Witnesses(), w.Repetitions()) {
		t.list = append(t.list, s.NewCiphertext())
	}
	return t
}

// take receives half a ciphertext.
func (t *statement) take(ctx context.Context, workers, index int, p ring.Poly) error {
	t.polys++
	if !t.folded {
		t.scheme.Q.Add(ring.Poly{C: part(t.list, index)}, ring.Poly{C: part(t.list, index)}, p)
		return nil
	}
	return parallel.Try(ctx, workers, len(t.list), func(j int) error {
		t.scheme.Q.AddMonomial(ring.Poly{C: part(t.list, 2*j+index%2)}, p, t.challenge.At(j, index/2))
		return nil
	})
}

// subtract subtracts sum_i w_ji ct_i.
func (t *statement) subtract(from *gbfv.Ciphertext, j int) {
	if t.folded {
		t.scheme.Sub(from, from, t.list[j])
		return
	}
	subtractCombination(t.scheme, from, t.challenge, t.list, j)
}

// mask returns the digest of the mask of repetition j.
//
//lodge:check popk/equation-own-repetition [return=digestAt(t.masks, 0)] [run=@opening|TestFolded] every repetition opens the same mask
func (t *statement) mask(j int) []byte { return digestAt(t.masks, j) }

func (t *statement) free() {
	if t == nil {
		return
	}
	for _, ct := range t.list {
		ct.Free()
	}
	t.list = nil
}

// subtractCombination subtracts sum_i w_ji ct_i for a list of U ciphertexts.
func subtractCombination(s *gbfv.Scheme, from *gbfv.Ciphertext, w sigma.Challenge, list []*gbfv.Ciphertext, j int) {
	for i, ct := range list {
		s.SubMonomial(from, ct, w.At(j, i))
	}
}

// part returns the polynomial of frame f in a list of ciphertexts.
func part(list []*gbfv.Ciphertext, f int) [][]uint64 {
	if f%2 == 0 {
		return list[f/2].C0.C
	}
	return list[f/2].C1.C
}

// packed encodes a ciphertext as two frames.
func packed(s *gbfv.Scheme, ct *gbfv.Ciphertext) (c0, c1 []byte) {
	primes := s.Q.Primes()
	size := codec.PolySize(s.N(), primes)
	return codec.AppendPoly(make([]byte, 0, size), ct.C0.C, primes), codec.AppendPoly(make([]byte, 0, size), ct.C1.C, primes)
}

// maskDigest returns the digest that represents a mask. Masks are not sent: the verifier computes
// the mask of a response as Enc(z; t) - sum_i w_i ct_i and compares the digests.
func maskDigest(s *gbfv.Scheme, mask *gbfv.Ciphertext) round.Digest {
	//lodge:check popk/mask-digest [drop=mask.C1.C] [run=@opening] the digest of a mask does not
	//  cover its second polynomial
	limbs, primes := slices.Concat(mask.C0.C, mask.C1.C), s.Q.Primes()
	return round.HashEach("lodge popk mask limbs", len(limbs), func(room []byte, i int) []byte {
		return codec.AppendPoly(room, limbs[i:i+1], primes[i%len(primes):][:1])
	})
}

// digestsSize returns the length in bytes of the digests of the masks.
func digestsSize(p params.Proof) int { return p.V * len(round.Digest{}) }

func digestAt(digests []byte, j int) []byte {
	const size = len(round.Digest{})
	return digests[j*size : (j+1)*size]
}

// opens reports whether a response opens the mask with this digest, that is, whether Enc(z; t)
// minus the challenge's combination of ciphertexts has this digest.
func opens(
	s *gbfv.Scheme, p params.Proof, key *gbfv.PublicKey, r response, digest []byte, subtract func(mask *gbfv.Ciphertext),
) bool {
	mask := encryption(s, p, key, r)
	defer mask.Free()
	subtract(mask)
	d := maskDigest(s, mask)
	//lodge:check popk/equation-masks [return=true] [run=@opening] a response need not open its mask
	//lodge:check popk/equation-whole-digest [swap=bytes.Equal(d[:], digest)=>bytes.Equal(d[:4],
	//  digest[:4])] [run=@opening] only a few bytes of a mask's digest are compared
	return bytes.Equal(d[:], digest)
}

// encryption returns Enc(z; t).
func encryption(s *gbfv.Scheme, p params.Proof, key *gbfv.PublicKey, r response) *gbfv.Ciphertext {
	c := s.Borrow()
	if p.Diag {
		s.EncryptDiagWith(c, key, r.z, r.t)
	} else {
		s.EncryptWith(c, key, r.z, r.t)
	}
	return c
}
