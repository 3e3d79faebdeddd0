package byzantine

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// Attacks of a peer with streams, connections, certificates and rosters: they are rejected, or the
// session ends and the peer is suspected; and the parties continue to work.
func TestHostileStreams(t *testing.T) { underAttack(t, attackOf, func(i int) bool { return i%8 == 3 }) }

// attackOf is the test of an attack of a peer; nil if it is somebody else's.
func attackOf(name string) func(c *cluster) {
	if f, ok := strings.CutPrefix(name, "hello-"); ok {
		return func(c *cluster) { c.saysAnotherHello(f) }
	}
	if who, ok := strings.CutPrefix(name, "certificate-of-"); ok {
		return func(c *cluster) { c.isNoPeer(who) }
	}
	return map[string]func(c *cluster){
		"no-hello": (*cluster).saysNoHello, "strange-sessions": (*cluster).strangeSessions,
		"first-a-frame": (*cluster).firstAFrame,
		"drop-by-drop":  (*cluster).dropByDrop, "length-that-lies": (*cluster).lengthThatLies,
		"zip-bomb":         (*cluster).zipBomb,
		"two-incarnations": (*cluster).twoIncarnations, "false-farewell": (*cluster).falseFarewell,
		"nothing-after-hello": (*cluster).nothingAfterHello,
		"certificate-swapped": (*cluster).certificateSwapped, "roster-swapped": (*cluster).rosterSwapped,
	}[name]
}

// Every attack has a test, and is in the list once.
func TestAttacksAreTested(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range attacks() {
		if seen[a.Name] || (attackOf(a.Name) == nil) == (lieOf(a.Name) == nil) || a.Does == "" || a.Ends == "" {
			t.Errorf("%+v", a)
		}
		seen[a.Name] = true
	}
}

// last is the party whose certificate the attacker has.
func (c *cluster) last() int { return len(c.conns) - 1 }

// of are the files of a certificate.
func (c *cluster) of(base string) rpc.Files {
	return rpc.Files{Certificate: filepath.Join(c.files.Dir, base+".pem"), Key: filepath.Join(c.files.Dir,
		base+".key"), CA: filepath.Join(c.files.Dir, "ca.pem")}
}

// raw is a connection to party 0 with a certificate.
func (c *cluster) raw(files rpc.Files) exchangev1.ExchangeServiceClient {
	c.t.Helper()
	credentials, err := rpc.LoadCredentials(files)
	must(c.t, err)
	m := c.files.Roster.Parties[0]
	conn, err := rpc.Dial(m.Address, m.Identity, credentials)
	must(c.t, err)
	c.t.Cleanup(func() { conn.Close() })
	return exchangev1.NewExchangeServiceClient(conn)
}

// peer is raw with the last party's certificate.
func (c *cluster) peer() exchangev1.ExchangeServiceClient {
	return c.raw(c.of(c.files.Roster.Parties[c.last()].Name + "/tls"))
}

// open opens a stream to party 0.
func (c *cluster) open(x exchangev1.ExchangeServiceClient,
	options ...grpc.CallOption) exchangev1.ExchangeService_ExchangeClient {
	c.t.Helper()
	st, err := x.Exchange(c.context(), options...)
	must(c.t, err)
	return st
}

// hello is the true one for a session of keys.
func (c *cluster) hello(s *jobv1.SessionSpec) *exchangev1.Hello {
	c.t.Helper()
	known, err := params.Lookup(set)
	must(c.t, err)
	hash, roster, digest := known.Hash(), c.files.Roster.Hash(), job.Digest(s)
	return &exchangev1.Hello{
		Ref: s.GetRef(), ProtocolVersion: job.ProtocolVersion, ParamsHash: hash[:], RosterHash: roster[:],
		SpecDigest: digest[:], Incarnation: make([]byte, 16),
	}
}

// say sends a hello and returns the first response, even if sending failed.
func say(st exchangev1.ExchangeService_ExchangeClient, h *exchangev1.Hello) (*exchangev1.ExchangeResponse, error) {
	_ = st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Hello{Hello: h}})
	return st.Recv()
}

