// Package evaluator lets other processes of the same party compute the products of its batches and
// the rotations of multi-key ciphertexts (lodge.evaluator.v1). It implements the service of such a
// process, and the pool with which a party sends tasks to these processes.
//
// An evaluator has no secrets. It receives public ciphertexts, and keeps public keys under the
// digest of their bytes, which it computes itself. It serves one party.
//
// A party must decrypt only correctly computed ciphertexts: otherwise its share of the decryption
// leaks information about its key. Unless the configuration trusts the evaluators, the pool
// therefore returns only results that two evaluators of different domains computed identically, bit
// for bit, or that the party computed itself. If a result differs from the party's own, its
// evaluator is excluded and receives no further requests.
package evaluator

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// nonceSize is the length in bytes of the nonce that distinguishes requests.
const nonceSize = 16

// header writes a task's shape into a header.
func header(h *evaluatorv1.EvaluateHeader, s *evaluation.Shape) {
	h.Inputs, h.Rows, h.Inner, h.Columns, h.Dim = uint32(s.Count), uint32(s.Rows), uint32(s.Inner), uint32(s.Cols), uint32(s.Dim)
	for _, p := range s.Pairs {
		h.Pairs = append(h.Pairs, &evaluatorv1.Pair{Left: uint32(p.Left), Right: uint32(p.Right)})
	}
	h.First, h.Last, h.Primes = uint32(s.First), uint32(s.Last), uint32(s.Primes)
}

// shape reads a task's shape from a header and validates it under the scheme.
func shape(h *evaluatorv1.EvaluateHeader, of *gbfv.Scheme) (evaluation.Shape, error) {
	s := evaluation.Shape{
		Count: int(h.GetInputs()), Rows: int(h.GetRows()), Inner: int(h.GetInner()), Cols: int(h.GetColumns()), Dim: int(h.GetDim()),
		First: int(h.GetFirst()), Last: int(h.GetLast()), Primes: int(h.GetPrimes()),
	}
	for _, p := range h.GetPairs() {
		s.Pairs = append(s.Pairs, evaluation.Pair{Left: int(p.GetLeft()), Right: int(p.GetRight())})
	}
	return s, s.Check(of)
}

// requestDigest returns a digest that binds all fields of a header.
func requestDigest(h *evaluatorv1.EvaluateHeader) round.Digest {
	//lodge:check evaluator/bound/keys [drop=h.GetKeysDigest()] [run=TestEveryField] an answer under
	//  other keys is accepted
	fields := [][]byte{h.GetNonce(), []byte(h.GetParams()), h.GetParamsHash(), []byte(h.GetField()), h.GetKeysDigest(), h.GetMacKeyDigest()}
	for _, v := range []uint32{
		h.GetInputs(), h.GetRows(), h.GetInner(), h.GetColumns(), h.GetDim(), h.GetFirst(), h.GetLast(), h.GetPrimes(), uint32(len(h.GetPairs())),
	} {
		fields = append(fields, round.Uint(uint64(v)))
	}
	for _, p := range h.GetPairs() {
		//lodge:check evaluator/bound/pairs [drop=round.Uint(uint64(p.GetRight()))]
		//  [run=TestEveryField] an answer to other products is accepted
		fields = append(fields, round.Uint(uint64(p.GetLeft())), round.Uint(uint64(p.GetRight())))
	}
	return round.Hash("lodge evaluation", fields...)
}

// rotateDigest returns a digest that binds all fields of a request for rotations.
func rotateDigest(q *evaluatorv1.RotateRequest) round.Digest {
	fields := [][]byte{
		q.GetNonce(), []byte(q.GetParams()), q.GetParamsHash(), q.GetKey(), q.GetKind(), round.Uint(uint64(len(q.GetExponents()))),
	}
	return round.Hash("lodge rotations", append(fields, q.GetExponents()...)...)
}

// checkDigest returns an error unless b has the length of a digest.
func checkDigest(what string, b []byte) error {
	if len(b) != len(round.Digest{}) {
		return rpc.Errorf(rpc.Invalid, "", "%s of %d bytes, not %d", what, len(b), len(round.Digest{}))
	}
	return nil
}

// MACKeyDigest returns the digest of the ciphertext of a MAC key, given the two frames of its
// encoding.
func MACKeyDigest(frames [2][]byte) round.Digest {
	return round.Hash("lodge mac key ciphertext", frames[0], frames[1])
}

// keysBytes returns the memory of evaluation keys in bytes.
func keysBytes(s *gbfv.Scheme, dim int) int64 {
	return int64(keygen.EncodedFrames(s, dim)) * int64(s.N()) * int64(s.Q.Len()) * 8
}

// operandBytes returns the memory of a MAC key prepared for products, in bytes.
func operandBytes(s *gbfv.Scheme) int64 { return 2 * int64(s.N()) * int64(s.Full.Len()) * 8 }

// polynomials returns the polynomials of ciphertexts, c0 before c1.
func polynomials(list []*gbfv.Ciphertext) (all []ring.Poly) {
	for _, ct := range list {
		all = append(all, ct.C0, ct.C1)
	}
	return all
}

// reader decodes ciphertexts on the basis of the first k primes from frames of one polynomial each.
type reader struct {
	basis *ring.Basis
	want  int // number of polynomials
	list  []*gbfv.Ciphertext
	half  *ring.Poly // c0 of the ciphertext whose c1 is missing
}

func newReader(s *gbfv.Scheme, k, ciphertexts int) *reader {
	return &reader{basis: s.Prefix(k), want: 2 * ciphertexts}
}

// frame decodes the next polynomial.
func (r *reader) frame(b []byte) error {
	//lodge:check evaluator/results/more [run=TestAReaderTakesNoMore] more polynomials arrive than
	//  were requested
	if r.done() {
		return fmt.Errorf("evaluator: more than %d polynomials", r.want)
	}
	p := r.basis.Borrow()
	if err := codec.DecodePoly(p.C, r.basis.Primes(), b); err != nil {
		p.Free()
		return fmt.Errorf("evaluator: polynomial %d: %w", r.read(), err)
	}
	if r.half == nil {
		r.half = &p
		return nil
	}
	r.list = append(r.list, &gbfv.Ciphertext{C0: *r.half, C1: p})
	r.half = nil
	return nil
}

func (r *reader) read() int {
	n := 2 * len(r.list)
	if r.half != nil {
		n++
	}
	return n
}

func (r *reader) done() bool { return r.read() == r.want }

// free releases the memory of the decoded polynomials.
func (r *reader) free() {
	evaluation.Free(r.list)
	if r.half != nil {
		r.half.Free()
	}
	r.list, r.half = nil, nil
}
