package console

import (
	"context"
	"net"
	"slices"
	"sync"
)

// Limits on connections. When another one arrives, the oldest of its list is closed, so that nobody
// keeps the next browser away by holding connections.
const (
	mostStrange = 128  // connections on which no signed-in browser has sent a request
	mostKnown   = 1024 // all others
)

// connections holds the open connections of the console.
type connections struct {
	mu             sync.Mutex
	strange, known []*connection // oldest first
}

// newConnections returns no connections.
func newConnections() *connections { return &connections{} }

// connection is an accepted connection.
type connection struct {
	net.Conn
	of *connections
}

// listener wraps the connections that l accepts.
func (cs *connections) listener(l net.Listener) net.Listener { return listener{l, cs} }

type listener struct {
	net.Listener
	of *connections
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{raw, l.of}
	l.of.add(&l.of.strange, c, mostStrange)
	return c, nil
}

// add adds a connection to a list, and closes the oldest one if the list is then too long.
func (cs *connections) add(list *[]*connection, c *connection, most int) {
	cs.mu.Lock()
	*list = append(*list, c)
	var oldest *connection
	//lodge:check console/connections [run=TestStrangeConnections] connections fill the memory
	if len(*list) > most {
		oldest = (*list)[0]
		*list = slices.Clone((*list)[1:])
	}
	cs.mu.Unlock()
	if oldest != nil {
		oldest.Close()
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	gone := func(x *connection) bool { return x == c }
	c.of.mu.Lock()
	c.of.strange, c.of.known = slices.DeleteFunc(c.of.strange, gone), slices.DeleteFunc(c.of.known, gone)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

type connectionKey struct{}

// context adds the connection of a request to its context. It is http.Server.ConnContext.
func (cs *connections) context(ctx context.Context, raw net.Conn) context.Context {
	if t, ok := raw.(interface{ NetConn() net.Conn }); ok {
		raw = t.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, raw)
}

// isKnown records that a signed-in browser uses the connection of a request.
func (cs *connections) isKnown(ctx context.Context) {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return
	}
	cs.mu.Lock()
	at := slices.Index(cs.strange, c)
	if at >= 0 {
		cs.strange = slices.Delete(cs.strange, at, at+1)
	}
	cs.mu.Unlock()
	if at >= 0 {
		cs.add(&cs.known, c, mostKnown)
	}
}
