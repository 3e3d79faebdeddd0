package histories

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/coordinator/stock"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/offline/tuples"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

const (
	parties     = 3
	coordinator = parties // index of the coordinator in the network
	clients     = parties + 1
	ends        = parties + 2

	kind     = jobv1.Kind_KIND_SCALAR
	bounded  = "a2" // this client has a quota
	dayLimit = 25   // tuples at each party
)

// backend opens the store of a process.
type backend struct {
	open func() (store.Store, error)
	// copy returns a function that restores the present content; the store must be closed at both
	// times. It is nil if the backend cannot copy.
	copy func() (putBack func(), err error)
}

// world consists of three parties, a coordinator and clients of two tenants.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	seed  uint64
	calm  bool // no event has occurred that could prevent a client from getting its tuples
	model *model

	parties     [parties]*party
	coordinator *keeper
	clients     []rpc.Principal

	net  sync.Mutex
	down [ends][ends]bool
	loss uint64                 // one in loss responses is lost; 0: none
	late [parties]time.Duration // delay of the coordinator's calls
	sent atomic.Uint64

	logs sync.Mutex
	log  []string

	epoch   uint64
	keys    map[string]int    // number of MAC keys of each tenant
	sizes   map[string]uint64 // size of a tenant's tuples in bytes
	batches []batch
	known   []*tuplesv1.Reservation
	ids     int
}

// batch is a batch of tuples at the parties.
type batch struct {
	class  *tuplesv1.Class
	id     string
	macKey string
	epoch  uint64
	count  uint64
	size   uint64
}

// keeper is a process with a store that can be restarted repeatedly.
type keeper struct {
	w       *world
	index   int
	back    backend
	service func(k *keeper, s store.Store) (server any, run func(context.Context), close func() error, err error)

	mu      sync.Mutex
	process *process
	store   *faulty
	close   func() error
	ran     chan struct{}
}

type party struct {
	*keeper
	signer ed25519.PrivateKey
	offset atomic.Int64 // offset of its clock in nanoseconds
	jumps  atomic.Int64
	opened atomic.Pointer[vault.Vault]
}

func (p *party) now() time.Time      { return time.Now().Add(time.Duration(p.offset.Load())) }
func (p *party) vault() *vault.Vault { return p.opened.Load() }

func (k *keeper) current() *process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process
}

func (k *keeper) running() bool { return k.current().running() }

// odd reports whether a write of the process failed or has an unknown outcome, so that any later
// operation may fail.
func (k *keeper) odd() bool {
	k.mu.Lock()
	s := k.store
	k.mu.Unlock()
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.odd || s.dead
}

func (w *world) note(format string, args ...any) {
	w.logs.Lock()
	defer w.logs.Unlock()
	w.log = append(w.log, fmt.Sprintf("%8.3fs ", time.Since(epochOfBubble).Seconds())+fmt.Sprintf(format, args...))
}

// epochOfBubble is the start time within testing/synctest.
var epochOfBubble = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// newWorld starts all processes, with the parties' stores at where.
func newWorld(t *testing.T, seed uint64, where [parties]backend) *world {
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0x10d6e)), calm: true, epoch: 1, keys: map[string]int{}}
	w.model = newModel(w)
	for _, name := range []string{"a1", "a2", "b1", "b2"} {
		w.clients = append(w.clients, rpc.Principal{Role: rpc.Client, Name: name, Party: -1, Tenants: []string{name[:1]},
			Permissions: []string{config.PermFetch, config.PermStatus, config.PermMACKey, config.PermRetire, config.PermReserve}})
	}
	keys := make([]ed25519.PublicKey, parties)
	for i := range parties {
		seed := make([]byte, ed25519.SeedSize)
		seed[0] = byte(i + 1)
		p := &party{signer: ed25519.NewKeyFromSeed(seed)}
		keys[i] = p.signer.Public().(ed25519.PublicKey)
		p.keeper = &keeper{w: w, index: i, back: where[i]}
		w.parties[i] = p
	}
	for _, p := range w.parties {
		p.service = func(k *keeper, s store.Store) (any, func(context.Context), func() error, error) {
			return p.serve(s, keys)
		}
	}
	w.coordinator = &keeper{w: w, index: coordinator, back: inMemory()}
	w.coordinator.service = func(_ *keeper, s store.Store) (any, func(context.Context), func() error, error) {
		list := make([]stock.Party, parties)
		for i := range parties {
			list[i] = stock.Party{Name: partyName(i), Conn: w.conn(rpc.Principal{Role: rpc.Coordinator, Name: "coordinator", Party: -1}, coordinator, i)}
		}
		c := stock.OpenIn(s, list, quiet)
		return c, c.Run, c.Close, nil
	}
	for i := range parties {
		w.parties[i].start()
	}
	w.coordinator.start()
	return w
}

