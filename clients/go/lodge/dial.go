package lodge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// maxMessage bounds every message in bytes, as the servers do.
const maxMessage = 4<<20 + 64<<10

// defaultPatience is how long a call goes on trying while nothing comes from the other side.
const defaultPatience = 30 * time.Second

// Client reserves tuples at the coordinator and draws the shares of its own party. It may be used by several goroutines
// at once.
type Client struct {
	config      Config
	coordinator *grpc.ClientConn // nil: not named by the configuration
	party       *grpc.ClientConn // nil: not named by the configuration
	patience    time.Duration
}

// Dial prepares a client. It connects when it is first used, and again by itself.
func Dial(c Config) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Coordinator.Address == "" && c.Party == "" {
		return nil, errorf(Invalid, "name a coordinator, a party or both", "the configuration leads nowhere")
	}
	cert, roots, err := c.credentials()
	if err != nil {
		return nil, err
	}
	x := &Client{config: c, patience: c.Patience}
	if x.patience == 0 {
		x.patience = defaultPatience
	}
	if c.Coordinator.Address != "" {
		if x.coordinator, err = connect(c.Coordinator, cert, roots); err != nil {
			return nil, err
		}
	}
	if i := c.own(); i >= 0 {
		if x.party, err = connect(c.Parties[i], cert, roots); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	return x, nil
}

// Close ends the connections, and with them all calls.
func (c *Client) Close() error {
	var errs []error
	for _, conn := range []*grpc.ClientConn{c.coordinator, c.party} {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}

// Config is what the client was made of.
func (c *Client) Config() Config { return c.config }

func (c *Config) credentials() (cert tls.Certificate, roots *x509.CertPool, err error) {
	if c.Certificate != nil {
		cert = *c.Certificate
	} else if cert, err = tls.LoadX509KeyPair(c.TLS.Certificate, c.TLS.Key); err != nil {
		return cert, nil, fmt.Errorf("lodge: certificate %s: %w", c.TLS.Certificate, err)
	}
	if c.Roots != nil {
		return cert, c.Roots, nil
	}
	b, err := os.ReadFile(c.TLS.CA)
	if err != nil {
		return cert, nil, fmt.Errorf("lodge: authority: %w", err)
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b) {
		return cert, nil, fmt.Errorf("lodge: authority %s holds no certificate", c.TLS.CA)
	}
	return cert, roots, nil
}

func connect(s Server, cert tls.Certificate, roots *x509.CertPool) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+s.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: []tls.Certificate{cert},
			NextProtos:   []string{"h2"},
			// Chain and name are verified below; only the comparison with the host name that was dialled is replaced.
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
	)
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
	names := slices.Clone(leaf.DNSNames)
	for _, u := range leaf.URIs {
		names = append(names, u.String())
	}
	if !slices.Contains(names, identity) {
		return fmt.Errorf("lodge: the server's certificate names %q, not %q", names, identity)
	}
	return nil
}

// stock is the coordinator's service.
func (c *Client) stock() (stockv1.StockServiceClient, error) {
	if c.coordinator == nil {
		return nil, errorf(Invalid, "add it to the configuration", "this client has no coordinator")
	}
	return stockv1.NewStockServiceClient(c.coordinator), nil
}

// tuples is the party's service.
func (c *Client) tuples() (tuplesv1.TuplesServiceClient, error) {
	if c.party == nil {
		return nil, errorf(Invalid, "set party in the configuration", "this client has no party whose shares it could draw")
	}
	return tuplesv1.NewTuplesServiceClient(c.party), nil
}

// call runs f, with a deadline for each attempt, until it succeeds, fails for good, ctx is done, or has failed for as long
// as the client's patience.
func (c *Client) call(ctx context.Context, f func(context.Context) error) error {
	p := c.pause()
	for {
		attempt, cancel := context.WithTimeout(ctx, callTime)
		err := fromError(f(attempt))
		cancel()
		if err == nil {
			return nil
		}
		if err := p.after(ctx, err); err != nil {
			return err
		}
	}
}

// callTime bounds one attempt of a call that does not stream; it is shorter than what the servers allow.
const callTime = 25 * time.Second