// honest starts a session of keys at all but the last party, whose part the attacker plays.
func (c *cluster) honest() *jobv1.SessionSpec {
	c.t.Helper()
	s := c.spec(cheattest.Keys)
	for i := range c.last() {
		must(c.t, c.begin(i, s))
	}
	return s
}

// suspected waits for the end of such a session: for this check if one is given, and blaming nobody
// but the last party.
func (c *cluster) suspected(s *jobv1.SessionSpec, check string) {
	c.t.Helper()
	culprit, found := uint32(c.last()), false
	for i := range c.last() {
		st := c.await(i, s)
		f := st.GetFailure()
		found = found || slices.Contains(f.GetSuspects(), culprit) || f.GetBlame() != nil
		switch {
		case st.GetState() != jobv1.JobState_JOB_STATE_FAILED && st.GetState() != jobv1.JobState_JOB_STATE_TIMED_OUT,
			check != "" && f.GetCheck() != check:
			c.t.Errorf("party %d: %v, want check %q", i, st, check)
		case f.GetBlame() != nil && f.GetBlame().GetParty() != culprit:
			c.t.Errorf("party %d blames party %d", i, f.GetBlame().GetParty())
		}
	}
	if !found {
		c.t.Error("nobody suspects the culprit")
	}
}

// meanwhile runs a session while the attack is on.
func (c *cluster) meanwhile() {
	c.t.Helper()
	c.complete(c.spec(cheattest.Scalars))
}

func (c *cluster) code(err error, want ...codes.Code) {
	c.t.Helper()
	if !slices.Contains(want, status.Code(err)) {
		c.t.Errorf("got %v, want %v", err, want)
	}
}

func (c *cluster) saysNoHello() {
	var streams []exchangev1.ExchangeService_ExchangeClient
	x := c.peer()
	for range 40 {
		streams = append(streams, c.open(x))
	}
	c.meanwhile()
	for _, st := range streams {
		_, err := st.Recv()
		c.code(err, codes.Unavailable)
	}
}

func (c *cluster) strangeSessions() {
	x, h := c.peer(), c.hello(c.spec(cheattest.Keys))
	var streams []exchangev1.ExchangeService_ExchangeClient
	for i := range 100 {
		st := c.open(x)
		h := proto.Clone(h).(*exchangev1.Hello)
		h.Ref.JobId = fmt.Sprintf("strange-%d", i)
		_ = st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Hello{Hello: h}})
		streams = append(streams, st)
	}
	c.meanwhile()
	many := 0
	for _, st := range streams {
		_, err := st.Recv()
		c.code(err, codes.Unavailable)
		if err != nil && strings.Contains(err.Error(), "too many streams") {
			many++
		}
	}
	if many < 100-64 {
		c.t.Errorf("%d streams were refused at once", many)
	}
}

func (c *cluster) firstAFrame() {
	st := c.open(c.peer())
	_ = st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: &exchangev1.Frame{Data: []byte{1}}}})
	_, err := st.Recv()
	c.code(err, codes.InvalidArgument)
}

func (c *cluster) nothingAfterHello() {
	s := c.honest()
	st := c.open(c.peer())
	if m, err := say(st, c.hello(s)); err != nil || m.GetWelcome() == nil {
		c.t.Fatalf("%v, %v", m, err)
	}
	c.suspected(s, "")
}

func (c *cluster) twoIncarnations() {
	s := c.honest()
	h := c.hello(s)
	if m, err := say(c.open(c.peer()), h); err != nil || m.GetWelcome() == nil {
		c.t.Fatalf("%v, %v", m, err)
	}
	h.Incarnation[3]++
	_, err := say(c.open(c.peer()), h)
	if err == nil {
		c.t.Error("another incarnation is welcome")
	}
	c.suspected(s, exchange.CheckIncarnation)
}