var quiet = slog.New(slog.DiscardHandler)

func partyName(i int) string { return fmt.Sprintf("p%d", i) }

func (p *party) serve(s store.Store, keys []ed25519.PublicKey) (any, func(context.Context), func() error, error) {
	v, err := vault.OpenAt(s, &seal.Key{}, p.now)
	if err != nil {
		return nil, nil, nil, err
	}
	w := p.w
	peers := &tuples.Peers{Self: p.index, Keys: keys, Signer: p.signer, Vault: v, Log: quiet}
	for j := range parties {
		peers.List = append(peers.List, rpc.PeerConn{Name: partyName(j),
			Conn: w.conn(rpc.Principal{Role: rpc.Peer, Name: partyName(p.index), Party: p.index}, p.index, j)})
	}
	limits := map[string]quota.Limits{bounded: {Tuples: map[string]uint64{job.KindName(kind): dayLimit}}}
	service := tuples.New(tuples.Config{Vault: v, Log: quiet, Peers: peers, Quota: quota.NewBook(limits, p.now),
		MACKeyShare: func(k vaultkeys.MACKey) ([]byte, error) { return []byte(k.ID), macShare(v, k) },
		MayRetire:   func(context.Context, uint64) error { return nil },
		Retire:      func(_ context.Context, epoch uint64, reason string) (int, error) { return v.RetireEpoch(epoch, reason) }})
	p.opened.Store(v)
	return service, service.Run, v.Close, nil
}

// macShare reads the stored MAC key share as a party does.
func macShare(v *vault.Vault, k vaultkeys.MACKey) error {
	r, err := v.OpenMACKey(k.ID)
	if err != nil {
		return err
	}
	return r.Close()
}

// start starts the process unless its store cannot be opened.
func (k *keeper) start() error {
	s, err := k.back.open()
	if err != nil {
		return err
	}
	f := &faulty{inner: s}
	return k.startOn(f)
}

func (k *keeper) startOn(f *faulty) error {
	ctx, cancel := context.WithCancel(context.Background())
	f.died = cancel
	server, run, closing, err := k.service(k, f)
	if err != nil {
		cancel()
		return err
	}
	desc := &tuplesv1.TuplesService_ServiceDesc
	if k.index == coordinator {
		desc = &stockv1.StockService_ServiceDesc
	}
	ran := make(chan struct{})
	k.mu.Lock()
	k.store, k.close, k.ran = f, closing, ran
	k.process = &process{desc: desc, server: server, ctx: ctx, end: cancel}
	k.mu.Unlock()
	go func() {
		defer close(ran)
		run(ctx)
	}()
	return nil
}

// stop ends the process immediately, as a crash does. Running operations can no longer access the
// store.
func (k *keeper) stop() {
	k.mu.Lock()
	p, s, closing, ran := k.process, k.store, k.close, k.ran
	k.process, k.store = nil, nil
	k.mu.Unlock()
	if p == nil {
		return
	}
	s.kill()
	p.end()
	<-ran
	synctest.Wait()
	if err := closing(); err != nil {
		k.w.note("closing the store of %d: %v", k.index, err)
	}
}

// conn returns a connection from one end to a party, or to the coordinator if to == coordinator.
func (w *world) conn(caller rpc.Principal, from, to int) *conn {
	c := &conn{caller: caller, up: func() bool {
		w.net.Lock()
		defer w.net.Unlock()
		return !w.down[from][to]
	}, lose: func() bool {
		w.net.Lock()
		defer w.net.Unlock()
		return w.loss > 0 && from != clients && w.chance(w.loss)
	}}
	if to == coordinator {
		c.to = w.coordinator.current
		return c
	}
	if from == coordinator {
		c.late = func() time.Duration {
			w.net.Lock()
			defer w.net.Unlock()
			return w.late[to]
		}
	}
	c.to = w.parties[to].current
	c.heard = func(method string, req, resp any, err error) { w.model.answered(to, caller, method, req, resp, err) }
	c.sent = func(ctx context.Context, _ *process, req *tuplesv1.FetchRequest) func(*tuplesv1.FetchResponse) {
		return w.model.delivery(ctx, to, req)
	}
	return c
}

// chance returns true with probability 1/n, determined by the seed and the number of earlier calls.
func (w *world) chance(n uint64) bool {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, w.sent.Add(1))
	return h.Sum64()>>7%n == 0
}

// end stops all processes.
func (w *world) end() {
	w.coordinator.stop()
	for _, p := range w.parties {
		p.stop()
	}
}

// pass advances time.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
