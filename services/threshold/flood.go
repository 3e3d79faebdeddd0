package threshold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvdecrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/keyring"
	"github.com/lodge-mpc/lodge/services/plan"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/vault"
)

// Whole ciphertexts are decrypted with flooding by one quorum, for one client and recipient. A run
//
//	agrees which of the ciphertexts all parties have answers to
//	begins: what is left is durably this quorum's, and counted, before a share of the key is used
//	makes the answers, and has them durable
//	hears that those of all parties are
//
// and only then they are released, durably, and leave. So a party that fails in the middle leaves its quorum with answers
// that never left, and the next run makes others.

// flood is this party's part of the decryption of a request with flooding.
type flood struct {
	*Service
	*request
	bgv   *bgvCiphertexts
	held  []vault.Flood
	fresh []int // places of the ciphertexts that are decrypted in this run
	run   vault.FloodRun
	why   *rpc.Error // of this party's own, the run has ended
	done  func()     // with what is claimed
}

func (f *flood) wipe() {
	if f.done != nil {
		f.done()
	}
	for _, a := range f.held {
		clear(a.Answer)
	}
}

// claims are ciphertexts of requests that are under way: what one request has begun another neither looks up nor begins anew
// before that is over, for other parties may have released it.
type claims struct {
	mu   sync.Mutex
	open map[[32]byte]bool
}

// free refuses ciphertexts that another request has claimed.
func (c *claims) free(digests [][32]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refuse(digests)
}

// refuse is free while c.mu is held.
func (c *claims) refuse(digests [][32]byte) error {
	for i, d := range digests {
		//lodge:check threshold/flood/claim [run=TestClaims] two requests answer for one ciphertext
		//  at the same time
		if c.open[d] {
			return rpc.Errorf(rpc.Busy, "ask again", "another request for ciphertext %d is under way", i)
		}
	}
	return nil
}

// claim takes ciphertexts, all or none, until done is called.
func (c *claims) claim(digests [][32]byte) (done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refuse(digests); err != nil {
		return nil, err
	}
	if c.open == nil {
		c.open = map[[32]byte]bool{}
	}
	for _, d := range digests {
		c.open[d] = true
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, d := range digests {
			delete(c.open, d)
		}
	}, nil
}

// spentNext says what is left to do when a key has decrypted its limit.
const spentNext = "open coefficients under masks, or `lodge keys generate` makes other keys"

// refusedFlood turns a refusal of the ledger into an error for the caller.
func (q *request) refusedFlood(err error) error {
	switch {
	case errors.Is(err, vault.ErrSpent):
		if q.epoch.Limit == 0 {
			return rpc.Errorf(rpc.Burnt, "ask those who held shares when the keys were made, or open coefficients under masks",
				"of the keys of epoch %d this party answers for no ciphertexts with flooding: new shares bring none", q.epoch.ID)
		}
		return rpc.Errorf(rpc.Burnt, spentNext, "the keys of epoch %d have answered for as many ciphertexts with flooding as they may at this party", q.epoch.ID)
	case errors.Is(err, vault.ErrDelivered):
		return rpc.Errorf(rpc.Delivered, "a ciphertext is decrypted for one client and recipient", "one of these was decrypted for another client or recipient")
	}
	var quorum *vault.QuorumError
	if errors.As(err, &quorum) {
		return rpc.Errorf(rpc.WrongQuorum, "ask those, or encrypt anew", "a ciphertext is decrypted with flooding by one quorum, and one of these by the holders %v of epoch %d", quorum.Quorum, q.epoch.ID)
	}
	return keyring.Refused(err, "this decryption")
}

