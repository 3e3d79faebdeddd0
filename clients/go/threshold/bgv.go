package threshold

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvdecrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
)

// Prepared BGV schemes of the sets used so far.
var bgvSchemes sync.Map // of *bgv.Scheme, by name

// bgvOf prepares a set of BGV; it returns nil if there is no set with this name.
func bgvOf(name string) (*bgv.Scheme, error) {
	if known, ok := bgvSchemes.Load(name); ok {
		return known.(*bgv.Scheme), nil
	}
	set, err := bgv.Lookup(name)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // it may be a set of package lwe
	}
	scheme, err := bgv.New(set)
	if err == nil {
		bgvSchemes.Store(name, scheme)
	}
	return scheme, err
}

// BGV returns the scheme of the keys' parameter set if it is a set of BGV and BFV, and nil
// otherwise.
func (k *Key) BGV() *bgv.Scheme { return k.bgv }

// Slots returns the slots of a message given by all its coefficients, in Lattigo's encoding.
func (k *Key) Slots(coefficients []uint64) ([]uint64, error) {
	if k.bgv == nil || len(coefficients) != k.bgv.N() {
		return nil, lodge.Errorf(lodge.Invalid, "", "%d coefficients under keys of %s are not a message with slots", len(coefficients), k.Params)
	}
	return k.bgv.Slots(coefficients)
}

// isBGV returns an error for keys that are not of BGV.
func (k *Key) isBGV() error {
	if k.bgv == nil {
		return lodge.Errorf(lodge.Invalid, "use keys of a BGV set", "%s is not a set of BGV", k.Params)
	}
	return nil
}

// isLWE returns an error for keys that are not of package lwe.
func (k *Key) isLWE() error {
	if k.multikey != nil {
		return lodge.Errorf(lodge.Invalid, "use the package multikey", "%s is a set for multi-key ciphertexts", k.Params)
	}
	if k.scheme == nil {
		return lodge.Errorf(lodge.Invalid, "use the calls for BGV", "%s is a set of BGV", k.Params)
	}
	return nil
}

// BGVPublicKey downloads the public key of an epoch of BGV keys, in Lattigo's type, from one of the
// holders, and refuses a key that does not have the digest on which the holders agree.
func (c *Client) BGVPublicKey(ctx context.Context, k *Key) (*rlwe.PublicKey, error) {
	if err := k.isBGV(); err != nil {
		return nil, err
	}
	head, chunk, err := c.first(ctx, k)
	if err != nil {
		return nil, err
	}
	return k.bgv.ReceivePublicKey(k.Digest, head.Header, head.Digests, chunk)
}

// BGVKeys downloads all public keys of an epoch of BGV keys, which allow anyone to compute on its
// ciphertexts: in Lattigo's types, the public key, and the keys for relinearisation and for the
// supported automorphisms. It resumes like EvaluationKeys.
func (c *Client) BGVKeys(ctx context.Context, k *Key, progress func(done, of int)) (*rlwe.PublicKey, *rlwe.MemEvaluationKeySet, error) {
	if err := k.isBGV(); err != nil {
		return nil, nil, err
	}
	in, err := c.all(ctx, k, progress)
	if err != nil {
		return nil, nil, err
	}
	keys, err := in.(*bgv.Receiver).Finish(k.Digest)
	if err != nil {
		return nil, nil, err
	}
	public, evaluation := k.bgv.KeysToLattigo(keys)
	return public, evaluation, nil
}

// encodeBGV validates BGV ciphertexts and returns their concatenated encodings.
func (r *Request) encodeBGV(k *Key) ([]byte, error) {
	if err := k.isBGV(); err != nil {
		return nil, err
	}
	switch {
	case r.Paper:
		return nil, lodge.Errorf(lodge.Invalid, "ask for exact masks", "BGV does not support masks of the paper's form")
	case r.Flooding && r.Coefficients != 0:
		return nil, lodge.Errorf(lodge.Invalid, "leave out coefficients", "flooding decrypts whole ciphertexts, but %d coefficients of each are requested", r.Coefficients)
	case !r.Flooding && (r.Coefficients < 1 || r.Coefficients > k.bgv.N()):
		return nil, lodge.Errorf(lodge.Invalid, fmt.Sprintf("from 1 to %d are opened of each under masks, or all with flooding", k.bgv.N()), "%d coefficients", r.Coefficients)
	}
	var b []byte
	for i, ct := range r.BGV {
		c, err := k.bgv.FromLattigo(ct)
		if err != nil {
			return nil, lodge.Errorf(lodge.Invalid, "have it relinearised first", "ciphertext %d: %v", i, err)
		}
		if i == 0 {
			r.level = c.Level
		}
		if c.Level != r.level {
			return nil, lodge.Errorf(lodge.Invalid, "use one request for the ciphertexts of each level", "ciphertext %d is of level %d, but the first one is of level %d", i, c.Level, r.level)
		}
		b = append(b, k.bgv.EncodeCiphertext(c)...)
	}
	return b, nil
}

