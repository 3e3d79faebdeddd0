// Package party runs a party's process. It wires the vault, the exchange with the peers, the
// protocol services and the clients' access to them, according to the configuration.
package party

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	decryptionv1 "github.com/lodge-mpc/lodge/proto/lodge/decryption/v1"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/console"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/health"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/traces"
	"github.com/lodge-mpc/lodge/services/linear"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/multikey/circuits"
	"github.com/lodge-mpc/lodge/services/multikey/keys"
	"github.com/lodge-mpc/lodge/services/multikey/registry"
	"github.com/lodge-mpc/lodge/services/offline/decryption"
	"github.com/lodge-mpc/lodge/services/offline/evaluator"
	"github.com/lodge-mpc/lodge/services/offline/keygen"
	"github.com/lodge-mpc/lodge/services/offline/keyring"
	"github.com/lodge-mpc/lodge/services/offline/popk"
	"github.com/lodge-mpc/lodge/services/offline/triples"
	"github.com/lodge-mpc/lodge/services/offline/tuples"
	"github.com/lodge-mpc/lodge/services/ops/status"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/accusations"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
	"github.com/lodge-mpc/lodge/services/store/disk"
	"github.com/lodge-mpc/lodge/services/store/vault"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/threshold"
)

// stopTime limits how long running calls may continue when the process stops.
const stopTime = 5 * time.Second

// Run serves until ctx is done. The inner handlers wrap its own.
func Run(ctx context.Context, f *config.PartyFile, version string, log *slog.Logger, inner ...rpc.Inner) error {
	return run(ctx, f, version, log, Seam{}, inner)
}

func run(ctx context.Context, f *config.PartyFile, version string, log *slog.Logger, s Seam, inner []rpc.Inner) error {
	debug.SetMemoryLimit(int64(f.Memory()))
	h, err := health.Start(f.HealthListen, log) // the process is alive before its store is open, which may take long
	if err != nil {
		return err
	}
	defer h.Stop()
	p, err := newWith(f, version, log, s, inner)
	if err != nil {
		return err
	}
	defer p.close()
	p.health = h
	idle, stop := context.WithCancel(ctx)
	defer stop()
	pace(idle)
	go trim(idle, p.sessions.Running, trimAfter, giveBack)
	return p.serve(ctx)
}

// party holds the parts of the process.
type party struct {
	file       *config.PartyFile
	log        *slog.Logger
	metrics    *metrics.Metrics
	vault      *vault.Vault
	audit      *audit.Log
	conns      []*grpc.ClientConn // to the parties; nil for this party
	multikey   *multikey.Context  // nil if the roster pins no context
	keys       *keys.Store        // the party's own multi-key keys
	published  *registry.Registry // registry of all parties' multi-key keys; nil without a context
	evaluation *circuits.Service
	tuples     *tuples.Service
	book       *accusations.Book
	sessions   *session.Registry
	server     *rpc.Server
	// evaluators compute products for this party; nil if none are configured.
	evaluators *evaluator.Pool
	// toEvaluators are the credentials for calls to evaluators, if they differ from credentials.
	toEvaluators *rpc.Credentials
	health       *health.Server // nil without an address
	disks        *disk.Watch
	reports      *status.Reports // about the peers
	stopping     chan struct{}   // closed when the process begins to stop

	console     *console.Console
	credentials *rpc.Credentials
	traces      *traces.Tracer // nil without a collector

	seam Seam // zero except in tests
}

func newParty(f *config.PartyFile, version string, log *slog.Logger) (*party, error) {
	return newWith(f, version, log, Seam{}, nil)
}