func (c *cluster) falseFarewell() {
	s := c.honest()
	st := c.open(c.peer())
	if m, err := say(st, c.hello(s)); err != nil || m.GetWelcome() == nil {
		c.t.Fatalf("%v, %v", m, err)
	}
	_ = st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Abort{Abort: &exchangev1.Abort{
		Outcome: string(runner.Blamed), Round: "keygen/proofs", Check: "keygen-equation", Reason: "it lies",
		Blamed: proto.Uint32(0),
	}}})
	c.suspected(s, "")
}

// saysAnotherHello changes one field of the hello.
func (c *cluster) saysAnotherHello(field string) {
	s := c.honest()
	h := c.hello(s)
	r := h.ProtoReflect()
	d := r.Descriptor().Fields().ByName(protoreflect.Name(field))
	ends, check := []codes.Code{codes.FailedPrecondition}, exchange.CheckPins
	switch field {
	case "ref":
		h.Ref = &jobv1.SessionRef{JobId: "nothing", Ordinal: 1}
		ends, check = []codes.Code{codes.Unavailable}, ""
	case "protocol_version":
		h.ProtocolVersion++
	case "incarnation":
		h.Incarnation = h.Incarnation[1:]
		ends, check = []codes.Code{codes.InvalidArgument}, ""
	default:
		b := bytes.Clone(r.Get(d).Bytes())
		b[0] ^= 1
		r.Set(d, protoreflect.ValueOfBytes(b))
	}
	_, err := say(c.open(c.peer()), h)
	c.code(err, ends...)
	c.suspected(s, check)
}

// isNoPeer speaks with another certificate than a peer's.
func (c *cluster) isNoPeer(who string) {
	files, want := rpc.Files{}, codes.PermissionDenied
	switch who {
	case "coordinator":
		files = c.of("coordinator/tls")
	case "client":
		files = c.of("clients/" + devnet.ClientName(0))
	case "stranger":
		ca, err := pki.NewAuthority("somebody else", time.Hour)
		must(c.t, err)
		certificate, key, err := ca.Issue(pki.Leaf{Identity: c.files.Roster.Parties[c.last()].Identity,
			Hosts: []string{"127.0.0.1"}, Lifetime: time.Hour})
		must(c.t, err)
		must(c.t, os.WriteFile(filepath.Join(c.files.Dir, "stranger.pem"), certificate, 0o600))
		must(c.t, os.WriteFile(filepath.Join(c.files.Dir, "stranger.key"), key, 0o600))
		files, want = c.of("stranger"), codes.Unavailable
	}
	st, err := c.raw(files).Exchange(c.context())
	if err == nil {
		_, err = say(st, c.hello(c.spec(cheattest.Keys)))
	}
	c.code(err, want)
}

// post sends the body of a call as it is, with the last party's certificate, and gives the status
// of the call.
func (c *cluster) post(body io.Reader, header map[string]string) (string, error) {
	c.t.Helper()
	files := c.of(c.files.Roster.Parties[c.last()].Name + "/tls")
	credentials, err := rpc.LoadCredentials(files)
	must(c.t, err)
	m := c.files.Roster.Parties[0]
	transport := &http.Transport{TLSClientConfig: credentials.Client(m.Identity), ForceAttemptHTTP2: true}
	transport.TLSClientConfig.NextProtos = []string{"h2"}
	transport.TLSClientConfig.MinVersion = tls.VersionTLS13
	c.t.Cleanup(transport.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+m.Address+exchange.Method, body)
	must(c.t, err)
	q.Header.Set("Content-Type", "application/grpc")
	q.Header.Set("TE", "trailers")
	for k, v := range header {
		q.Header.Set(k, v)
	}
	r, err := transport.RoundTrip(q)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, r.Body) // the status is in the trailers
	if s := r.Header.Get("Grpc-Status"); s != "" {
		return s, nil
	}
	return r.Trailer.Get("Grpc-Status"), nil
}

// wants holds the status of a call.
func (c *cluster) wants(code string, err error, want codes.Code) {
	c.t.Helper()
	if err != nil || code != fmt.Sprint(int(want)) {
		c.t.Errorf("status %q, %v; want %d", code, err, int(want))
	}
}