// wrongQuorum is the code of parties that have answered for a ciphertext in another quorum.
const wrongQuorum lodge.Code = "wrong_quorum"

// chooseFlooding returns a quorum of the holders that are up: among those that were not refused,
// the first one whose members failed least in this call. Without failures it is always the same
// quorum, because a ciphertext stays with its quorum.
func chooseFlooding(k *Key, failures map[int]int, refused map[string]bool) ([]int, error) {
	up := k.Flooders
	if len(up) <= k.Threshold { // the parties report the reason
		up = k.Up
	}
	var best []int
	for q := range k.quorums(up) {
		if !refused[fmt.Sprint(q)] && (best == nil || mostFailures(q, failures) < mostFailures(best, failures)) {
			best = q
		}
	}
	if best == nil {
		return nil, &lodge.Error{Code: lodge.Unavailable, What: fmt.Sprintf("no other quorum of epoch %d is up (%v)", k.Epoch, k.Up), Next: "start its parties"}
	}
	return best, nil
}

// mostAnswer returns the maximal size of an answer to a question, in bytes.
func mostAnswer(k *Key, q *decrypt.Question) (int, error) {
	if q.Flooding {
		f, err := bgvdecrypt.NewFlooding(k.bgv, k.Threshold+1)
		if err != nil {
			return 0, lodge.Errorf(lodge.Invalid, "open coefficients under masks", "%v", err)
		}
		return q.Count * f.AnswerSize(), nil
	}
	params, err := k.MaskParams(len(q.Quorum), q.Paper)
	if err != nil {
		return 0, lodge.Errorf(lodge.Invalid, "", "%v", err)
	}
	return decrypt.MaxAnswer(params, q.Count*q.Each), nil
}

// combineBGV returns the coefficients of messages from plaintext answers.
func (a *Answers) combineBGV() ([]uint64, error) {
	s, err := bgvOf(a.Params)
	if err != nil || s == nil {
		return nil, lodge.Errorf(lodge.Invalid, "use the release of Lodge that the parties run", "%s is not a set of BGV: %v", a.Params, err)
	}
	q := a.Question
	list, err := a.decoded(s)
	if err != nil {
		return nil, err
	}
	if q.Flooding {
		return a.combineFlooding(s, list)
	}
	degrees := make([]int, q.Each)
	for k := range degrees {
		degrees[k] = k
	}
	chosen := make([]bgvdecrypt.Chosen, len(list))
	for i, c := range list {
		chosen[i] = bgvdecrypt.Chosen{Ciphertext: c, Degrees: degrees}
	}
	selected, err := bgvdecrypt.Select(s, chosen)
	if err != nil {
		return nil, err
	}
	params, err := bgvdecrypt.Params(s, a.Threshold)
	if err != nil {
		return nil, err
	}
	opened, err := a.plaintexts(params)
	if err != nil {
		return nil, err
	}
	defer clear(opened)
	return slices.Concat(selected.Messages(opened)...), nil
}

// decoded returns the ciphertexts to which the answers belong.
func (a *Answers) decoded(s *bgv.Scheme) (list []*bgv.Ciphertext, err error) {
	q := a.Question
	if q.Level < 0 || q.Level > s.MaxLevel() || q.Each < 1 || q.Each > s.N() || q.Flooding && q.Each != s.N() || len(a.Ciphertexts) != q.Count*s.CiphertextSize(q.Level) ||
		decrypt.CiphertextsDigest(a.Ciphertexts, s.CiphertextSize(q.Level)) != q.Ciphertexts {
		return nil, lodge.Errorf(lodge.Invalid, "", "the answers come without their ciphertexts")
	}
	for encoded := range slices.Chunk(a.Ciphertexts, s.CiphertextSize(q.Level)) {
		c, err := s.DecodeCiphertext(encoded)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

func (a *Answers) combineFlooding(s *bgv.Scheme, list []*bgv.Ciphertext) ([]uint64, error) {
	f, err := bgvdecrypt.NewFlooding(s, a.Threshold+1)
	if err != nil {
		return nil, err
	}
	size := f.AnswerSize()
	for i, p := range a.Parts {
		if len(p) != len(list)*size {
			return nil, fmt.Errorf("threshold: answer of party %d: %w: %d bytes for %d ciphertexts", a.Question.Quorum[i], bgvdecrypt.ErrAnswers, len(p), len(list))
		}
	}
	var out []uint64
	for i, c := range list {
		parts := make([][]byte, len(a.Parts))
		for p := range parts {
			parts[p] = a.Parts[p][i*size : (i+1)*size]
		}
		message, err := f.CombineFlooding(c, i, parts)
		if err != nil {
			return nil, err
		}
		out = append(out, message...)
	}
	return out, nil
}
