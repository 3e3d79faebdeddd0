package lodge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// maxMessage is the maximal size of a message in bytes, as on the servers.
const maxMessage = 4<<20 + 64<<10

// defaultPatience is how long a call is retried while the other side does not respond.
const defaultPatience = 30 * time.Second

// Client reserves tuples at the coordinator and fetches the shares of its own party; [Dial] creates
// one. Several goroutines may use it concurrently.
type Client struct {
	config      Config
	coordinator *grpc.ClientConn // nil if the configuration does not name one
	party       *grpc.ClientConn // nil if the configuration does not name one
	patience    time.Duration
}

// Dial returns a client. It connects on first use, and reconnects by itself.
func Dial(c Config) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Coordinator.Address == "" && c.Party == "" {
		return nil, Errorf(Invalid, "name a coordinator, a party or both", "the configuration names neither a coordinator nor a party")
	}
	certs, roots, err := c.credentials(c.tokens())
	if err != nil {
		return nil, err
	}
	x := &Client{config: c, patience: c.Patience}
	if x.patience == 0 {
		x.patience = defaultPatience
	}
	if c.Coordinator.Address != "" {
		if x.coordinator, err = connect(c.Coordinator, certs, roots); err != nil {
			return nil, err
		}
	}
	if i := c.own(); i >= 0 {
		if x.party, err = connect(c.Parties[i], certs, roots); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	return x, nil
}

// Connect returns a connection to one of the servers, with the client's certificate or token, for
// calls without a method in this package. It connects on first use, and reconnects by itself.
func (c *Config) Connect(s Server) (*grpc.ClientConn, error) {
	certs, roots, err := c.credentials(s.TokenFile != "")
	if err != nil {
		return nil, err
	}
	return connect(s, certs, roots)
}

// Close closes the connections and ends all calls.
func (c *Client) Close() error {
	var errs []error
	for _, conn := range []*grpc.ClientConn{c.coordinator, c.party} {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}

// Config returns the client's configuration.
func (c *Client) Config() Config { return c.config }

// credentials returns the client's certificate, if it has one, and the authorities of the servers.
// Without a certificate, tokens identify the client.
func (c *Config) credentials(tokens bool) (certs []tls.Certificate, roots *x509.CertPool, err error) {
	switch {
	case c.Certificate != nil:
		certs = []tls.Certificate{*c.Certificate}
	case c.TLS.Certificate != "" || !tokens:
		cert, err := tls.LoadX509KeyPair(c.TLS.Certificate, c.TLS.Key)
		if err != nil {
			return nil, nil, fmt.Errorf("lodge: certificate %s: %w", c.TLS.Certificate, err)
		}
		certs = []tls.Certificate{cert}
	}
	if c.Roots != nil {
		return certs, c.Roots, nil
	}
	b, err := os.ReadFile(c.TLS.CA)
	if err != nil {
		return nil, nil, fmt.Errorf("lodge: authority: %w", err)
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b) {
		return nil, nil, fmt.Errorf("lodge: authority %s holds no certificate", c.TLS.CA)
	}
	return certs, roots, nil
}

// tokens reports whether there is a token for every server that the client calls.
func (c *Config) tokens() bool {
	i := c.own()
	return (c.Coordinator.Address == "" || c.Coordinator.TokenFile != "") && (i < 0 || c.Parties[i].TokenFile != "")
}

// token adds the token from a file to the headers of every call.
type token string

func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	b, err := os.ReadFile(string(t))
	raw := strings.TrimSpace(string(b))
	if err == nil && (raw == "" || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' })) {
		err = fmt.Errorf("%s does not hold one token", string(t))
	}
	if err != nil {
		return nil, status.Errorf(codes.Unauthenticated, "token: %v", err)
	}
	return map[string]string{"authorization": "Bearer " + raw}, nil
}

// RequireTransportSecurity prevents the token from being sent over unencrypted connections.
func (token) RequireTransportSecurity() bool { return true }

func connect(s Server, certs []tls.Certificate, roots *x509.CertPool) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: certs,
			NextProtos:   []string{"h2"},
			// The chain and the name are verified below; only the comparison with the dialled host
			// name is replaced.
			InsecureSkipVerify: true,
			VerifyConnection:   func(t tls.ConnectionState) error { return verifyServer(t, roots, s.Identity) },
		})),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
	}
	if s.TokenFile != "" {
		options = append(options, grpc.WithPerRPCCredentials(token(s.TokenFile)))
	}
	return grpc.NewClient("passthrough:///"+s.Address, options...)
}

func verifyServer(s tls.ConnectionState, roots *x509.CertPool, identity string) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("lodge: the server has no certificate")
	}
	leaf := s.PeerCertificates[0]
	intermediates := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil {
		return fmt.Errorf("lodge: the server's certificate: %w", err)
	}
	var names []string
	for _, n := range leaf.DNSNames {
		//lodge:check client/dns-name run=TestDNSNamesAreNoURIs a DNS name that is written like a URI makes its holder a party
		if strings.ContainsAny(n, ":/") {
			continue
		}
		names = append(names, n)
	}
	for _, u := range leaf.URIs {
		names = append(names, u.String())
	}
	if !slices.Contains(names, identity) {
		return fmt.Errorf("lodge: the server's certificate names %q, not %q", names, identity)
	}
	return nil
}

// stock returns the coordinator's service.
func (c *Client) stock() (stockv1.StockServiceClient, error) {
	if c.coordinator == nil {
		return nil, Errorf(Invalid, "add it to the configuration", "the configuration has no coordinator")
	}
	return stockv1.NewStockServiceClient(c.coordinator), nil
}

// tuples returns the party's service.
func (c *Client) tuples() (tuplesv1.TuplesServiceClient, error) {
	if c.party == nil {
		return nil, Errorf(Invalid, "set party in the configuration", "the configuration names no party to draw shares from")
	}
	return tuplesv1.NewTuplesServiceClient(c.party), nil
}

// call runs f, with a deadline for each attempt, until it succeeds, fails permanently, ctx is done,
// or it has failed for the duration of the client's patience.
func (c *Client) call(ctx context.Context, f func(context.Context) error) error {
	p := c.pause()
	for {
		attempt, cancel := context.WithTimeout(ctx, callTime)
		err := FromError(f(attempt))
		cancel()
		if err == nil {
			return nil
		}
		if err := p.after(ctx, err); err != nil {
			return err
		}
	}
}

// callTime is the time limit of one attempt of a call that does not stream; it is shorter than the
// servers' limit.
const callTime = 25 * time.Second
