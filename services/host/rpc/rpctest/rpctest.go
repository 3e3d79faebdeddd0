// Package rpctest calls a gRPC server frame by frame, as an attacker does: it opens calls without a
// message, sends parts of messages and false lengths, and ignores the server's settings and
// windows. It is for tests.
package rpctest

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Conn is a connection to a server.
type Conn struct {
	conn net.Conn

	mu     sync.Mutex // of writing
	framer *http2.Framer
	block  hpackBlock
	next   uint32
	calls  map[uint32]*Call
	closed chan struct{}
}

// Dial connects to the server at address. config contains the caller's certificate; nil means
// plaintext.
func Dial(ctx context.Context, address string, config *tls.Config) (*Conn, error) {
	var d interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = new(net.Dialer)
	if config != nil {
		d = &tls.Dialer{Config: config}
	}
	raw, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &Conn{conn: raw, framer: http2.NewFramer(raw, raw), next: 1, calls: map[uint32]*Call{}, closed: make(chan struct{})}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := raw.Write([]byte(http2.ClientPreface)); err != nil {
		raw.Close()
		return nil, err
	}
	if err := c.framer.WriteSettings(); err != nil {
		raw.Close()
		return nil, err
	}
	go c.read()
	return c, nil
}

// Close ends the connection and its calls.
func (c *Conn) Close() error { return c.conn.Close() }

// Closed returns a channel that is closed when either side has ended the connection.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// Window sets how many bytes of each response the server may send before the caller makes room for
// more. The caller never does.
func (c *Conn) Window(n uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: n})
}

// Call is one call.
type Call struct {
	conn  *Conn
	id    uint32
	ended chan *status.Status
}

// Open sends the headers of a call, with more headers as names and values, and no message.
func (c *Conn) Open(method string, more ...string) (*Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := &Call{conn: c, id: c.next, ended: make(chan *status.Status, 1)}
	c.next += 2
	c.calls[call.id] = call
	fields := append([]string{":method", "POST", ":scheme", "https", ":path", method, ":authority", "lodge",
		"content-type", "application/grpc", "te", "trailers"}, more...)
	return call, c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: call.id, BlockFragment: c.block.encode(fields), EndHeaders: true})
}

// Send sends bytes of the call in frames of at most size, and the end of the caller's side if last.
// It ignores flow-control windows.
func (c *Call) Send(b []byte, size int, last bool) error {
	for {
		part := b[:min(size, len(b))]
		b = b[len(part):]
		c.conn.mu.Lock()
		err := c.conn.framer.WriteData(c.id, last && len(b) == 0, part)
		c.conn.mu.Unlock()
		if err != nil || len(b) == 0 {
			return err
		}
	}
}

// Reset ends the call from the caller's side.
func (c *Call) Reset() error {
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	return c.conn.framer.WriteRSTStream(c.id, http2.ErrCodeCancel)
}

// Status waits for the end of the call and returns its status. It returns nil if the call has not
// ended within this time.
func (c *Call) Status(within time.Duration) *status.Status {
	select {
	case s := <-c.ended:
		c.ended <- s
		return s
	case <-time.After(within):
		return nil
	}
}

// Prefix returns the bytes that precede a message of n bytes.
func Prefix(n int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(n)) }

// read receives the server's frames until the connection ends.
func (c *Conn) read() {
	defer close(c.closed)
	for {
		f, err := c.framer.ReadFrame()
		var of http2.StreamError
		switch {
		case errors.As(err, &of):
			c.end(of.StreamID, status.New(codes.Internal, of.Error()))
			continue
		case err != nil:
			c.mu.Lock()
			ids := make([]uint32, 0, len(c.calls))
			for id := range c.calls {
				ids = append(ids, id)
			}
			c.mu.Unlock()
			for _, id := range ids {
				c.end(id, status.New(codes.Unavailable, err.Error()))
			}
			return
		}
		c.take(f)
	}
}

func (c *Conn) take(f http2.Frame) {
	c.mu.Lock()
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			_ = c.framer.WriteSettingsAck() // the read that follows finds the same error
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = c.framer.WritePing(true, f.Data)
		}
	}
	c.mu.Unlock()
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		if f.StreamEnded() {
			c.end(f.StreamID, trailers(f))
		}
	case *http2.RSTStreamFrame:
		c.end(f.StreamID, status.New(codes.Canceled, "reset: "+f.ErrCode.String()))
	}
}

func (c *Conn) end(id uint32, s *status.Status) {
	c.mu.Lock()
	call := c.calls[id]
	delete(c.calls, id)
	c.mu.Unlock()
	if call != nil {
		call.ended <- s
	}
}

// trailers returns the status of a call.
func trailers(f *http2.MetaHeadersFrame) *status.Status {
	code, text, details := codes.Unknown, "", ""
	for _, h := range f.Fields {
		switch h.Name {
		case "grpc-status":
			if n, err := strconv.Atoi(h.Value); err == nil {
				code = codes.Code(n)
			}
		case "grpc-message":
			text = h.Value
		case "grpc-status-details-bin":
			details = h.Value
		}
	}
	if b, err := base64.RawStdEncoding.DecodeString(details); err == nil && details != "" {
		p := new(spb.Status)
		if proto.Unmarshal(b, p) == nil {
			return status.FromProto(p)
		}
	}
	return status.New(code, text)
}

// hpackBlock encodes headers.
type hpackBlock struct {
	out []byte
	enc *hpack.Encoder
}

func (h *hpackBlock) Write(b []byte) (int, error) {
	h.out = append(h.out, b...)
	return len(b), nil
}

func (h *hpackBlock) encode(fields []string) []byte {
	if h.enc == nil {
		h.enc = hpack.NewEncoder(h)
	}
	h.out = nil
	for i := 0; i+1 < len(fields); i += 2 {
		_ = h.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // Write gives no error
	}
	return h.out
}