// flood gives this party's answers to ciphertexts that are decrypted with flooding.
func (s *Service) flood(ctx context.Context, q *request) ([]byte, error) {
	all := vault.FloodRun{Epoch: q.epoch.ID, Quorum: q.quorum, Client: q.recipients, Digests: q.digests}
	f := &flood{Service: s, request: q, bgv: q.batch.(*bgvCiphertexts), run: all}
	defer f.wipe()
	if err := f.lookUp(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(f.held, func(a vault.Flood) bool { return a.Answer == nil }) {
		if err := s.approved(q); err != nil { // nobody else need hear of it before
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := f.drive(ctx); err != nil {
		if f.why != nil {
			return nil, f.why
		}
		return nil, refusal(err)
	}
	if err := s.Vault.ReleaseFloods(all, f.held); err != nil {
		return nil, q.refusedFlood(err)
	}
	outcome := "repeated"
	if len(f.fresh) > 0 {
		outcome = "answered"
	}
	s.Sessions.Metrics.Decryption(outcome)
	s.Sessions.Metrics.ThresholdMessages("flooding", len(f.fresh)*q.batch.each())
	if err := s.note(q, fmt.Sprintf("%s with flooding: %d ciphertexts, %d of them for the first time, %d parties", outcome, len(f.held), len(f.fresh), len(q.quorum))); err != nil {
		return nil, err
	}
	var answer []byte
	for _, a := range f.held {
		answer = append(slices.Grow(answer, len(f.held)*len(a.Answer)-len(answer)), a.Answer...)
	}
	return s.seal(q, answer)
}

// lookUp finds what there is of the ciphertexts, while no other request is between beginning them and its end: what is
// offered to the quorum of such a run would be about to change, and others may release it.
func (f *flood) lookUp() (err error) {
	if err := f.floods.free(f.run.Digests); err != nil {
		return err
	}
	if f.held, err = f.Vault.Floods(f.run); err != nil {
		return f.refusedFlood(err)
	}
	return f.floods.free(f.run.Digests)
}

// drive has all ciphertexts answered, by this party and the others of the quorum.
func (f *flood) drive(ctx context.Context) error {
	offer := decrypt.Offer{Held: make([]decrypt.RunID, len(f.held))}
	for i, a := range f.held {
		if a.Answer != nil {
			//lodge:check threshold/flood/agree [run=TestFloodingLedger] a recorded answer is made
			//  again
			offer.Held[i] = a.Run
		}
	}
	_, err := session.Join(ctx, f.Sessions, session.Call{
		Ref: job.Ref{JobID: fmt.Sprintf("d%x", f.header.GetRequestId()), Ordinal: 1}, Digest: f.asked.Digest(), Group: f.header.GetQuorum(),
		Protocol: plan.Threshold, Params: terms("flooding", f.scheme, f.epoch.Digest), Epoch: f.epoch.ID,
	}, func(rs round.Session, source *sample.Source) (round.Transition[struct{}], error) {
		f.run.Run = vault.RunID(rs.ID[:16])
		t, err := decrypt.Agree(rs, "agree", offer)
		if err != nil {
			return round.Transition[struct{}]{}, err
		}
		return round.Then(t, func(_ context.Context, terms decrypt.Terms) (round.Transition[struct{}], error) {
			return f.begin(rs, source, terms)
		}), nil
	})
	return err
}

// claim keeps other requests from beginning anew what this one is about to, and refuses what another has begun since.
func (f *flood) claim() (err error) {
	if f.done, err = f.floods.claim(f.run.Digests); err != nil {
		return err
	}
	now, err := f.Vault.Floods(f.run)
	if err != nil {
		return f.refusedFlood(err)
	}
	for k, i := range f.fresh {
		clear(now[k].Answer)
		if was := f.held[i]; now[k].Run != was.Run || (now[k].Answer == nil) != (was.Answer == nil) {
			return rpc.Errorf(rpc.Busy, "ask again", "another request has begun or recorded ciphertext %d meanwhile", i)
		}
	}
	return nil
}

// refuse ends the run for a reason of this party's own.
func (f *flood) refuse(err error) (round.Transition[struct{}], error) {
	if known := rpc.FromError(err); known.Code != rpc.Internal {
		f.why = known
		return round.Transition[struct{}]{}, session.Refuse(known)
	}
	return round.Transition[struct{}]{}, err
}

// begin has the answers made that are not held by all.
func (f *flood) begin(rs round.Session, source *sample.Source, t decrypt.Terms) (round.Transition[struct{}], error) {
	var list []*bgv.Ciphertext
	f.run.Digests = nil
	for i, again := range t.Again {
		if !again {
			f.fresh, list = append(f.fresh, i), append(list, f.bgv.list[i])
			f.run.Digests = append(f.run.Digests, f.digests[i])
		}
	}
	if len(f.fresh) == 0 {
		return round.Done(struct{}{}), nil
	}
	if err := f.approved(f.request); err != nil {
		return f.refuse(err)
	}
	messages := len(f.fresh) * f.request.batch.each()
	if err := f.rates.take(f.caller.Name, messages, f.rule.MessagesPerHour, time.Now()); err != nil {
		return f.refuse(err)
	}
	//lodge:check threshold/total-flooding [run=TestFloodingTotal] a client has more decrypted with flooding under a key than its rule's total
	if err := f.spendBudget(f.request, messages); err != nil {
		return f.refuse(err)
	}
	if err := f.claim(); err != nil {
		return f.refuse(err)
	}
	//lodge:check threshold/flood/begin [swap=f.Vault.BeginFloods(f.run)=>error(nil)]
	//  [run=TestBGV$|TestFloodingLedger] a share is used before the flood and its quorum are
	//  recorded
	if err := f.Vault.BeginFloods(f.run); err != nil {
		return f.refuse(f.refusedFlood(err))
	}
	parts, err := f.additive(f.request, f.bgv.flooding.Primes())
	if err != nil {
		return f.refuse(err)
	}
	defer wipe(parts)
	additive := ring.Poly{}
	for _, v := range parts {
		additive.C = append(additive.C, v)
	}
	key, err := f.bgv.flooding.Secret(additive)
	if err != nil {
		return round.Transition[struct{}]{}, err
	}
	rs.Secrets.Own(wiper(ring.Poly(key).Zero))
	flooded, err := bgvdecrypt.StartFlooding(bgvdecrypt.FloodingConfig{
		Session: rs, Step: "flood", Flooding: f.bgv.flooding, Ciphertexts: list, Secret: key, Recipient: bgvdecrypt.Outside, Source: source,
		Workers: f.Workers,
	})
	if err != nil {
		return round.Transition[struct{}]{}, err
	}
	return round.Then(flooded, func(_ context.Context, r *bgvdecrypt.Result) (round.Transition[struct{}], error) {
		return f.record(rs, r)
	}), nil
}

// record makes the answers of the run durable, and waits until all parties have done so.
func (f *flood) record(rs round.Session, r *bgvdecrypt.Result) (round.Transition[struct{}], error) {
	if err := f.Vault.RecordFloods(f.run, r.Answers, f.approval()...); err != nil {
		r.Wipe()
		return f.refuse(f.refusedFlood(err))
	}
	offer := decrypt.Offer{}
	for k, i := range f.fresh {
		f.held[i] = vault.Flood{Run: f.run.Run, Answer: r.Answers[k]}
		offer.Held = append(offer.Held, f.run.Run)
	}
	t, err := decrypt.Agree(rs, "recorded", offer)
	if err != nil {
		return round.Transition[struct{}]{}, err
	}
	return round.Then(t, func(_ context.Context, t decrypt.Terms) (round.Transition[struct{}], error) {
		if t.Fresh > 0 {
			return f.refuse(rpc.Errorf(rpc.Conflict, "ask again", "a party of the quorum has not recorded its answers"))
		}
		return round.Done(struct{}{}), nil
	}), nil
}

// wiper is what a session erases when it ends.
type wiper func()

// Wipe implements round's secrets.
func (w wiper) Wipe() { w() }