func newWith(f *config.PartyFile, version string, log *slog.Logger, s Seam, inner []rpc.Inner) (_ *party, err error) {
	p := &party{file: f, log: log, metrics: metrics.New(version, metrics.Party), seam: s, disks: watchDisks(f), reports: status.NewReports(), stopping: make(chan struct{})}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if err := checkPins(f, log); err != nil {
		return nil, err
	}
	if p.multikey, err = contextOf(f); err != nil {
		return nil, err
	}
	key, err := seal.LoadKey(f.Vault.KeyFile)
	if err != nil {
		return nil, err
	}
	if p.vault, err = vault.OpenPlace(context.Background(), seal.Place{Dir: f.Vault.Dir, PostgresDSNFile: f.Vault.PostgresDSNFile}, key); err != nil {
		return nil, err
	}
	if err := p.vault.Pin(rosterOf(f)); err != nil {
		return nil, err
	}
	if p.audit, err = openAudit(f, p.vault); err != nil {
		return nil, err
	}
	if p.credentials, err = rpc.LoadCredentials(f.TLS.Files()); err != nil {
		return nil, err
	}
	p.metrics.Certificate(p.credentials.NotAfter)
	if p.traces, err = f.Tracing.Start(f.Name, version, log); err != nil {
		return nil, err
	}
	x, err := p.exchange()
	if err != nil {
		return nil, err
	}
	if p.book, err = p.openBook(); err != nil {
		return nil, err
	}
	if p.sessions, err = p.registry(x); err != nil {
		return nil, err
	}
	if err := p.restore(); err != nil {
		return nil, err
	}
	if p.evaluators, err = p.pool(); err != nil {
		return nil, err
	}
	directory, err := f.Directory()
	if err != nil {
		return nil, err
	}
	tokens, err := f.OIDC.Tokens(log)
	if err != nil {
		return nil, err
	}
	rules := rpc.Rules{exchange.Method: rpc.Allow(rpc.Peer)}
	for _, more := range []rpc.Rules{keygen.Rules, triples.Rules, tuples.Rules, decryption.Rules, popk.Rules, threshold.Rules, keys.Rules, registry.Rules, circuits.Rules, linear.Rules, accusations.Rules, status.Rules, status.ProbeRules, console.Rules} {
		for m, r := range more {
			rules[m] = r
		}
	}
	p.server, err = rpc.NewServer(p.metrics.Server(rpc.Options{
		Credentials: p.credentials, Directory: directory, Tokens: tokens, Rules: rules, Log: log, Reflection: f.Reflection,
		Inner: append([]rpc.Inner{p.book.Inner(), p.disks.Inner(newWork)}, inner...), Limits: f.Callers.Limits(),
		Gateway: console.Gateway(f.Console),
	}))
	if err != nil {
		return nil, err
	}
	if err := p.openConsole(tokens, version); err != nil {
		return nil, err
	}
	return p, p.register(x, version)
}

// rosterOf returns the roster in the store's form.
func rosterOf(f *config.PartyFile) vaultkeys.Roster {
	r := vaultkeys.Roster{Hash: f.Roster.Hash(), Self: f.Index}
	for _, k := range f.Roster.SigningKeys() {
		r.Keys = append(r.Keys, k)
	}
	return r
}

// openAudit opens the audit log, which must contain the entry that the vault remembers.
func openAudit(f *config.PartyFile, v *vault.Vault) (*audit.Log, error) {
	o := audit.Options{Party: f.Name}
	known, err := v.AuditHead()
	if err != nil {
		return nil, err
	}
	if known != "" {
		h, err := audit.ParseHash(known)
		if err != nil {
			return nil, err
		}
		o.Known = append(o.Known, h)
	}
	log, err := audit.Open(f.AuditDir, o)
	if err != nil {
		return nil, fmt.Errorf("%w; `lodge audit verify %s` says more; restore the log that belongs to this vault; if the log was lost and the store is restored from a backup, restore the store with --new-audit-log", err, f.AuditDir)
	}
	return log, nil
}

