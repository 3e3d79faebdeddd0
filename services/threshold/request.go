package threshold

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
)

const (
	requestIDSize = 16
	maxCircuit    = 200
)

// request is a client's request, validated and checked against the policy as it arrives.
type request struct {
	header *thresholdv1.DecryptHeader
	caller rpc.Principal
	epoch  keys.Epoch
	scheme scheme
	quorum []uint32 // numbers of holders
	params decrypt.Params
	rule   config.DecryptRule
	to     hpke.PublicKey // of the recipient, or nil

	asked      decrypt.Question
	batch      ciphertexts
	*intake    // of the ciphertexts, once memory is reserved
	circuit    string
	attester   string
	recipients string // the recipients in the ledger
	spent      uint64 // of the rule's total, once messages have been counted
	call       *job.Call
}

// close releases the memory of the request. q may be nil.
func (q *request) close() {
	if q != nil {
		q.batch.release()
		q.call.Release()
	}
}

// messages returns the number of messages to open.
func (q *request) messages() int { return int(q.header.GetCount()) * q.batch.each() }

// flooding reports whether the ciphertexts are decrypted with flooding.
func (q *request) flooding() bool { return q.header.GetFlooding() }

// room returns the memory of the request in bytes: the upload, the decoded ciphertexts, and some
// words for each message.
func (q *request) room() uint64 {
	message := uint64(512)
	if q.flooding() { // flooding needs no words per message
		message = 0
	}
	return rpc.MaxMessage + uint64(q.batch.size()) + uint64(q.header.GetCount())*q.batch.memory() + uint64(q.messages())*message
}

// roomOf returns the part of room that is needed for the given number of received bytes.
func (q *request) roomOf(bytes int) uint64 {
	return q.room() * uint64(bytes) / max(1, uint64(q.header.GetCount())*uint64(q.batch.size()))
}

// open validates a header and loads the objects that it names.
func (s *Service) open(h *thresholdv1.DecryptHeader, caller rpc.Principal) (*request, error) {
	q := &request{header: h, caller: caller}
	if h == nil || len(h.GetRequestId()) != requestIDSize || len(h.GetCiphertextsDigest()) != sha256.Size {
		return nil, rpc.Errorf(rpc.Invalid, "send the header first, with a request id of 16 bytes and the digest of the ciphertexts, of 32 bytes", "the header, its request id or its digest is missing")
	}
	var err error
	if q.epoch, err = s.held(h.GetEpoch(), false); err != nil {
		return nil, err
	}
	//lodge:check threshold/request/keys [swap=!bytes.Equal(h.GetKeysDigest(),
	//  q.epoch.Digest[:])=>bytes.Equal(nil, q.epoch.Digest[:])] [run=TestRefusals] a ciphertext of
	//  other keys is accepted
	if !bytes.Equal(h.GetKeysDigest(), q.epoch.Digest[:]) {
		return nil, rpc.Errorf(rpc.Foreign, "`lodge keys list` shows the digests; name the epoch whose keys the ciphertexts are under",
			"the request names keys %.8x, but epoch %d has %.8x", h.GetKeysDigest(), q.epoch.ID, q.epoch.Digest)
	}
	if q.scheme, err = s.schemeOf(q.epoch.Params); err != nil {
		return nil, err
	}
	if q.quorum, err = s.numbers(&q.epoch, h.GetQuorum()); err != nil {
		return nil, err
	}
	if err := q.checkForm(); err != nil {
		return nil, err
	}
	if !q.flooding() {
		if q.params, err = q.scheme.params(len(q.quorum), q.form()); err != nil {
			return nil, err
		}
	}
	if err := s.owned(q); err != nil {
		return nil, err
	}
	q.asked = decrypt.Question{
		ID: h.GetRequestId(), Epoch: q.epoch.ID, Keys: q.epoch.Digest, Quorum: h.GetQuorum(), Count: int(h.GetCount()), Each: q.batch.each(),
		Ring: h.GetForm() == thresholdv1.CiphertextForm_CIPHERTEXT_FORM_RING, BGV: h.GetForm() == thresholdv1.CiphertextForm_CIPHERTEXT_FORM_BGV,
		Level: int(h.GetLevel()), Flooding: q.flooding(),
		Paper: q.form() == jobv1.MaskForm_MASK_FORM_PAPER, Recipient: h.GetRecipient(), Ciphertexts: [32]byte(h.GetCiphertextsDigest()),
	}
	for _, x := range h.GetMultikey() {
		q.asked.Multikey = append(q.asked.Multikey, decrypt.KeyOwner{Key: [32]byte(x.GetKey()), Owner: x.GetOwner()})
	}
	return q, s.allow(q)
}

