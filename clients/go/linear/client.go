package linear

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/sample"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
)

// Client is connected to one party. It may be used by several goroutines concurrently.
type Client struct {
	name  string // of the party
	conn  *grpc.ClientConn
	calls linearv1.LinearServiceClient
	// Patience is how long products of encrypted matrices are retried after temporary errors; 0
	// means 30 s.
	Patience time.Duration
	// Workers is the maximal number of goroutines that encrypt; 0 means one per processor.
	Workers int
}

const (
	defaultPatience = 30 * time.Second
	pause           = 200 * time.Millisecond
	maxChunk        = 1 << 20
	passive         = "passive"
	// with a set whose owners prove their inputs
	passiveEvaluator = "passive_evaluator"
)

// Dial returns a client of the named party, or of the configuration's own party if the name is
// empty. It connects on first use.
func Dial(c lodge.Config, party string) (*Client, error) {
	if party == "" {
		party = c.Party
	}
	i := slices.IndexFunc(c.Parties, func(s lodge.Server) bool { return s.Name == party })
	if i < 0 {
		return nil, lodge.Errorf(lodge.Invalid, "name one of the configuration's parties", "there is no party %q", party)
	}
	conn, err := c.Connect(c.Parties[i])
	if err != nil {
		return nil, err
	}
	return New(party, conn), nil
}

// New returns a client of a party over a connection, which Close ends.
func New(party string, conn *grpc.ClientConn) *Client {
	return &Client{name: party, conn: conn, calls: linearv1.NewLinearServiceClient(conn)}
}

// Close closes the connection and ends all calls.
func (c *Client) Close() error { return c.conn.Close() }

func (c *Client) workers() int {
	if c.Workers > 0 {
		return c.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// bad returns an error about the party's response.
func (c *Client) bad(format string, args ...any) error {
	return &lodge.Error{Code: lodge.BadShares, What: fmt.Sprintf("party %s: ", c.name) + fmt.Sprintf(format, args...), Next: "tell its operator"}
}

// failed returns the error of a call.
func (c *Client) failed(err error) error {
	if err == nil {
		return nil
	}
	return lodge.AtParty(c.name, err)
}

// ofEngine converts an engine's error about the caller's input.
func ofEngine(err error) error {
	if err == nil {
		return nil
	}
	return lodge.Errorf(lodge.Invalid, "", "%v", err)
}

// find prepares a set by name, or the default set if the name is empty.
func find(name, other string) (*linear.Scheme, error) {
	if name == "" {
		name = other
	}
	s, err := linear.Find(name)
	return s, ofEngine(err)
}

// draw returns the randomness for encrypting a product.
func draw(purpose string) (*sample.Source, error) { return sample.Draw(rand.Reader, purpose) }

// upload sends bytes in chunks. Errors are reported by Recv.
type upload struct {
	send   func(chunk []byte) error
	held   []byte
	sent   uint64
	report func(sent uint64)
}

func (u *upload) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if u.held == nil {
			u.held = make([]byte, 0, maxChunk)
		}
		m := min(len(b), maxChunk-len(u.held))
		u.held = append(u.held, b[:m]...)
		b = b[m:]
		if len(u.held) == maxChunk {
			if err := u.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// flush sends the buffered bytes; the message must not be used again.
func (u *upload) flush() error {
	if len(u.held) == 0 {
		return nil
	}
	chunk := u.held
	u.held = nil
	if err := u.send(chunk); err != nil {
		return err
	}
	u.sent += uint64(len(chunk))
	if u.report != nil {
		u.report(u.sent)
	}
	return nil
}

// inputs sends ciphertexts with their header.
func (u *upload) inputs(in *linear.Inputs) error {
	if _, err := u.Write(in.Header()); err != nil {
		return err
	}
	var b []byte
	for i := range in.Len() {
		b = in.AppendCiphertext(b[:0], i)
		if _, err := u.Write(b); err != nil {
			return err
		}
	}
	for i := range in.ProofFrames() {
		if _, err := u.Write(in.ProofFrame(i)); err != nil {
			return err
		}
	}
	return nil
}

// ignore returns nil for io.EOF, the sender's error when a stream has ended: Recv reports the
// cause.
func ignore(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// pieces splits received data into pieces of known sizes.
type pieces struct {
	size func(i int) int // of piece i
	take func(i int, b []byte) error
	held []byte
	i    int
	most int
}

var errMore = errors.New("more answers than expected")

func (p *pieces) add(b []byte) error {
	for len(b) > 0 {
		if p.i == p.most {
			return errMore
		}
		n := min(len(b), p.size(p.i)-len(p.held))
		p.held = append(p.held, b[:n]...)
		b = b[n:]
		if len(p.held) == p.size(p.i) {
			if err := p.take(p.i, p.held); err != nil {
				return err
			}
			p.held = p.held[:0]
			p.i++
		}
	}
	return nil
}

// checkTerms compares the party's terms of a product with the plan.
func (c *Client) checkTerms(t *linearv1.Terms, security string, answers, size int) error {
	if t.GetSecurity() != security || int(t.GetAnswers()) != answers || t.GetAnswerBytes() != uint64(size) {
		return c.bad("it plans %d answers of %d bytes with security %q, but this client plans %d of %d bytes, %s", t.GetAnswers(), t.GetAnswerBytes(), t.GetSecurity(), answers, size, security)
	}
	return nil
}

// again waits before another attempt, if one can succeed before the deadline.
func again(ctx context.Context, err error, until time.Time) error {
	if e := lodge.FromError(err); !e.Retry() || time.Now().Add(pause).After(until) {
		return err
	}
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return err
	}
}
