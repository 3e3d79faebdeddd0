package threshold

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hpke"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"github.com/lodge-mpc/lodge/clients/go/internal/transfer"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
)

// Request describes ciphertexts to decrypt, for [Client.Decrypt]: LWE ciphertexts of one message
// each, or ring or BGV ciphertexts of which the first Coefficients are opened.
type Request struct {
	LWE  []*lwe.LWE
	Ring []*lwe.Ring
	// BGV holds ciphertexts of BGV or BFV, of one level and of degree one.
	BGV          []*rlwe.Ciphertext
	Coefficients int
	// Multikey holds multi-key ciphertexts of one bit each, all under the same keys. Owners maps
	// these keys to their owners' places in the roster. All owners must be in the quorum.
	Multikey []*multikey.Ciphertext
	Owners   map[multikey.KeyID]int
	// Flooding requests decryption of whole BGV ciphertexts with added noise instead of masks,
	// where the parties' policies allow it. A ciphertext stays with one quorum forever, which
	// Result.Quorum names.
	Flooding bool
	// Paper selects masks of the paper's form: two round trips, and a probability of failure.
	Paper bool
	// Quorum lists the parties that decrypt, by their places in the roster; nil lets the client
	// choose among those that are up and have masks in stock.
	Quorum []int
	// Recipient is the public key to which the parties seal their answers; nil means this client.
	Recipient hpke.PublicKey
	// Circuit and Attester describe the origin of the ciphertexts, signed with Sign, for policies
	// that require it.
	Circuit, Attester string
	Signature         []byte

	encoded []byte           // set by encode
	digest  [32]byte         // of the encodings
	level   int              // of BGV ciphertexts
	keys    []multikey.KeyID // of multi-key ciphertexts
	owners  []int            // of these keys
}

// Digest returns the name of the ciphertexts: the SHA-256 of the SHA-256 of each encoding.
func (r *Request) Digest(k *Key) ([32]byte, error) {
	if _, err := r.encode(k); err != nil {
		return [32]byte{}, err
	}
	return r.digest, nil
}

// Sign signs the origin of a request's ciphertexts, as an attester that the parties' policies name.
func (r *Request) Sign(k *Key, attester, circuit string, key ed25519.PrivateKey) error {
	q, err := r.question(k, nil)
	if err != nil {
		return err
	}
	r.Attester, r.Circuit = attester, circuit
	r.Signature = ed25519.Sign(key, q.Statement(circuit))
	return nil
}

// encode validates the ciphertexts and returns their concatenated encodings.
func (r *Request) encode(k *Key) ([]byte, error) {
	if r.encoded != nil {
		return r.encoded, nil
	}
	b, err := r.encodings(k)
	if err != nil {
		return nil, err
	}
	r.encoded, r.digest = b, decrypt.CiphertextsDigest(b, len(b)/(len(r.LWE)+len(r.Ring)+len(r.BGV)+len(r.Multikey)))
	return b, nil
}

func (r *Request) encodings(k *Key) ([]byte, error) {
	kinds := min(len(r.LWE), 1) + min(len(r.Ring), 1) + min(len(r.BGV), 1) + min(len(r.Multikey), 1)
	if kinds != 1 {
		return nil, lodge.Errorf(lodge.Invalid, "give ciphertexts of one kind", "%d LWE, %d ring, %d BGV and %d multi-key ciphertexts", len(r.LWE), len(r.Ring), len(r.BGV), len(r.Multikey))
	}
	if len(r.Multikey) > 0 {
		return r.encodeMultikey(k)
	}
	if len(r.BGV) > 0 {
		return r.encodeBGV(k)
	}
	if err := k.isLWE(); err != nil {
		return nil, err
	}
	if r.Flooding {
		return nil, lodge.Errorf(lodge.Invalid, "leave it out", "LWE and ring ciphertexts are decrypted without flooding")
	}
	if len(r.Ring) > 0 && (r.Coefficients < 1 || r.Coefficients > k.scheme.N()) {
		return nil, lodge.Errorf(lodge.Invalid, fmt.Sprintf("from 1 to %d coefficients of each can be opened", k.scheme.N()), "%d coefficients", r.Coefficients)
	}
	var b []byte
	for i, c := range r.LWE {
		if err := k.scheme.Check(c); err != nil {
			return nil, lodge.Errorf(lodge.Invalid, "", "ciphertext %d: %v", i, err)
		}
		b = k.scheme.AppendLWE(b, c)
	}
	for i, c := range r.Ring {
		if err := k.scheme.CheckRing(c); err != nil {
			return nil, lodge.Errorf(lodge.Invalid, "", "ciphertext %d: %v", i, err)
		}
		b = k.scheme.AppendRing(b, c)
	}
	return b, nil
}

