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

// Limits on connections that are not charged to an identity. When another one arrives the oldest is
// closed, so that holding all of them does not keep the next caller away.
const (
	mostPending = 128 // connections whose TLS handshake has not finished
	mostLoose   = 64  // connections after the handshake: of strangers, of callers without a token yet, and above a caller's limit
)

// connections counts the connections of a server. A connection is pending until its TLS handshake
// has finished. Then it is charged to the identity in its certificate, or it is loose. A loose
// connection is charged when a call on it is authenticated; if the caller's limit is reached, such
// calls are rejected with a reason.
type connections struct {
	places *places
	// identify returns the holder of a verified certificate.
	identify func(credentials.TLSInfo) (caller, bool)
	refused  func(reason string)
	tell     func(role Role, n int) // reports charged connections: 1 for a new one, -1 for a closed one

	mu             sync.Mutex
	pending, loose []*connection // oldest first
}

// listener wraps the connections that l accepts.
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

// crowd adds c to a list, and closes its oldest connection if the list then exceeds most.
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

// shook classifies c after its handshake.
func (cs *connections) shook(c *connection, info credentials.TLSInfo) {
	cs.remove(&cs.pending, c)
	if who, ok := cs.identify(info); ok && cs.settle(c, who) == nil {
		return
	}
	cs.crowd(&cs.loose, c, mostLoose, RefusedStranger)
}

// settle charges c to who, unless it is charged already.
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
		e := Errorf(Busy, "close a connection, or raise callers.connections_per_client and callers.connections in the configuration of the called process",
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

// connection is an accepted connection.
type connection struct {
	net.Conn
	of   *connections
	wire wire

	mu      sync.Mutex
	closed  bool
	holders []caller // the identities that it is charged to: that of its certificate, or those of its tokens
}

// Close implements net.Conn, and stops charging the connection.
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

// handshaker performs TLS handshakes and reports their results to connections.
type handshaker struct {
	credentials.TransportCredentials
	of *connections
}

// authInfo identifies the connection of a call.
type authInfo struct {
	credentials.TLSInfo
	from *connection
}

// ServerHandshake implements credentials.TransportCredentials. gRPC has already set a deadline on
// raw.
func (h handshaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	from, accepted := raw.(*connection)
	secure, ok := info.(credentials.TLSInfo)
	if !accepted || !ok {
		conn.Close()
		return nil, nil, Errorf(Internal, "", "the connection was not accepted by this server")
	}
	h.of.shook(from, secure)
	return &framed{Conn: conn, wire: &from.wire}, authInfo{secure, from}, nil
}

// Clone implements credentials.TransportCredentials.
func (h handshaker) Clone() credentials.TransportCredentials {
	return handshaker{h.TransportCredentials.Clone(), h.of}
}

// connectionOf returns the connection of a call.
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
