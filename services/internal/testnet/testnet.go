// Package testnet provides tests with n parties with real TLS on loopback sockets, and proxies
// between them that a test can break.
package testnet

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// Party is one party's side of the network.
type Party struct {
	Exchange    *exchange.Exchange
	Server      *rpc.Server
	Credentials *rpc.Credentials
	Address     string
	Identity    string
	Signer      ed25519.PrivateKey
	Metrics     *metrics.Metrics
}

// Net is a network of parties.
type Net struct {
	t       testing.TB
	CA      *pki.Authority
	Dir     string
	Parties []*Party
	Names   []string
	Keys    []ed25519.PublicKey
	proxies map[[2]int]*Proxy
}

// Options configures a network.
type Options struct {
	Exchange exchange.Config // uses Window, StartWait and BackoffMax
	// Issue, if set, may replace the certificate of a party.
	Issue func(party int) (*pki.Authority, *pki.Leaf)
	// Roster, if set, replaces the roster's hash of a party.
	Roster func(party int) [32]byte
	// Sends, if set, returns an interceptor for the streams from one party to another.
	Sends func(from, to int) grpc.StreamClientInterceptor
}

// Identity returns the identity in a party's certificate.
func Identity(p int) string { return fmt.Sprintf("spiffe://lodge/party/p%d", p) }

// New starts n parties, which stop with the test.
func New(t testing.TB, n int, o Options) *Net {
	t.Helper()
	ca, err := pki.NewAuthority("testnet", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	net := &Net{t: t, CA: ca, Dir: t.TempDir(), proxies: map[[2]int]*Proxy{}}
	net.write("ca.pem", ca.PEM())
	listeners := make([]netListener, n)
	for i := range n {
		p := &Party{Identity: Identity(i), Metrics: metrics.New("test", metrics.Both)}
		issuer, leaf := ca, pki.Leaf{Identity: p.Identity, Lifetime: time.Hour}
		if o.Issue != nil {
			if a, l := o.Issue(i); a != nil {
				issuer, leaf = a, *l
			}
		}
		p.Credentials = net.Credentials(issuer, leaf)
		pub, priv, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Signer = priv
		net.Keys = append(net.Keys, pub)
		net.Names = append(net.Names, fmt.Sprintf("p%d", i))
		net.Parties = append(net.Parties, p)
		listeners[i] = listen(t)
		p.Address = listeners[i].Addr().String()
	}
	for i := range n {
		net.start(i, o, listeners[i])
	}
	return net
}

type netListener = net.Listener

func listen(t testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (n *Net) write(name string, b []byte) string {
	p := filepath.Join(n.Dir, name)
	if err := os.WriteFile(p, b, 0o600); err != nil {
		n.t.Fatal(err)
	}
	return p
}

// Credentials returns credentials with a certificate from issuer.
func (n *Net) Credentials(issuer *pki.Authority, l pki.Leaf) *rpc.Credentials {
	n.t.Helper()
	cert, key, err := issuer.Issue(l)
	if err != nil {
		n.t.Fatal(err)
	}
	c, err := rpc.LoadCredentials(rpc.Files{Certificate: n.write("c.pem", cert), Key: n.write("k.pem", key), CA: filepath.Join(n.Dir, "ca.pem")})
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

func (n *Net) start(i int, o Options, l net.Listener) {
	p := n.Parties[i]
	cfg := o.Exchange
	cfg.Self, cfg.Peers, cfg.Metrics = round.Party(i), make([]rpc.PeerConn, len(n.Parties)), p.Metrics
	cfg.RosterHash = [32]byte{1}
	if o.Roster != nil {
		cfg.RosterHash = o.Roster(i)
	}
	if cfg.BackoffMax == 0 {
		cfg.BackoffMax = 100 * time.Millisecond
	}
	if cfg.Farewell == 0 {
		cfg.Farewell = 200 * time.Millisecond
	}
	directory := rpc.NewDirectory()
	for j := range n.Parties {
		if j == i {
			continue
		}
		if err := directory.Add(Identity(j), rpc.Principal{Role: rpc.Peer, Name: n.Names[j], Party: j}); err != nil {
			n.t.Fatal(err)
		}
		proxy := newProxy(n.t, n.Parties[j].Address)
		n.proxies[[2]int{i, j}] = proxy
		var more []rpc.DialOption
		if o.Sends != nil {
			more = append(more, func(d *[]grpc.DialOption) { *d = append(*d, grpc.WithChainStreamInterceptor(o.Sends(i, j))) })
		}
		conn, err := rpc.Dial(proxy.Address(), Identity(j), p.Credentials, more...)
		if err != nil {
			n.t.Fatal(err)
		}
		n.t.Cleanup(func() { conn.Close() })
		cfg.Peers[j] = rpc.PeerConn{Name: n.Names[j], Conn: grpc.ClientConnInterface(conn)}
	}
	var err error
	if p.Exchange, err = exchange.New(cfg); err != nil {
		n.t.Fatal(err)
	}
	p.Server, err = rpc.NewServer(rpc.Options{Credentials: p.Credentials, Directory: directory,
		Rules: rpc.Rules{exchange.Method: rpc.Allow(rpc.Peer)}})
	if err != nil {
		n.t.Fatal(err)
	}
	exchangev1.RegisterExchangeServiceServer(p.Server, p.Exchange)
	go p.Server.Serve(l)
	n.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.Server.Stop(ctx)
	})
}

// Link returns the proxy for connections between two parties, in the direction from -> to.
func (n *Net) Link(from, to int) *Proxy { return n.proxies[[2]int{from, to}] }

// Proxy forwards TCP connections, with the faults that a test sets.
type Proxy struct {
	l      net.Listener
	target string

	mu      sync.Mutex
	conns   map[net.Conn]bool
	budget  int64 // bytes towards the target until the connections are cut; negative: no limit
	cuts    int
	refuse  bool
	stallAt int64 // bytes towards the target until it stalls; 0: no limit
	stalled bool
	resume  *sync.Cond
}

func newProxy(t testing.TB, target string) *Proxy {
	p := &Proxy{l: listen(t), target: target, conns: map[net.Conn]bool{}, budget: -1}
	p.resume = sync.NewCond(&p.mu)
	go p.accept()
	t.Cleanup(func() { p.Stall(false); p.l.Close(); p.Cut() })
	return p
}

// Address returns the address to dial.
func (p *Proxy) Address() string { return p.l.Addr().String() }

// Cut breaks all connections; new connections are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

func (p *Proxy) cut() {
	for c := range p.conns {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	p.conns = map[net.Conn]bool{}
}

// CutAfter breaks all connections after the given number of further bytes towards the target, and
// repeats this times times.
func (p *Proxy) CutAfter(bytes int64, times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget, p.cuts = bytes, times
}

// Refuse, while on, closes all connections and accepts none.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
	if on {
		p.cut()
	}
}

// Stall, while on, forwards no bytes towards the target.
func (p *Proxy) Stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled, p.stallAt = on, 0
	p.resume.Broadcast()
}