func (r *Request) form() string {
	if r.Paper {
		return "paper"
	}
	return "exact"
}

// question returns the request to a quorum.
func (r *Request) question(k *Key, quorum []int) (*decrypt.Question, error) {
	digest, err := r.Digest(k)
	if err != nil {
		return nil, err
	}
	q := &decrypt.Question{
		ID: make([]byte, 16), Epoch: k.Epoch, Keys: k.Digest, Count: len(r.LWE), Each: 1, Paper: r.Paper, Ciphertexts: digest,
	}
	rand.Read(q.ID)
	for _, p := range quorum {
		q.Quorum = append(q.Quorum, uint32(p))
	}
	if len(r.Ring) > 0 {
		q.Ring, q.Count, q.Each = true, len(r.Ring), r.Coefficients
	}
	if len(r.BGV) > 0 {
		q.BGV, q.Count, q.Each, q.Level, q.Flooding = true, len(r.BGV), r.Coefficients, r.level, r.Flooding
		if r.Flooding {
			q.Each = k.bgv.N()
		}
	}
	if len(r.Multikey) > 0 {
		r.multikeyQuestion(q)
	}
	if r.Recipient != nil {
		q.Recipient = r.Recipient.Bytes()
	}
	return q, nil
}

// Answers holds the answers of a quorum's parties: sealed to a recipient other than the client, or
// in plaintext.
type Answers struct {
	Epoch     uint64            `json:"epoch"`
	Params    string            `json:"params"`
	Threshold int               `json:"threshold"`
	Question  *decrypt.Question `json:"question"`
	Sealed    bool              `json:"sealed"`
	Parts     [][]byte          `json:"parts"` // in the order of the quorum
	// Ciphertexts holds the encodings of BGV ciphertexts, which are needed to decode the answers.
	Ciphertexts []byte `json:"ciphertexts,omitempty"`
}

// Result is the result of [Client.Decrypt].
type Result struct {
	// Messages is nil if the answers are sealed to another recipient. For BGV ciphertexts it holds
	// coefficients, one ciphertext after the other; Key.Slots converts those of whole ciphertexts.
	Messages []uint64
	Quorum   []int
	Answers  *Answers
}

// attempts is the maximal number of quorums to try; quorums refused because a ciphertext already
// has another one do not count.
const attempts = 8

// Decrypt has a quorum decrypt. If one of its parties cannot be reached, or its masks run out, it
// tries another quorum. The parties of a quorum give the same answers to a repeated request of the
// same client for the same ciphertexts.
func (c *Client) Decrypt(ctx context.Context, k *Key, r *Request) (*Result, error) {
	if _, err := r.encode(k); err != nil {
		return nil, err
	}
	failures := map[int]int{}  // of parties, in this call
	empty := map[string]bool{} // quorums without enough masks
	var last error
	for attempt := 0; attempt < attempts; attempt++ {
		quorum, err := choose(k, r, failures, empty)
		if err == nil {
			var answers *Answers
			var failed int
			if answers, failed, err = c.askQuorum(ctx, k, r, quorum); err == nil {
				out, err := answers.result(k, r, quorum)
				if errors.Is(err, decrypt.ErrRuns) { // a party lost its answer meanwhile; a repeated request makes the answers agree
					last = err
					continue
				}
				return out, err
			}
			if failed >= 0 {
				failures[failed]++
			}
			if lodge.FromError(err).Code == lodge.OutOfStock && r.Quorum == nil {
				empty[fmt.Sprint(quorum)] = true
				last = err
				continue // without a pause
			}
			if lodge.FromError(err).Code == wrongQuorum && r.Flooding && r.Quorum == nil && len(empty) < 64 { // the next quorum may be the right one
				empty[fmt.Sprint(quorum)] = true
				if _, none := choose(k, r, failures, empty); none == nil {
					last = err
					attempt--
					continue
				}
			}
		}
		if last = err; !worthAnother(err, k, r) || attempt == attempts-1 {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(attempt)*pause + jitter()):
		case <-ctx.Done():
			return nil, err
		}
		now, err := c.Key(ctx, k.Epoch) // the stock, and the parties that are up, have changed
		if err != nil {
			return nil, errors.Join(err, last)
		}
		k = now
	}
	return nil, last
}

// jitter separates clients that send the same request at the same time.
func jitter() time.Duration {
	var b [1]byte
	rand.Read(b[:])
	return time.Duration(b[0]) * time.Millisecond
}

// pause is the increase of the delay from one attempt to the next.
const pause = 200 * time.Millisecond

