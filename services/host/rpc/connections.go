package rpc

import (
	"context"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// Bounds on connections that belong to no identity with a place for them. The oldest is closed when another comes, so
// that whoever holds all of them cannot keep the next caller away.
const (
	mostPending = 128 // whose TLS handshake has not ended
	mostLoose   = 64  // after it: of strangers, of callers that have sent no token yet, and beyond a caller's places
)

// connections counts the connections of a server. A connection is pending until its TLS handshake has ended. Then it has
// a place of the identity in its certificate, or it is loose. A loose connection gets a place when a call on it is
// authenticated; while there is none, such calls are refused with a reason.
type connections struct {
	places *places
	// identify names the holder of a verified certificate.
	identify func(credentials.TLSInfo) (caller, bool)
	refused  func(reason string)
	tell     func(role Role, n int) // of places that are taken (1) and left (-1)

	mu             sync.Mutex
	pending, loose []*connection // oldest first
}

// listener makes connections of what l accepts.
func (cs *connections) listener(l net.Listener) net.Listener { return listener{l, cs} }

type listener struct {
	net.Listener
	of *connections
}

func (l listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: raw, of: l.of}
	l.of.crowd(&l.of.pending, c, mostPending, RefusedHandshake)
	return c, nil
}

// crowd adds c to a list, and closes its oldest connection if there are more than most.
func (cs *connections) crowd(list *[]*connection, c *connection, most int, reason string) {
	cs.mu.Lock()
	*list = append(*list, c)
	var oldest *connection
	//lodge:check rpc/crowd run=TestPending|TestLoose connections without an identity pile up
	if len(*list) > most {
		oldest, *list = (*list)[0], slices.Clone((*list)[1:])
	}
	cs.mu.Unlock()
	if oldest != nil {
		cs.refused(reason)
		oldest.Close()
	}
}

func (cs *connections) remove(list *[]*connection, c *connection) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	*list = slices.DeleteFunc(*list, func(x *connection) bool { return x == c })
}

// shook takes c, whose handshake has ended, into account.
func (cs *connections) shook(c *connection, info credentials.TLSInfo) {
	cs.remove(&cs.pending, c)
	if who, ok := cs.identify(info); ok && cs.settle(c, who) == nil {
		return
	}
	cs.crowd(&cs.loose, c, mostLoose, RefusedStranger)
}

// settle gives c a place of who, unless it has one.
func (cs *connections) settle(c *connection, who caller) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case slices.Contains(c.holders, who):
		return nil
	case c.closed:
		return Errorf(Unavailable, "connect again", "the connection is closed")
	}
	if full, most := cs.places.take(who); full != "" {
		cs.refused(RefusedConnection)
		e := Errorf(Busy, "close one, or have callers.connections_per_client and callers.connections raised in the configuration of the process that was called",
			"%s may have %d connections", full, most)
		e.Retry = retryBusy
		return e
	}
	if c.holders = append(c.holders, who); len(c.holders) == 1 {
		cs.remove(&cs.loose, c)
	}
	cs.tell(who.role, 1)
	return nil
}

// connection is one that a server has accepted.
type connection struct {
	net.Conn
	of   *connections
	wire wire

	mu      sync.Mutex
	closed  bool
	holders []caller // who have a place for it: one, or those whose tokens came on it
}

// Close implements net.Conn, and gives its places back.
func (c *connection) Close() error {
	c.mu.Lock()
	holders, first := c.holders, !c.closed
	c.closed, c.holders = true, nil
	c.mu.Unlock()
	if first {
		c.wire.close()
		c.of.remove(&c.of.pending, c)
		c.of.remove(&c.of.loose, c)
		for _, h := range holders {
			c.of.places.leave(h)
			c.of.tell(h.role, -1)
		}
	}
	return c.Conn.Close()
}

// handshaker is TLS that tells connections what came of it.
type handshaker struct {
	credentials.TransportCredentials
	of *connections
}

// authInfo is what the calls on a connection know of it.
type authInfo struct {
	credentials.TLSInfo
	from *connection
}

// ServerHandshake implements credentials.TransportCredentials. gRPC has set a deadline on raw.
func (h handshaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	from, accepted := raw.(*connection)
	secure, ok := info.(credentials.TLSInfo)
	if !accepted || !ok {
		conn.Close()
		return nil, nil, Errorf(Internal, "", "a connection that this server did not accept")
	}
	h.of.shook(from, secure)
	return &framed{Conn: conn, wire: &from.wire}, authInfo{secure, from}, nil
}

// Clone implements credentials.TransportCredentials.
func (h handshaker) Clone() credentials.TransportCredentials {
	return handshaker{h.TransportCredentials.Clone(), h.of}
}

// connectionOf gives the connection that a call came on.
func connectionOf(ctx context.Context) (authInfo, *Error) {
	pr, ok := peer.FromContext(ctx)
	if !ok {
		return authInfo{}, Errorf(Unauthenticated, "", "no connection")
	}
	info, ok := pr.AuthInfo.(authInfo)
	if !ok {
		return authInfo{}, Errorf(Unauthenticated, "connect with TLS", "no TLS")
	}
	return info, nil
}

func headersOf(ctx context.Context) metadata.MD {
	md, _ := metadata.FromIncomingContext(ctx)
	return md
}