// StallAfter forwards the given number of further bytes towards the target and then stalls.
func (p *Proxy) StallAfter(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stallAt = bytes
}

func (p *Proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse := p.refuse
		p.mu.Unlock()
		if refuse {
			c.Close()
			continue
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			c.Close()
			continue
		}
		p.mu.Lock()
		p.conns[c], p.conns[out] = true, true
		p.mu.Unlock()
		go p.pipe(out, c)
		go func() {
			io.Copy(c, out)
			c.Close()
		}()
	}
}

// pipe forwards bytes towards the target and counts them.
func (p *Proxy) pipe(out, in net.Conn) {
	defer out.Close()
	b := make([]byte, 16<<10)
	left := p.cutSize() // per connection; negative: no limit yet
	for {
		n, err := in.Read(b)
		if n > 0 {
			p.mu.Lock()
			if p.stallAt > 0 {
				p.stallAt -= int64(n)
				p.stalled = p.stallAt <= 0
			}
			for p.stalled {
				p.resume.Wait()
			}
			if p.budget >= 0 && p.cuts > 0 {
				if left < 0 {
					left = p.budget
				}
				if left -= int64(n); left <= 0 {
					p.cuts--
					p.cut()
					p.mu.Unlock()
					return
				}
			}
			p.mu.Unlock()
			if _, werr := out.Write(b[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) cutSize() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.budget
}

// Cuts returns the number of remaining cuts.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}