// result combines the answers, unless they are sealed to another recipient.
func (a *Answers) result(k *Key, r *Request, quorum []int) (*Result, error) {
	out := &Result{Quorum: quorum, Answers: a}
	if r.Recipient != nil {
		return out, nil
	}
	var err error
	out.Messages, err = a.combine()
	return out, err
}

// choose returns a quorum: the requested one, or among those whose members are up one whose members
// failed least in this call, and of these the one with most masks. If no quorum has masks, it
// returns one that has not been tried yet and may have answered before: repeated answers need no
// masks.
func choose(k *Key, r *Request, failures map[int]int, empty map[string]bool) ([]int, error) {
	if r.Quorum != nil {
		return r.Quorum, nil
	}
	if r.Flooding {
		return chooseFlooding(k, failures, empty)
	}
	if len(r.Multikey) > 0 {
		return chooseOwners(k, r, failures, empty)
	}
	best := k.bestMasks(r.form(), nil, failures, empty)
	if best == nil && slices.ContainsFunc(k.Up, func(p int) bool { return k.Decrypted[p] > 0 }) {
		for q := range k.quorums(k.Up) {
			if !empty[fmt.Sprint(q)] {
				return q, nil
			}
		}
	}
	if best == nil {
		return nil, &lodge.Error{Code: lodge.OutOfStock, What: fmt.Sprintf("no quorum of epoch %d whose parties are up (%v) has %s masks", k.Epoch, k.Up, r.form()),
			Next: fmt.Sprintf("create masks with `lodge keys masks %d`", k.Epoch)}
	}
	return best.Quorum, nil
}

// bestMasks returns masks in stock of a quorum that includes the given parties, or nil: among the
// smallest quorums those whose members failed least in this call, and of these the one with most
// masks.
func (k *Key) bestMasks(form string, owners []int, failures map[int]int, empty map[string]bool) (best *Masks) {
	order := func(a, b *Masks) int {
		return cmp.Or(cmp.Compare(len(a.Quorum), len(b.Quorum)),
			cmp.Compare(mostFailures(a.Quorum, failures), mostFailures(b.Quorum, failures)), cmp.Compare(b.Free, a.Free))
	}
	for i := range k.Masks {
		m := &k.Masks[i]
		within := !slices.ContainsFunc(owners, func(p int) bool { return !slices.Contains(m.Quorum, p) })
		if within && m.Form == form && m.Free > 0 && !empty[fmt.Sprint(m.Quorum)] && (best == nil || order(m, best) < 0) {
			best = m
		}
	}
	return best
}

// mostFailures returns the number of failures of the quorum's member that failed most.
func mostFailures(quorum []int, failures map[int]int) (most int) {
	for _, p := range quorum {
		most = max(most, failures[p])
	}
	return most
}

// quorums yields the quorums of the given parties in lexicographic order.
func (k *Key) quorums(parties []int) iter.Seq[[]int] {
	parties = slices.Sorted(slices.Values(parties))
	return func(yield func([]int) bool) {
		var next func(have, from []int) bool
		next = func(have, from []int) bool {
			if len(have) == k.Threshold+1 {
				return yield(have)
			}
			for i, p := range from {
				if !next(append(slices.Clone(have), p), from[i+1:]) {
					return false
				}
			}
			return true
		}
		next(nil, parties)
	}
}

// maskSpent is the code of parties that disagree about their stock: the next attempt proposes other
// masks.
const maskSpent lodge.Code = "mask_spent"

// worthAnother reports whether another attempt can succeed. It cannot if masks are missing, unless
// a party that has some may be back.
func worthAnother(err error, k *Key, r *Request) bool {
	switch lodge.FromError(err).Code {
	case lodge.OutOfStock:
		return r.Quorum == nil && len(k.Up) < len(k.Holders)
	case lodge.Unavailable, lodge.TimedOut, lodge.Busy, lodge.Quarantined, lodge.Stopped, lodge.Excluded, maskSpent:
		return true
	}
	return false
}