// form returns the form of the masks; the default is exact.
func (q *request) form() jobv1.MaskForm {
	if f := q.header.GetMasks(); f != jobv1.MaskForm_MASK_FORM_UNSPECIFIED {
		return f
	}
	return jobv1.MaskForm_MASK_FORM_EXACT
}

func (q *request) checkForm() error {
	h := q.header
	var err error
	if q.batch, err = q.scheme.ciphertexts(h, q.epoch.Threshold); err != nil {
		return err
	}
	switch {
	case h.GetCount() == 0:
		return rpc.Errorf(rpc.Invalid, "", "no ciphertexts")
	case q.form() != jobv1.MaskForm_MASK_FORM_EXACT && q.form() != jobv1.MaskForm_MASK_FORM_PAPER:
		return rpc.Errorf(rpc.Invalid, "masks are exact or of the paper's form", "masks of form %s", h.GetMasks())
	case len(h.GetMultikey()) > 0 && !q.scheme.own():
		return rpc.Errorf(rpc.Invalid, "", "ciphertexts under threshold keys must not name multi-key keys")
	case len(h.GetProvenance().GetCircuit()) > maxCircuit:
		return rpc.Errorf(rpc.TooLarge, "", "the name of a circuit has at most %d bytes", maxCircuit)
	}
	q.recipients = q.caller.Name
	if len(h.GetRecipient()) > 0 {
		to, err := hpke.MLKEM768X25519().NewPublicKey(h.GetRecipient())
		if err != nil {
			return rpc.Errorf(rpc.Invalid, "send a public key of ML-KEM-768 with X25519, as docs/reference/formats.md says", "the recipient's key of %d bytes is not valid", len(h.GetRecipient()))
		}
		sum := sha256.Sum256(h.GetRecipient())
		q.to, q.recipients = to, fmt.Sprintf("%s/%x", q.caller.Name, sum)
	}
	return nil
}

