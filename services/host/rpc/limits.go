package rpc

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// Limits restrict the connections and calls of callers. They exist because every identity that a
// configuration pins may call something, and a call costs memory before its message has arrived.
//
// A peer, the coordinator, an owner and the operator are members: their number is fixed by the
// roster, so that they have bounds for each identity and none in all. The totals are for clients. A
// client that takes all of them therefore never keeps a member away.
type Limits struct {
	// Connections of all clients together, and of one client. 0 means 512 and 64.
	Connections, ConnectionsPerClient int
	// Calls of all clients that run at the same time, and of one client; a stream is one call for
	// as long as it is open. 0 means 512 and 64.
	Calls, CallsPerClient int
}

// Limits of members. A member needs a stream for each session, and another for its exchange in it.
const (
	memberConnections = 64
	memberCalls       = 512
	memberStreams     = 256
)

// clientStreams bounds the streams among the calls of a client. A stream may hold a message of
// MaxMessage, plus data in transit.
const clientStreams = 32

func (l Limits) filled() Limits {
	return Limits{
		Connections: cmp.Or(l.Connections, 512), ConnectionsPerClient: cmp.Or(l.ConnectionsPerClient, 64),
		Calls: cmp.Or(l.Calls, 512), CallsPerClient: cmp.Or(l.CallsPerClient, 64),
	}
}

// Valid returns an error if a limit is negative or a client may have more than all clients
// together.
func (l Limits) Valid() error {
	l = l.filled()
	for _, v := range []struct {
		name     string
		one, all int
	}{{"connections", l.ConnectionsPerClient, l.Connections}, {"calls", l.CallsPerClient, l.Calls}} {
		if v.one < 1 || v.all < v.one {
			return fmt.Errorf("%s_per_client is %d and %s is %d; write at least 1 for a client, and for all no less than for one", v.name, v.one, v.name, v.all)
		}
	}
	return nil
}

// The reasons for which Options.Refused is called.
const (
	RefusedCall       = "calls"       // the caller, or all clients, have too many calls running
	RefusedConnection = "connections" // the caller, or all clients, have too many connections
	RefusedHandshake  = "handshakes"  // a connection was closed before its TLS handshake had ended
	RefusedStranger   = "strangers"   // a connection was closed that belongs to no identity with room for it
	RefusedSlow       = "slow"        // a message did not arrive in time
	RefusedMessage    = "message"     // a message was announced that is larger than its method takes
)

// Refusals are all of these reasons.
var Refusals = []string{RefusedCall, RefusedConnection, RefusedHandshake, RefusedStranger, RefusedSlow, RefusedMessage}

// caller is an identity, whatever it proves it with.
type caller struct {
	role Role
	name string
}

func (c caller) client() bool { return c.role == Client }

// places counts the callers' use of one resource.
type places struct {
	mu                  sync.Mutex
	clients             int // held by all clients
	held                map[caller]int
	all, client, member int // the bounds
}

func newPlaces(all, client, member int) *places {
	return &places{held: map[caller]int{}, all: all, client: client, member: member}
}

// take takes one place for c, or returns the bound that is reached.
func (p *places) take(c caller) (full string, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	most = p.member
	if c.client() {
		most = p.client
	}
	//lodge:check rpc/places-one run=TestCallsOfOneClient|TestConnectionsOfOneClient one identity takes what it likes
	if p.held[c] >= most {
		return fmt.Sprintf("%s %s", c.role, c.name), most
	}
	//lodge:check rpc/places-all run=TestCallsOfAllClients all clients together take what they like
	if c.client() && p.clients >= p.all {
		return "all clients together", p.all
	}
	p.held[c]++
	if c.client() {
		p.clients++
	}
	return "", 0
}

// leave releases one place of c.
func (p *places) leave(c caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[c]--; p.held[c] == 0 {
		delete(p.held, c)
	}
	if c.client() {
		p.clients--
	}
}

// retryBusy is when a call that found no place is worth another try.
const retryBusy = time.Second

// enter takes a place for one call among those of its kind. The caller calls leave once.
func (s *Server) enter(p Principal, kind string, of *places) (leave func(), refused *Error) {
	c := caller{p.Role, p.Name}
	if full, most := of.take(c); full != "" {
		s.opts.Refused(RefusedCall)
		e := Errorf(Busy, "wait for one to end, or have callers.calls_per_client and callers.calls raised in the configuration of the process that was called",
			"%s may have %d %s running", full, most, kind)
		e.Retry = retryBusy
		return nil, e
	}
	return func() { of.leave(c) }, nil
}