// register registers the party's services on its server.
func (p *party) register(x *exchange.Exchange, version string) error {
	f, n := p.file, len(p.file.Roster.Parties)
	signer, err := f.Signer()
	if err != nil {
		return err
	}
	ring := keyring.New(p.vault, runtime.GOMAXPROCS(0), f.AllowPassiveKeygen)
	exchangev1.RegisterExchangeServiceServer(p.server, x)
	popkv1.RegisterPopkServiceServer(p.server, popk.New(p.sessions, ring, p.vault, n))
	peers := &tuples.Peers{Self: f.Index, Keys: f.Roster.SigningKeys(), Signer: signer, Vault: p.vault, Audit: p.audit, Log: p.log}
	for i, m := range f.Roster.Parties {
		peers.List = append(peers.List, rpc.PeerConn{Name: m.Name, Conn: p.conns[i]})
	}
	generating := keygen.New(p.sessions, ring, p.vault, p.audit, f.Policy.Tenants)
	keygenv1.RegisterKeygenServiceServer(p.server, generating)
	decryptionv1.RegisterDecryptionServiceServer(p.server, &decryption.Service{
		Sessions: p.sessions, Ring: ring, Vault: p.vault, Audit: p.audit, Announced: peers.Announced, Parties: n,
	})
	making := triples.New(p.sessions, ring, p.vault, n, p.evaluators, p.audit)
	triplesv1.RegisterTriplesServiceServer(p.server, making)
	if err := p.openRegistry(); err != nil {
		return err
	}
	p.serveEvaluation()
	p.keys = keys.New(keys.Config{
		Changed: p.published.Changed, Known: p.published,
		Vault: p.vault, Audit: p.audit, Gate: p.sessions.Gate, Log: p.log, Context: p.multikey, Party: f.Index, Signer: signer, Workers: ring.Workers(), AllowLegacy: p.seam.LegacyKeys,
		Metrics: p.metrics, Tenants: f.Policy.Tenants,
	})
	multikeyv1.RegisterKeysServiceServer(p.server, p.keys)
	thresholdv1.RegisterThresholdServiceServer(p.server, p.threshold(ring.Workers()))
	linearv1.RegisterLinearServiceServer(p.server, linear.New(linear.Config{
		Gate: p.sessions.Gate, Metrics: p.metrics, Audit: p.audit, Vault: p.vault, Log: p.log, Policy: f.Linear,
		AllowPassive: f.AllowPassiveLinear, AllowUnproved: f.AllowUnprovedLinear, AllowInsecure: f.AllowInsecureParams, Workers: ring.Workers(),
	}))
	p.tuples = tuples.New(tuples.Config{
		Vault: p.vault, Audit: p.audit, Quota: quota.NewBook(config.Quotas(f.Clients), nil), Metrics: p.metrics, Log: p.log, Peers: peers,
		MACKeyShare: making.MACKeyShare, MayRetire: generating.MayEnd, Retire: generating.Retire,
	})
	tuplesv1.RegisterTuplesServiceServer(p.server, p.tuples)
	accusationsv1.RegisterAccusationsServiceServer(p.server, &accusations.Service{Book: p.book})
	statusv1.RegisterProbeServiceServer(p.server, &status.Probes{Peers: p.links()})
	statusv1.RegisterStatusServiceServer(p.server, &status.Service{
		Name: f.Name, Party: f.Index, Version: version, Roster: f.Roster.Hash(), Params: f.Policy.Params, Started: time.Now(),
		Log: p.log, Ready: p.server.Ready, Running: p.sessions.Running, Peers: p.links(), Certificate: p.credentials.NotAfter,
		Vault: p.vault, Place: seal.Place{Dir: f.Vault.Dir, PostgresDSNFile: f.Vault.PostgresDSNFile}, Audit: p.audit, MaxMemory: uint64(f.Policy.MaxMemory),
		Conduct: p.book.Standing, DistanceBudget: f.Linear.DistanceBudget(), Disks: p.disks,
		Reports: p.reports, Stopping: p.stopping, Multikey: multikeySet(f),
	})
	return nil
}