// allow checks a request against the party's policy.
func (s *Service) allow(q *request) error {
	const next = "the party's operator can change threshold.rules"
	var ok bool
	//lodge:check threshold/policy/rule [run=TestPolicy] a ciphertext is decrypted without a rule
	if q.rule, ok = s.Policy.Rule(q.caller.Name, q.epoch.ID, q.epoch.Digest); !ok {
		return rpc.Errorf(rpc.PolicyRefused, next, "no rule allows client %s to decrypt under epoch %d with keys %.8x", q.caller.Name, q.epoch.ID, q.epoch.Digest)
	}
	// Loading a configuration rejects such rules. A Config that was not loaded from a file must not
	// allow more.
	//lodge:check threshold/unguarded-rule [run=TestUnguardedRuleDecryptsNothing] a rule without a condition on the origin of ciphertexts lets its client read the key
	if fault := q.rule.Fault(); fault != "" {
		return rpc.Errorf(rpc.PolicyRefused, next, "the rule for client %s is not valid: %s", q.caller.Name, fault)
	}
	//lodge:check threshold/policy/messages [swap=uint64(q.rule.MaxMessages)=>1<<62 +
	//  uint64(q.rule.MaxMessages)] [run=TestPolicy] a request is larger than its rule allows
	if n := uint64(q.header.GetCount()) * uint64(q.batch.each()); n > uint64(q.rule.MaxMessages) {
		return rpc.Errorf(rpc.PolicyRefused, "request fewer at a time", "%d messages; client %s may request %d at a time", n, q.caller.Name, q.rule.MaxMessages)
	}
	//lodge:check threshold/policy/flooding [run=TestBGVRefusals] a client without permission uses
	//  flooding
	if q.flooding() && !q.rule.AllowFlooding {
		return rpc.Errorf(rpc.PolicyRefused, next, "client %s may not decrypt with flooding (allow_flooding)", q.caller.Name)
	}
	//lodge:check multikey/rule [run=TestMultikeyPolicy] a rule opens a party's own keys although it
	//  does not say so
	if q.scheme.own() && !q.rule.AllowMultikey {
		return rpc.Errorf(rpc.PolicyRefused, next, "client %s may not decrypt multi-key ciphertexts (allow_multikey)", q.caller.Name)
	}
	//lodge:check threshold/policy/paper [run=TestPolicy] a client without permission uses the
	//  paper's form, which can fail
	if q.form() == jobv1.MaskForm_MASK_FORM_PAPER && !q.rule.AllowPaperForm {
		return rpc.Errorf(rpc.PolicyRefused, next, "client %s may not request the paper's form (allow_paper_form)", q.caller.Name)
	}
	p := q.header.GetProvenance()
	if p.GetAttester() == "" {
		//lodge:check threshold/policy/unsigned [run=TestPolicy] a required signature on the origin
		//  of ciphertexts is not demanded
		if len(q.rule.Provenance) > 0 {
			return rpc.Errorf(rpc.PolicyRefused, "send provenance that one of these attesters has signed", "the provenance of the ciphertexts of client %s must be signed by one of %q", q.caller.Name, q.rule.Provenance)
		}
		return nil
	}
	a, known := s.Policy.Attester(p.GetAttester())
	if !known || len(q.rule.Provenance) > 0 && !slices.Contains(q.rule.Provenance, a.Name) {
		return rpc.Errorf(rpc.PolicyRefused, next, "this rule does not accept the attester %.40q", p.GetAttester())
	}
	//lodge:check threshold/policy/signature [run=TestPolicy] an attester's signature is not
	//  verified
	if !ed25519.Verify(a.Public(), q.asked.Statement(p.GetCircuit()), p.GetSignature()) {
		return rpc.Errorf(rpc.PolicyRefused, "the attester must sign exactly these ciphertexts, for this epoch and circuit", "%s has not signed the provenance of these ciphertexts", a.Name)
	}
	q.attester, q.circuit = a.Name, p.GetCircuit()
	return nil
}

func quorumBytes(quorum []uint32) []byte {
	var b []byte
	for _, p := range quorum {
		b = binary.LittleEndian.AppendUint32(b, p)
	}
	return b
}

// chosen is a selection of a request's messages.
type chosen struct {
	*request
	places []int
}

func (c chosen) Len() int                        { return len(c.places) }
func (c chosen) At(i int) (a []uint64, b uint64) { return c.request.batch.At(c.places[i]) }

// rates counts the messages that are decrypted for each client in an hour.
type rates struct {
	mu   sync.Mutex
	used map[string][]spent
}

type spent struct {
	when time.Time
	n    int
}

// take counts n more messages of a client, or returns an error if its hourly limit does not allow
// that many.
func (r *rates) take(client string, n, most int, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, sum := r.used[client][:0], 0
	for _, x := range r.used[client] {
		if now.Sub(x.when) < time.Hour {
			kept, sum = append(kept, x), sum+x.n
		}
	}
	if r.used == nil {
		r.used = map[string][]spent{}
	}
	r.used[client] = kept
	//lodge:check threshold/policy/rate [run=TestPolicy] a client decrypts more messages per hour
	//  than its rule allows
	if n > most-sum {
		e := rpc.Errorf(rpc.RateLimited, "try again later, or request fewer", "%d messages were decrypted for client %s within the hour, and it may have %d", sum, client, most)
		if len(kept) > 0 && n <= most {
			e.Retry = kept[0].when.Add(time.Hour).Sub(now)
			e.Next = fmt.Sprintf("try again in %s, or request fewer", e.Retry.Round(time.Second))
		}
		return e
	}
	if last := len(kept) - 1; last >= 0 && now.Sub(kept[last].when) < time.Second { // one entry for many calls within a second
		kept[last].n += n
		return nil
	}
	r.used[client] = append(kept, spent{now, n})
	return nil
}
