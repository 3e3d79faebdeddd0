package tuples

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Peers are the other parties as far as tuples go: they confirm reservations, and they remember how
// far this party's store is.
type Peers struct {
	Self   int
	List   []rpc.PeerConn // by index; its own entry is not used
	Keys   []ed25519.PublicKey
	Signer ed25519.PrivateKey
	Vault  Vault
	Audit  *audit.Log
	Log    *slog.Logger

	mu     sync.Mutex
	asked  map[string]*question // by reservation id
	told   []uint64             // the generation of this party's store that each peer has remembered; 0: none since the start
	queues []chan *question
	ended  chan struct{} // closed when nobody asks any more
}

// The times of asking peers.
const (
	callTime   = 5 * time.Second
	retryFirst = 2 * time.Millisecond
	retryMost  = 200 * time.Millisecond
	keepAsked  = time.Minute
	helloEvery = time.Second // while a peer has not acknowledged this store
	tellEvery  = 2 * time.Second
)

// question is whether all peers have recorded a reservation as this party has; without an id,
// whether they have remembered how far its store is.
type question struct {
	id     string
	digest [32]byte
	done   chan struct{} // closed with the answer
	err    error

	stop context.Context // done when it is too late for an answer

	mu   sync.Mutex
	open int // peers that have not answered
}

// run asks the peers until ctx is done.
func (p *Peers) run(ctx context.Context) {
	p.mu.Lock()
	p.start()
	p.mu.Unlock()
	context.AfterFunc(ctx, func() { close(p.ended) })
	for i := range p.List {
		if i == p.Self {
			continue
		}
		go p.hello(ctx, i)
		go p.ask(ctx, i)
	}
	//lodge:check tuples/version/told [run=TestPeersAreTold] peers accept an old copy of a store for
	//  which nobody waited
	go p.tell(ctx)
}

// tell has the peers remember how far this party's store is, soon after it has moved for whatever
// reason. What nothing waits for, masks that are spent or a decryption with flooding, they know of
// then unless it was a moment before the store was put back.
func (p *Peers) tell(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := p.Announced(ctx); err != nil { // those that are there have heard
			p.Log.Debug("a peer has not heard how far this party's store is", "error", err)
		}
	}
}

func (p *Peers) start() {
	if p.queues != nil {
		return
	}
	p.asked, p.told, p.ended = map[string]*question{}, make([]uint64, len(p.List)), make(chan struct{})
	p.queues = make([]chan *question, len(p.List))
	for i := range p.queues {
		p.queues[i] = make(chan *question, 4*maxItems)
	}
}

// question returns the running request about a reservation, or starts one.
func (p *Peers) question(id string, digest [32]byte, limit time.Duration) *question {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start()
	if q := p.asked[id]; q != nil {
		return q
	}
	q, cancel := p.put(id, digest, limit)
	p.asked[id] = q
	go func() {
		defer cancel()
		select {
		case <-q.done:
		case <-p.ended:
			return
		}
		keep := keepAsked
		if q.err != nil {
			keep = 0 // whoever asks next asks again
		}
		time.AfterFunc(keep, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.asked, id)
		})
	}()
	return q
}

// put asks all peers. The caller holds the lock.
func (p *Peers) put(id string, digest [32]byte, limit time.Duration) (q *question, cancel func()) {
	stop, cancel := context.WithTimeout(context.Background(), limit)
	q = &question{id: id, digest: digest, done: make(chan struct{}), open: len(p.List) - 1, stop: stop}
	for i, queue := range p.queues {
		if i == p.Self {
			continue
		}
		select {
		case queue <- q:
		default:
			q.answer(rpc.Errorf(rpc.Busy, "try again", "too many reservations wait for party %d (%s)", i, p.List[i].Name))
		}
	}
	return q, cancel
}

// Announced returns when all peers have recorded the present version of this party's store, so that
// they recognise an older copy that is restored later. Data recorded before the call may then leave
// this party.
func (p *Peers) Announced(ctx context.Context) error {
	generation, err := p.Vault.Generation()
	if err != nil {
		return err
	}
	return p.announced(ctx, generation)
}