// multikeySet returns the multi-key parameter set of the roster; empty if it has no context.
func multikeySet(f *config.PartyFile) string {
	if f.Roster.Multikey == nil {
		return ""
	}
	return f.Roster.Multikey.Set
}

// threshold returns the service for threshold keys.
func (p *party) threshold(workers int) *threshold.Service {
	c := threshold.Config{
		Vault: p.vault, Audit: p.audit, Policy: p.file.Threshold, Keys: p.keys, AllowPassive: p.file.AllowPassiveThreshold, Workers: workers,
		Peers: make([]rpc.PeerConn, len(p.conns)),
	}
	if p.published != nil {
		c.Directory = p.published
	}
	for i, m := range p.file.Roster.Parties {
		c.Peers[i].Name = m.Name
		if p.conns[i] != nil {
			c.Peers[i].Conn = p.conns[i]
		}
	}
	return threshold.New(p.sessions, c)
}

// links returns the connections to the peers.
func (p *party) links() (list []status.Link) {
	for i, m := range p.file.Roster.Parties {
		if p.conns[i] != nil {
			list = append(list, status.Link{Name: m.Name, Party: i, Conn: p.conns[i]})
		}
	}
	return list
}

// contextOf prepares the context of multi-key ciphertexts, if the roster pins one. The set is
// pinned by its hash like all others, and an insecure set is subject to the same rule.
func contextOf(f *config.PartyFile) (*multikey.Context, error) {
	m := f.Roster.Multikey
	if m == nil {
		return nil, nil
	}
	if _, pinned := config.Pin(f.Policy.Params, m.Set); !pinned {
		return nil, fmt.Errorf("party: the roster has multi-key ciphertexts of the set %q, which policy.params does not pin; `lodge params show` prints its hash", m.Set)
	}
	return multikey.ContextOf(m)
}

// restore loads the sessions whose results were stored and not yet activated: peers may have
// activated theirs. The coordinator activates or cancels them. No other sessions survive a restart.
func (p *party) restore() error {
	epochs, err := p.vault.Epochs()
	if err != nil {
		return err
	}
	for _, e := range epochs {
		if e.State == vaultkeys.EpochLocked {
			p.sessions.Restore(e.Session, keygen.Locked(p.vault, e))
		}
	}
	batches, err := p.vault.Batches()
	if err != nil {
		return err
	}
	for _, b := range batches {
		switch {
		case b.State != stock.BatchLocked:
		case b.Kind == stock.KindMasks:
			p.sessions.Restore(b.ID, threshold.LockedMasks(p.vault, b, p.sessions))
		default:
			p.sessions.Restore(b.ID, triples.Locked(p.vault, b, p.sessions))
		}
	}
	return nil
}

func (p *party) exchange() (*exchange.Exchange, error) {
	r := p.file.Roster
	peers := make([]rpc.PeerConn, len(r.Parties))
	p.conns = make([]*grpc.ClientConn, len(r.Parties))
	for i, m := range r.Parties {
		if i == p.file.Index {
			continue
		}
		conn, err := rpc.Dial(m.Address, m.Identity, p.credentials, p.seam.dialling(i)...)
		if err != nil {
			return nil, err
		}
		p.conns[i] = conn
		peers[i] = rpc.PeerConn{Name: m.Name, Conn: conn}
	}
	return exchange.New(exchange.Config{
		Self: round.Party(p.file.Index), Peers: peers, RosterHash: r.Hash(), Window: int(p.file.Limits.Window), Metrics: p.metrics,
		Stall: time.Duration(p.file.Limits.Compute + p.file.Limits.Idle/2),
		Lull:  time.Duration(p.file.Limits.Idle / 4 * 3),
	})
}