// prefix returns the bytes that precede a message.
func prefix(compressed byte, length uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{compressed}, length)
}

func (c *cluster) lengthThatLies() {
	code, err := c.post(bytes.NewReader(append(prefix(0, 1<<32-1), 1, 2, 3)), nil)
	c.wants(code, err, codes.ResourceExhausted)
}

func (c *cluster) zipBomb() {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(make([]byte, 64<<20))
	must(c.t, err)
	must(c.t, w.Close())
	code, err := c.post(bytes.NewReader(append(prefix(1, uint32(b.Len())), b.Bytes()...)),
		map[string]string{"Grpc-Encoding": "gzip"})
	c.wants(code, err, codes.Unimplemented)
}

// dropByDrop sends a hello one byte at a time, until the party ends the stream.
func (c *cluster) dropByDrop() {
	hello, err := proto.Marshal(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Hello{Hello: c.hello(c.spec(cheattest.Keys))}})
	must(c.t, err)
	in, out := io.Pipe()
	defer in.Close()
	go func() {
		for _, b := range append(prefix(0, uint32(len(hello))), hello...) {
			if _, err := out.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(time.Second) // the delay of a slow peer
		}
	}()
	ended := make(chan struct{})
	var code string
	go func() {
		defer close(ended)
		code, err = c.post(in, nil)
	}()
	c.meanwhile()
	<-ended
	c.wants(code, err, codes.Unavailable)
}

// restart starts the last party again, after a change of its files.
func (c *cluster) restart(change func()) {
	c.t.Helper()
	_ = c.procs[c.last()].Process.Kill()
	_ = c.procs[c.last()].Wait() // killed
	change()
	c.start(c.last())
}

// certificateSwapped has the last party serve with the certificate of the operator.
func (c *cluster) certificateSwapped() {
	own := c.of(c.files.Roster.Parties[c.last()].Name + "/tls")
	certificate, err := os.ReadFile(own.Certificate)
	must(c.t, err)
	key, err := os.ReadFile(own.Key)
	must(c.t, err)
	write := func(certificate, key []byte) func() {
		return func() {
			must(c.t, os.WriteFile(own.Certificate, certificate, 0o600))
			must(c.t, os.WriteFile(own.Key, key, 0o600))
		}
	}
	other := c.of("clients/" + devnet.Operator)
	otherCertificate, err := os.ReadFile(other.Certificate)
	must(c.t, err)
	otherKey, err := os.ReadFile(other.Key)
	must(c.t, err)
	c.restart(write(otherCertificate, otherKey))
	s := c.honest()
	c.suspected(s, "")
	c.restart(write(certificate, key))
	c.ready(c.last())
}

// rosterSwapped has the last party run with a roster in which party 0 has another name.
func (c *cluster) rosterSwapped() {
	path := filepath.Join(c.files.Dir, c.files.Roster.Parties[c.last()].Name, "party.yaml")
	good, err := os.ReadFile(path)
	must(c.t, err)
	roster, err := os.ReadFile(filepath.Join(c.files.Dir, "roster.yaml"))
	must(c.t, err)
	swapped := bytes.Replace(roster, []byte("name: p0"), []byte("name: px"), 1)
	must(c.t, os.WriteFile(filepath.Join(c.files.Dir, "swapped.yaml"), swapped, 0o600))
	if bytes.Equal(swapped, roster) {
		c.t.Fatal("the roster is the same")
	}
	c.restart(func() {
		must(c.t, os.WriteFile(path, bytes.Replace(good, []byte("../roster.yaml"), []byte("../swapped.yaml"), 1), 0o600))
	})
	s := c.honest()
	if err := c.begin(c.last(), s); err == nil {
		c.t.Error("a party with another roster begins a session")
	}
	c.suspected(s, "")
	c.restart(func() { must(c.t, os.WriteFile(path, good, 0o600)) })
	c.ready(c.last())
}