func (p *Peers) announced(ctx context.Context, generation uint64) error {
	p.mu.Lock()
	p.start()
	behind := false
	for i, told := range p.told {
		behind = behind || i != p.Self && told < generation
	}
	if !behind {
		p.mu.Unlock()
		return nil
	}
	q, cancel := p.put("", [32]byte{}, confirmTime)
	p.mu.Unlock()
	defer cancel()
	select {
	case <-q.done:
		return q.err
	case <-p.ended:
		return rpc.Errorf(rpc.Unavailable, "try again", "this party stops")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// knows reports whether a peer has acknowledged this party's store since both have started.
func (p *Peers) knows(peer int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start()
	return p.told[peer] > 0
}

// forget has a peer be introduced to the store again.
func (p *Peers) forget(peer int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[peer] = 0
}

// remembered notes how far a peer knows this party's store to be.
func (p *Peers) remembered(peer int, generation uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[peer] = max(p.told[peer], generation)
}

// answer takes the answer of one peer; the first error is that of the question.
func (q *question) answer(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open <= 0 {
		return
	}
	if q.open--; err != nil {
		q.err, q.open = err, 0
	}
	if q.open == 0 {
		close(q.done)
	}
}

// confirmed returns when all peers have recorded a reservation as this party has.
func (p *Peers) confirmed(ctx context.Context, id string, digest [32]byte) error {
	for {
		q := p.question(id, digest, confirmTime)
		select {
		case <-q.done:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.ended:
			return rpc.Errorf(rpc.Unavailable, "try again", "this party stops")
		}
		//lodge:check tuples/confirm/same-id [run=TestAnAnswer] two digests of one identifier are
		//  confirmed together
		if q.digest != digest {
			return rpc.Errorf(rpc.Conflict, "", "reservation %s was recorded twice", id)
		}
		e := rpc.FromError(q.err)
		if e == nil {
			return nil
		}
		if e.Code != rpc.Unavailable || ctx.Err() != nil {
			return q.err
		}
		select {
		case <-time.After(retryMost):
		case <-ctx.Done():
			return q.err
		}
	}
}

// ask puts the questions that wait to a peer, many in one call, until ctx is done.
func (p *Peers) ask(ctx context.Context, peer int) {
	delay := retryFirst
	var later []*question
	for {
		batch := later
		if later = nil; len(batch) == 0 {
			select {
			case q := <-p.queues[peer]:
				batch = append(batch, q)
			case <-ctx.Done():
				return
			}
			delay = retryFirst
		}
	more:
		for len(batch) < maxItems {
			select {
			case q := <-p.queues[peer]:
				batch = append(batch, q)
			default:
				break more
			}
		}
		if later = p.call(ctx, peer, batch); len(later) > 0 {
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				return
			}
			delay = min(2*delay, retryMost)
		}
	}
}

// call asks a peer once, and gives the questions that it could not answer yet.
func (p *Peers) call(ctx context.Context, peer int, batch []*question) (later []*question) {
	name := fmt.Sprintf("party %d (%s)", peer, p.List[peer].Name)
	open := batch[:0:0]
	req := &tuplesv1.ConfirmRequest{}
	for _, q := range batch {
		if q.stop.Err() != nil {
			q.answer(rpc.Errorf(rpc.Unavailable, "try again when the coordinator and that party can be reached", "%s has not confirmed the reservation", name))
			continue
		}
		open = append(open, q)
		if q.id == "" {
			req.Remember = true
		} else {
			req.Items = append(req.Items, &tuplesv1.ConfirmRequest_Item{Id: q.id, Digest: q.digest[:]})
		}
	}
	if len(open) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if !p.knows(peer) {
		if err := p.introduce(ctx, peer); err != nil {
			p.Log.Debug("a peer does not acknowledge this party's store", "peer", name, "error", err)
			return open
		}
	}
	var err error
	if req.Store, err = p.version(peer); err != nil {
		p.Log.Error("reading the store's version", "error", err)
		return open
	}
	r, err := tuplesv1.NewTuplesServiceClient(p.List[peer].Conn).Confirm(ctx, req)
	if err == nil && !r.GetAcknowledged() { // it has started since
		p.forget(peer)
		return open
	}
	//lodge:check tuples/confirm/number [swap=len(r.GetAnswers()) !=
	//  len(req.GetItems())=>len(r.GetAnswers()) < len(req.GetItems())] [run=TestNonsense] answers
	//  are matched to the wrong questions
	if err != nil || len(r.GetAnswers()) != len(req.GetItems()) {
		return open
	}
	if req.GetRemember() {
		p.remembered(peer, req.GetStore().GetGeneration())
	}
	answers := r.GetAnswers()
	for _, q := range open {
		if q.id == "" {
			q.answer(nil)
			continue
		}
		answer := answers[0]
		answers = answers[1:]
		switch answer {
		case tuplesv1.Answer_ANSWER_SAME:
			q.answer(nil)
		case tuplesv1.Answer_ANSWER_OTHER:
			//lodge:check tuples/confirm/other [as=q.answer(nil)] [run=TestFetchNeeds|TestNonsense]
			//  a peer that recorded another reservation does not stop the delivery
			q.answer(rpc.Errorf(rpc.Conflict, "do not trust this coordinator: it proposed different reservations to the parties; reserve again",
				"%s has recorded another reservation under this id", name))
		case tuplesv1.Answer_ANSWER_ENDED:
			q.answer(rpc.Errorf(rpc.Conflict, "reserve again", "the reservation has ended at %s", name))
		default:
			//lodge:check tuples/confirm/nonsense [as=q.answer(nil)] [run=TestNonsense] an invalid
			//  answer counts as a confirmation
			later = append(later, q)
		}
	}
	return later
}

// Confirm implements the service.
func (s *Service) Confirm(ctx context.Context, r *tuplesv1.ConfirmRequest) (*tuplesv1.ConfirmResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	//lodge:check tuples/confirm/items [run=TestLimits|TestConfirm] a peer asks any number of
	//  questions
	if len(r.GetItems()) > maxItems {
		return nil, rpc.Errorf(rpc.TooLarge, "split them", "%d items in one call, of at most %d", len(r.GetItems()), maxItems)
	}
	version, err := s.Peers.read(p.Party, s.Peers.Self, r.GetStore())
	if err != nil {
		return nil, err
	}
	out := &tuplesv1.ConfirmResponse{Acknowledged: s.Vault.Heard(p.Party, version)}
	//lodge:check tuples/confirm/acknowledged [run=TestConfirm|TestPutBack] a peer confirms to a
	//  store that it has not acknowledged
	if !out.Acknowledged {
		return out, nil
	}
	if r.GetRemember() {
		if err := s.Vault.RememberPeers(); err != nil {
			return nil, err
		}
	}
	for _, item := range r.GetItems() {
		answer := tuplesv1.Answer_ANSWER_UNKNOWN
		x, err := s.Vault.Reservation(item.GetId())
		switch {
		case errors.Is(err, vaulterr.ErrNotFound):
		case err != nil:
			return nil, err
		//lodge:check tuples/confirm/digest [run=TestConfirm|TestFetchNeeds] a peer confirms another
		//  reservation than it recorded
		case !bytes.Equal(x.Digest[:], item.GetDigest()):
			answer = tuplesv1.Answer_ANSWER_OTHER
		//lodge:check tuples/confirm/ended [swap=x.State == stock.Reserved || x.State ==
		//  stock.Consumed=>true] [run=TestConfirm|TestFetchNeeds|TestNonsense] a peer whose
		//  reservation has ended does not stop the delivery
		case x.State == stock.Reserved || x.State == stock.Consumed:
			answer = tuplesv1.Answer_ANSWER_SAME
		default:
			answer = tuplesv1.Answer_ANSWER_ENDED
		}
		out.Answers = append(out.Answers, answer)
	}
	return out, nil
}
