package triple

import (
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
)

// SentBytes estimates the bytes of frames that the busiest sender sends in a batch: its ciphertexts
// and their proof to every other party, its share of every decryption to the party that combines
// it, and the opened products and masked factors. Commitments, digests and the messages of the MAC
// check are not counted.
func (p *Plan) SentBytes(s *gbfv.Scheme) int64 {
	n := int64(p.Instance.Use.Parties)
	proof := popk.ClientConfig{Scheme: s, Instance: p.Instance}
	sent := (n - 1) * int64(proof.CiphertextSize()+proof.ProofSize())
	if p.Pair != nil {
		pair := popk.ClientConfig{Scheme: s, Instance: p.Pair}
		sent += (n - 1) * int64(pair.CiphertextSize()+pair.ProofSize())
	}
	share := int64(codec.PolySize(s.N(), s.Q.Primes()[:p.Instance.DDecPrimes]))
	sent += (int64(p.Decryptions()) - int64(p.Decryptions())/n) * share
	opened := p.maskedElements()
	if p.Kind.Opens() {
		opened += p.Count
	}
	return sent + (n-1)*int64(opened)*int64(s.Field.Size())
}

// Transforms estimates the number-theoretic transforms of N coefficients modulo one prime that a
// party computes in a batch: for its encryptions, the proofs that it verifies, products and
// decryptions. Other work is smaller, or proportional to these.
func (p *Plan) Transforms() int64 {
	const (
		encryption = 4  // of the randomness, two errors and the message, for each prime
		product    = 12 // of two factors and three terms on both bases, and back, for each prime
		decryption = 3
	)
	primes, n := int64(len(p.Instance.Set.Q)), p.extent()
	provers := int64(p.Instance.Use.Parties)
	if p.Kind.Owned() {
		provers = 1
	}
	total := encryption * primes * (int64(p.Instance.U+p.Instance.V) + (provers-1)*int64(p.Instance.V))
	relinearization := primes * primes // a digit for each prime, transformed for all
	if p.Pair != nil {
		total += encryption * primes * (int64(p.Pair.U+p.Pair.V) + int64(p.Pair.Use.Parties-1)*int64(p.Pair.V))
	}
	products := int64(n.proved() + n.products() + n.squares + len(p.pairing()))
	if p.matrices() {
		// Every row of blocks is multiplied with every column: both parts of both operands are
		// extended to the basis of products and transformed, once for either part of the other
		// operand, and multiplied as matrices. Each sum of products is transformed back and its key
		// is switched three times.
		wide := 2*primes + 1
		rows, inner, cols, d := int64(p.blocks(p.Product.Rows)), int64(p.blocks(p.Product.Inner)), int64(p.blocks(p.Product.Cols)), int64(p.Dim)
		total += rows * inner * cols * d * 4 * wide * (2 + d/32)
		total += rows * cols * d * (4*wide + 3*relinearization)
	}
	total += products * (product*primes + relinearization)
	return total + decryption*int64(p.Decryptions())*int64(p.Instance.DDecPrimes)
}
