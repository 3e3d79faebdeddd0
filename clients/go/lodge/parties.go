package lodge

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
)

// Parties holds connections to all parties, in the order of the roster; [DialParties] creates them.
// It may be used by several goroutines concurrently.
type Parties struct {
	names []string
	conns []*grpc.ClientConn
}

// DialParties returns connections to all parties of a configuration. They connect on first use, and
// reconnect by themselves.
func DialParties(c Config) (*Parties, error) {
	if len(c.Parties) == 0 {
		return nil, Errorf(Invalid, "`lodge init` writes configurations of clients", "the configuration names no parties")
	}
	p := &Parties{}
	for _, s := range c.Parties {
		conn, err := c.Connect(s)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.names, p.conns = append(p.names, s.Name), append(p.conns, conn)
	}
	return p, nil
}

// PartiesOver returns the caller's own connections as Parties, for cases that [DialParties] does
// not support. names and conns are in the order of the roster. Close closes the connections.
func PartiesOver(names []string, conns []*grpc.ClientConn) *Parties {
	return &Parties{names: names, conns: conns}
}

// Close closes the connections and ends all calls.
func (p *Parties) Close() error {
	var errs []error
	for _, conn := range p.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// Len returns the number of parties.
func (p *Parties) Len() int { return len(p.names) }

// Names returns the names of the parties.
func (p *Parties) Names() []string { return append([]string(nil), p.names...) }

// Name returns the name of party i, in [0, Len()).
func (p *Parties) Name(i int) string { return p.names[i] }

// Conn returns the connection to party i, in [0, Len()).
func (p *Parties) Conn(i int) *grpc.ClientConn { return p.conns[i] }

// Check returns an error unless there is a party i.
func (p *Parties) Check(i int) error {
	if i < 0 || i >= len(p.names) {
		return Errorf(Invalid, "parties count from 0", "there is no party %d among %d", i, len(p.names))
	}
	return nil
}

// Failed returns the error of a call to party i, with the party's name, or nil for nil.
func (p *Parties) Failed(i int, err error) error {
	if err == nil {
		return nil
	}
	return AtParty(p.names[i], err)
}

// AtParty returns the error of a call to a party, with the party's name in front. err is not nil.
func AtParty(name string, err error) *Error {
	e := *FromError(err)
	e.What = fmt.Sprintf("party %s: %s", name, e.What)
	return &e
}

// Each calls f for every party concurrently and waits for all calls. It returns the errors by
// party, with the parties' names.
func (p *Parties) Each(f func(i int, conn *grpc.ClientConn) error) []error {
	errs := make([]error, p.Len())
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = p.Failed(i, f(i, p.conns[i])) })
	}
	group.Wait()
	return errs
}

// FromAll calls f for every party concurrently and returns the responses, by party. The first
// failure cancels the other calls and is returned, with the name of its party.
func FromAll[T any](ctx context.Context, p *Parties, f func(ctx context.Context, conn *grpc.ClientConn) (T, error)) ([]T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	list := make([]T, p.Len())
	failed := false
	for _, err := range p.Each(func(i int, conn *grpc.ClientConn) (err error) {
		if list[i], err = f(ctx, conn); err != nil {
			cancel(p.Failed(i, err)) // only the first call has an effect
		}
		return err
	}) {
		failed = failed || err != nil
	}
	if failed {
		return nil, FromError(context.Cause(ctx))
	}
	return list, nil
}

// Agreed calls f for every party like [FromAll] and returns the common response. If equal reports a
// difference from the first party's response, the error has the code Conflict and begins with what.
func Agreed[T any](ctx context.Context, p *Parties, what, next string, equal func(a, b T) bool,
	f func(ctx context.Context, conn *grpc.ClientConn) (T, error),
) (first T, err error) {
	list, err := FromAll(ctx, p, f)
	if err != nil {
		return first, err
	}
	for i, other := range list {
		//lodge:check client/agreed parties that give different responses count as agreed
		if !equal(list[0], other) {
			return first, Errorf(Conflict, next, "%s at party %s differs from that at party %s", what, p.names[i], p.names[0])
		}
	}
	return list[0], nil
}