// askQuorum sends a request to all parties of a quorum concurrently. If one fails, it does not wait
// for the others; failed is the party whose error is most informative.
func (c *Client) askQuorum(ctx context.Context, k *Key, r *Request, quorum []int) (*Answers, int, error) {
	q, err := r.question(k, quorum)
	if err != nil {
		return nil, -1, err
	}
	most, err := mostAnswer(k, q)
	if err != nil {
		return nil, -1, err
	}
	most += sealOverhead
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &Answers{Epoch: k.Epoch, Params: k.Params, Threshold: k.Threshold, Question: q, Sealed: r.Recipient != nil, Parts: make([][]byte, len(quorum))}
	if q.BGV {
		out.Ciphertexts = r.encoded
	}
	errs := make([]error, len(quorum))
	var group sync.WaitGroup
	for i, p := range quorum {
		if p < 0 || p >= c.parties.Len() {
			return nil, -1, lodge.Errorf(lodge.Invalid, "parties count from 0", "there is no party %d among %d", p, c.parties.Len())
		}
		group.Go(func() {
			if out.Parts[i], errs[i] = c.askParty(ctx, p, r, q, most); errs[i] != nil {
				time.AfterFunc(grace, cancel) // other parties may know the cause
			}
		})
	}
	group.Wait()
	worst := -1
	for i, err := range errs {
		if err != nil && (worst < 0 || weight(err) > weight(errs[worst])) {
			worst = i
		}
	}
	if worst >= 0 {
		return nil, quorum[worst], c.parties.Failed(quorum[worst], errs[worst])
	}
	return out, -1, nil
}

// grace is how long the client waits for other parties' errors after a failure.
const grace = 300 * time.Millisecond

// sealOverhead is the number of bytes that sealing adds to an answer.
const sealOverhead = 2048

// weight ranks errors by how informative they are about the cause.
func weight(err error) int {
	switch lodge.FromError(err).Code {
	case lodge.Cancelled:
		return 0
	case lodge.Unavailable, lodge.TimedOut:
		return 1
	}
	return 2
}

// askParty sends a request to one party and collects its answer.
func (c *Client) askParty(ctx context.Context, party int, r *Request, q *decrypt.Question, most int) ([]byte, error) {
	stream, err := thresholdv1.NewThresholdServiceClient(c.parties.Conn(party)).Decrypt(ctx)
	if err != nil {
		return nil, err
	}
	h := &thresholdv1.DecryptHeader{
		RequestId: q.ID, Epoch: q.Epoch, KeysDigest: q.Keys[:], Quorum: q.Quorum, Form: thresholdv1.CiphertextForm_CIPHERTEXT_FORM_LWE, Count: uint32(q.Count),
		Masks: forms[r.form()], Recipient: q.Recipient, CiphertextsDigest: q.Ciphertexts[:],
	}
	if q.Ring {
		h.Form, h.Coefficients = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_RING, uint32(q.Each)
	}
	if q.BGV {
		h.Form, h.Coefficients, h.Level, h.Flooding = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_BGV, uint32(q.Each), uint32(q.Level), q.Flooding
	}
	for _, x := range q.Multikey {
		h.Form = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_MULTIKEY
		h.Multikey = append(h.Multikey, &thresholdv1.KeyOwner{Key: x.Key[:], Owner: x.Owner})
	}
	if q.Flooding {
		h.Coefficients, h.Masks = 0, jobv1.MaskForm_MASK_FORM_UNSPECIFIED
	}
	if r.Attester != "" {
		h.Provenance = &thresholdv1.Provenance{Attester: r.Attester, Circuit: r.Circuit, Signature: r.Signature}
	}
	send := transfer.To(stream)
	send.Send(&thresholdv1.DecryptRequest{Header: h})
	send.Bytes(r.encoded, func(b []byte) *thresholdv1.DecryptRequest {
		return &thresholdv1.DecryptRequest{Ciphertexts: b}
	})
	if err := send.Close(); err != nil {
		return nil, err
	}
	answer, err := transfer.Collect(stream.Recv, most)
	if err == nil && len(answer) > most {
		err = &lodge.Error{Code: lodge.Internal, What: fmt.Sprintf("an answer of more than %d bytes", most)}
	}
	return answer, err
}

// combine returns the plaintexts of unsealed answers.
func (a *Answers) combine() ([]uint64, error) {
	if a.Question.BGV {
		return a.combineBGV()
	}
	if len(a.Question.Multikey) > 0 {
		return a.combineMultikey()
	}
	scheme, err := schemeOf(a.Params)
	if err != nil {
		return nil, err
	}
	params, err := decrypt.ParamsOf(scheme, a.Threshold, a.Question.Paper)
	if err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "", "%v", err)
	}
	return a.plaintexts(params)
}

// plaintexts adds up the words of all answers.
func (a *Answers) plaintexts(params decrypt.Params) (_ []uint64, err error) {
	count := a.Question.Count * a.Question.Each
	parts := make([][]decrypt.Part, len(a.Parts))
	for i, b := range a.Parts {
		if parts[i], err = decrypt.DecodeAnswer(params, count, b); err != nil {
			return nil, fmt.Errorf("threshold: answer of party %d: %w", a.Question.Quorum[i], err)
		}
		defer decrypt.Wipe(parts[i])
	}
	return decrypt.Plaintexts(params, parts)
}