func (p *party) registry(x *exchange.Exchange) (*session.Registry, error) {
	f := p.file
	signer, err := f.Signer()
	if err != nil {
		return nil, err
	}
	keys := f.Roster.SigningKeys()
	names := make([]string, len(f.Roster.Parties))
	for i, m := range f.Roster.Parties {
		names[i] = m.Name
	}
	gate := job.NewGate(job.Terms{
		Policy: f.Policy, RosterHash: f.Roster.Hash(), AllowPassiveKeygen: f.AllowPassiveKeygen, AllowInsecureParams: f.AllowInsecureParams,
		AllowPassiveThreshold: f.AllowPassiveThreshold,
		Proved: func(name string) bool {
			set, err := plan.Lookup(name)
			return err == nil && set.Proved
		},
		Insecure: func(name string) bool {
			set, err := plan.Lookup(name)
			return err != nil || set.Insecure
		},
		NewKeys: p.newKeys(),
	})
	return session.NewRegistry(session.Config{
		Gate: gate, Exchange: x, Self: round.Party(f.Index), Names: names, Signer: signer, Keys: keys, Roster: f.Roster.Hash(),
		Metrics: p.metrics, Log: p.log, Traces: p.traces, Conduct: p.book, Accuse: p.book.Found, Cheat: p.seam.Cheat,
		EvidenceDir: cmp.Or(f.Vault.Dir, f.AuditDir),
		Limits:      runner.Limits{Idle: time.Duration(f.Limits.Idle), Compute: time.Duration(f.Limits.Compute), MinRate: int64(f.Limits.MinRate)},
	}), nil
}

// serve runs until stop is done. Then it reports not ready, starts no more sessions, and lets
// running sessions end.
func (p *party) serve(stop context.Context) error {
	listener, err := net.Listen("tcp", p.file.Listen)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(stop))
	defer cancel()
	if p.file.MetricsListen != "" {
		ml, err := net.Listen("tcp", p.file.MetricsListen)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		go func() {
			if err := p.metrics.Serve(ctx, ml); err != nil {
				p.log.Error("metrics", "error", err)
			}
		}()
	}
	pages, err := p.console.Open()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	done := make(chan error, 1)
	go func() { done <- p.server.Serve(listener) }()
	var keeping sync.WaitGroup
	keeping.Go(func() { pages(ctx) })
	keeping.Go(func() { p.tuples.Run(ctx) })
	keeping.Go(func() { p.book.Run(ctx) })
	keeping.Go(func() { p.evaluators.Run(ctx) })
	keeping.Go(func() { p.credentials.Watch(ctx, p.log) })
	keeping.Go(func() { p.observe(ctx) })
	keeping.Go(func() { p.published.Run(ctx) })
	keeping.Go(func() { p.evaluation.Run(ctx) })
	keeping.Go(func() { status.Reach(ctx, p.links(), p.metrics, p.reports) })
	if p.toEvaluators != nil {
		keeping.Go(func() { p.toEvaluators.Watch(ctx, p.log) })
	}
	defer keeping.Wait()
	defer cancel()
	p.server.SetReady(true)
	p.health.Ready(p.usable)
	p.log.Info("party is ready", "party", p.file.Name, "listen", listener.Addr().String())
	select {
	case err := <-done:
		return err
	case <-stop.Done():
	}
	p.health.Ready(nil)
	p.server.SetReady(false)
	close(p.stopping)
	within := time.Duration(p.file.StopAfter)
	p.log.Info("stopping", "sessions", p.sessions.Running(), "within", within)
	running, end := context.WithTimeout(context.Background(), within)
	defer end()
	p.sessions.Drain(running)
	p.sessions.Close()
	calls, cut := context.WithTimeout(context.Background(), stopTime)
	defer cut()
	p.server.Stop(calls)
	p.log.Info("stopped")
	return nil
}

func (p *party) close() {
	p.traces.Stop()
	if p.keys != nil {
		p.keys.Wait()
	}
	for _, c := range p.conns {
		if c != nil {
			c.Close()
		}
	}
	if err := p.audit.Close(); err != nil {
		p.log.Error("closing the audit log", "error", err)
	}
	if p.vault != nil {
		if err := p.vault.Close(); err != nil {
			p.log.Error("closing the vault", "error", err)
		}
	}
}
