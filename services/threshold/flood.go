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
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Whole ciphertexts are decrypted with flooding by one quorum, for one client and recipient. A run:
//
//	agrees on the ciphertexts for which all parties have answers
//	begins the others: durably binds them to the quorum and counts them before using a share of the key
//	makes the answers durable
//	waits until all parties' answers are durable
//
// Only then are the answers released, durably, and sent. If a party fails earlier, its quorum holds
// answers that were never sent, and the next run makes other answers.

// flood is this party's part of the decryption of a request with flooding.
type flood struct {
	*Service
	*request
	bgv   *bgvCiphertexts
	held  []ledger.Flood
	fresh []int // indices of the ciphertexts that are decrypted in this run
	run   ledger.FloodRun
	why   *rpc.Error // this party's own reason to end the run
	done  func()     // releases the claim
}

func (f *flood) wipe() {
	if f.done != nil {
		f.done()
	}
	for _, a := range f.held {
		clear(a.Answer)
	}
}

// claims holds the ciphertexts of running requests. Until a request that has begun a ciphertext
// ends, no other request may look it up or begin it again, because other parties may have released
// its answer.
type claims struct {
	mu   sync.Mutex
	open map[[32]byte]bool
}

// free returns an error if another request has claimed one of the ciphertexts.
func (c *claims) free(digests [][32]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refuse(digests)
}

// refuse is free for callers that hold c.mu.
func (c *claims) refuse(digests [][32]byte) error {
	for i, d := range digests {
		//lodge:check threshold/flood/claim [run=TestClaims] two requests answer for one ciphertext
		//  at the same time
		if c.open[d] {
			return rpc.Errorf(rpc.Busy, "ask again", "another request for ciphertext %d is running", i)
		}
	}
	return nil
}

// claim claims either all ciphertexts or none, until done is called.
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

// spentNext is the next step when a key has decrypted its limit.
const spentNext = "open coefficients under masks, or make other keys with `lodge keys generate`"

// refusedFlood translates an error of the ledger for the caller, and says which allowance is spent.
func (q *request) refusedFlood(err error) error {
	if errors.Is(err, vaulterr.ErrSpent) {
		if q.epoch.Limit == 0 {
			return rpc.Errorf(rpc.Burnt, "use a quorum of holders that held shares when the keys were made, or open coefficients under masks",
				"this party may not decrypt with flooding under the keys of epoch %d: new shares bring none of the allowance", q.epoch.ID)
		}
		return rpc.Errorf(rpc.Burnt, spentNext, "the keys of epoch %d have answered for as many ciphertexts with flooding as they may at this party", q.epoch.ID)
	}
	return vaulterr.RPC(err, "this decryption")
}

// flood returns this party's answers to ciphertexts that are decrypted with flooding.
func (s *Service) flood(ctx context.Context, q *request) ([]byte, error) {
	all := ledger.FloodRun{Epoch: q.epoch.ID, Quorum: q.quorum, Client: q.recipients, Digests: q.digests}
	f := &flood{Service: s, request: q, bgv: q.batch.(*bgvCiphertexts), run: all}
	defer f.wipe()
	if err := f.lookUp(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(f.held, func(a ledger.Flood) bool { return a.Answer == nil }) {
		if err := s.approved(q); err != nil { // before other parties receive the request
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
	s.Sessions.Metrics.Count(metrics.Decryptions, 1, outcome)
	s.Sessions.Metrics.Count(metrics.Threshold, len(f.fresh)*q.batch.each(), "flooding")
	if err := s.note(q, fmt.Sprintf("%s with flooding: %d ciphertexts, %d of them for the first time, %d parties", outcome, len(f.held), len(f.fresh), len(q.quorum))); err != nil {
		return nil, err
	}
	var answer []byte
	for _, a := range f.held {
		answer = append(slices.Grow(answer, len(f.held)*len(a.Answer)-len(answer)), a.Answer...)
	}
	return s.seal(q, answer)
}

// lookUp looks up the recorded state of the ciphertexts. It fails while another request decrypts
// one of them, because that request can change the state after this party has offered it to the
// quorum, and other parties may release that request's answers.
func (f *flood) lookUp() (err error) {
	if err := f.floods.free(f.run.Digests); err != nil {
		return err
	}
	if f.held, err = f.Vault.Floods(f.run); err != nil {
		return f.refusedFlood(err)
	}
	return f.floods.free(f.run.Digests)
}

// drive runs the protocol with the quorum until all ciphertexts are answered.
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
		f.run.Run = ledger.RunID(rs.ID[:16])
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

// claim prevents other requests from beginning the same ciphertexts, and returns an error if
// another request has begun or recorded one since the look-up.
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

// refuse ends the run for this party's own reason.
func (f *flood) refuse(err error) (round.Transition[struct{}], error) {
	if known := rpc.FromError(err); known.Code != rpc.Internal {
		f.why = known
		return round.Transition[struct{}]{}, session.Refuse(known)
	}
	return round.Transition[struct{}]{}, err
}

// begin starts the decryption of the ciphertexts whose answers not all parties hold.
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
	if err := f.Vault.RecordFloods(f.run, r.Answers, f.Service.approval(f.request)...); err != nil {
		r.Wipe()
		return f.refuse(f.refusedFlood(err))
	}
	offer := decrypt.Offer{}
	for k, i := range f.fresh {
		f.held[i] = ledger.Flood{Run: f.run.Run, Answer: r.Answers[k]}
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

// wiper is a secret that a session erases when it ends.
type wiper func()

// Wipe implements the secrets of package round.
func (w wiper) Wipe() { w() }
