// Package refusals calls every method of every service as unauthorised callers and with invalid
// requests. Each call must be rejected quickly, with the right code, and without an internal error.
// A method that is missing in the table fails the test.
package refusals

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
)

// Callers of a method. A client needs a permission if the name says so; the other names include all
// clients.
const (
	client, anyClient, operator, peer, anyone = "client", "any client", "coordinator", "peer", "anyone"
)

// callers lists the roles of a server's callers, according to their certificates.
var callers = []string{"client", "powerless", "coordinator", "peer"}

// allowed maps a rule to the callers that reach the handler.
var allowed = map[string][]string{
	"client":                 {"client"},
	"any client":             {"client", "powerless"},
	"coordinator":            {"coordinator"},
	"peer":                   {"peer"},
	"coordinator client":     {"coordinator", "client"},
	"coordinator any client": {"coordinator", "client", "powerless"},
	"any client peer":        {"client", "powerless", "peer"},
	"anyone":                 callers,
}

const ok rpc.Code = ""

// dayLimit is the number of tuples per day that a party gives to its client.
const dayLimit = 3

// row holds a method's callers, and the codes of an empty request and of an invalid one.
type row struct {
	may            string
	empty, garbage rpc.Code
}

func dial(t *testing.T, address string, c *tls.Config) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(c)))
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// server is a running server with a connection for each caller.
type server struct {
	table map[string]row
	conns map[string]*grpc.ClientConn
	holds *holds // holds of the server's calls
}

func permissions() []string {
	return []string{config.PermStatus, config.PermFetch, config.PermMACKey, config.PermProve, config.PermDecrypt, config.PermRetire, config.PermOperate,
		config.PermAccusations, config.PermSubmit, config.PermReserve, config.PermPolicy, config.PermApprove, config.PermEncrypt, config.PermLinear, config.PermEvaluate}
}

// start starts a coordinator and three parties, and returns the first party and the coordinator.
func start(t *testing.T) (atParty, atCoordinator server) {
	t.Helper()
	cluster, err := devnet.Write(filepath.Join(t.TempDir(), "net"), devnet.Options{Parties: 3, Params: []string{"insecure-8"}, Dev: true, Insecure: true, Multikey: "insecure-M8-32"})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 4)
	log := slog.New(slog.DiscardHandler)
	holds := &holds{calls: map[string]*held{}}
	for i, path := range cluster.Parties {
		f, err := config.LoadParty(path)
		must(t, err)
		f.Clients = slices.DeleteFunc(f.Clients, func(c config.Client) bool { return i == 0 && c.Name == devnet.Operator })
		f.Clients = empower(f.Clients, devnet.ClientName(i))
		f.Clients[0].Quota = &config.Quota{TuplesPerDay: map[string]uint64{"scalar": dayLimit}}
		go func() { ended <- party.Run(ctx, f, "test", log, holds.inner()) }()
	}
	f, err := config.LoadCoordinator(cluster.Coordinator)
	must(t, err)
	f.Clients = empower(f.Clients, devnet.Operator)
	f.Clients = slices.DeleteFunc(f.Clients, func(c config.Client) bool { return c.Name == devnet.ClientName(1) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	f.Listen = l.Addr().String()
	l.Close()
	go func() { ended <- coordinator.Run(ctx, f, "test", log, holds.inner()) }()
	t.Cleanup(func() {
		cancel()
		for range 4 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	foreign := strangers(t)
	connect := func(address, identity string, certificates map[string][2]string) map[string]*grpc.ClientConn {
		conns := map[string]*grpc.ClientConn{}
		for name, x := range certificates {
			c, err := rpc.LoadCredentials(rpc.Files{Certificate: filepath.Join(cluster.Dir, x[0]), Key: filepath.Join(cluster.Dir, x[1]),
				CA: filepath.Join(cluster.Dir, "ca.pem")})
			must(t, err)
			conns[name] = dial(t, address, c.Client(identity))
			bare := c.Client(identity)
			bare.Certificates, bare.GetClientCertificate = nil, nil
			conns["nobody"] = dial(t, address, bare)
			other := bare.Clone()
			other.Certificates = []tls.Certificate{foreign}
			conns["foreign"] = dial(t, address, other)
		}
		return conns
	}
	file := func(name string) [2]string {
		return [2]string{"clients/" + name + ".pem", "clients/" + name + ".key"}
	}
	member := func(name string) [2]string { return [2]string{name + "/tls.pem", name + "/tls.key"} }
	m := cluster.Roster.Parties
	atParty = server{partyTable, connect(m[0].Address, m[0].Identity, map[string][2]string{
		"client": file(devnet.ClientName(0)), "powerless": file(devnet.App), "unknown": file(devnet.ClientName(1)), "coordinator": member("coordinator"),
		"peer": member(m[1].Name),
	}), holds}
	atCoordinator = server{coordinatorTable, connect(f.Listen, f.Roster.Coordinator.Identity, map[string][2]string{
		"client": file(devnet.Operator), "powerless": file(devnet.ClientName(0)), "unknown": file(devnet.ClientName(1)), "peer": member(m[1].Name),
	}), holds}
	for _, s := range []server{atParty, atCoordinator} {
		wait, cancel := context.WithTimeout(ctx, 20*time.Second)
		_, err := statusv1.NewStatusServiceClient(s.conns["client"]).GetStatus(wait, &statusv1.GetStatusRequest{}, grpc.WaitForReady(true))
		cancel()
		must(t, err)
	}
	return atParty, atCoordinator
}

// empower gives one client every permission, and removes all permissions from the others.
func empower(list []config.Client, name string) []config.Client {
	for i := range list {
		list[i].Permissions = nil
		if list[i].Name == name {
			list[i].Permissions = permissions()
		}
	}
	return list
}

// strangers returns a certificate of another authority.
func strangers(t *testing.T) tls.Certificate {
	t.Helper()
	ca, err := pki.NewAuthority("others", time.Hour)
	must(t, err)
	cert, key, err := ca.Issue(pki.Leaf{Identity: "spiffe://lodge/operator", Lifetime: time.Hour})
	must(t, err)
	c, err := tls.X509KeyPair(cert, key)
	must(t, err)
	return c
}

// methods returns the methods of all Lodge services by their full name.
func methods() map[string]protoreflect.MethodDescriptor {
	all := map[string]protoreflect.MethodDescriptor{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				if strings.HasPrefix(string(s.FullName()), "lodge.") {
					all[string(s.FullName())+"/"+string(s.Methods().Get(j).Name())] = s.Methods().Get(j)
				}
			}
		}
		return true
	})
	return all
}

// call makes a call with one request, and returns the error of the first response.
func call(ctx context.Context, conn *grpc.ClientConn, name string, m protoreflect.MethodDescriptor, req *dynamicpb.Message) error {
	out := dynamicpb.NewMessage(m.Output())
	if !m.IsStreamingClient() && !m.IsStreamingServer() {
		return conn.Invoke(ctx, "/"+name, req, out)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+name)
	if err != nil {
		return err
	}
	if err := s.SendMsg(req); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	if err := s.RecvMsg(out); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// garbage fills every field with invalid values.
func garbage(m *dynamicpb.Message, depth int) *dynamicpb.Message {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		value := func() protoreflect.Value {
			switch f.Kind() {
			case protoreflect.MessageKind:
				return protoreflect.ValueOfMessage(garbage(dynamicpb.NewMessage(f.Message()), depth+1))
			case protoreflect.EnumKind:
				return protoreflect.ValueOfEnum(99)
			case protoreflect.StringKind:
				return protoreflect.ValueOfString("../\x00\n%s\u202e" + strings.Repeat("x", 2000))
			case protoreflect.BytesKind:
				return protoreflect.ValueOfBytes([]byte(strings.Repeat("\xff", 300)))
			case protoreflect.BoolKind:
				return protoreflect.ValueOfBool(true)
			case protoreflect.Uint32Kind:
				return protoreflect.ValueOfUint32(1<<32 - 1)
			case protoreflect.Uint64Kind:
				return protoreflect.ValueOfUint64(1<<64 - 1)
			case protoreflect.Int32Kind, protoreflect.Sint32Kind:
				return protoreflect.ValueOfInt32(-1 << 31)
			case protoreflect.Int64Kind, protoreflect.Sint64Kind:
				return protoreflect.ValueOfInt64(-1 << 63)
			}
			return f.Default()
		}
		switch {
		case depth > 4 || f.IsMap():
		case f.IsList():
			for range 3 {
				m.Mutable(f).List().Append(value())
			}
		default:
			m.Set(f, value())
		}
	}
	return m
}

func code(err error) rpc.Code {
	if err == nil {
		return ok
	}
	return rpc.FromError(err).Code
}

// evaluators are separate processes with one caller; package evaluator tests their rejections.
const evaluators = "lodge.evaluator.v1.EvaluatorService/"

func TestRefusals(t *testing.T) {
	all := methods()
	atParty, atCoordinator := start(t)
	for name := range all {
		if strings.HasPrefix(name, evaluators) {
			continue
		}
		_, p := partyTable[name]
		if _, c := coordinatorTable[name]; !p && !c {
			t.Errorf("%s is missing in the tables: add its callers and the codes of invalid requests", name)
		}
	}
	for where, s := range map[string]server{"party": atParty, "coordinator": atCoordinator} {
		for _, name := range slices.Sorted(maps.Keys(s.table)) {
			m := all[name]
			if m == nil {
				t.Errorf("%s does not exist", name)
				continue
			}
			t.Run(where+"/"+name, func(t *testing.T) { s.method(t, name, m) })
		}
	}
}

// method makes all calls of one method.
func (s *server) method(t *testing.T, name string, m protoreflect.MethodDescriptor) {
	r := s.table[name]
	expect := func(what string, ctx context.Context, caller string, req *dynamicpb.Message, want ...rpc.Code) {
		t.Helper()
		conn := s.conns[caller]
		if conn == nil {
			return // this server has no such caller
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		began := time.Now()
		err := call(ctx, conn, name, m, req)
		if got := code(err); !slices.Contains(want, got) {
			t.Errorf("%s, %s: got %q (%v), want %q", what, caller, got, err, want)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s, %s: accepts %s", what, caller, took)
		}
	}
	empty, ctx := dynamicpb.NewMessage(m.Input()), t.Context()
	expect("without a certificate", ctx, "nobody", empty, rpc.Unauthenticated, rpc.Unavailable)
	expect("a certificate of another authority", ctx, "foreign", empty, rpc.Unavailable)
	expect("a certificate without a known identity", ctx, "unknown", empty, rpc.Forbidden)
	for _, caller := range callers {
		if !slices.Contains(allowed[r.may], caller) {
			expect("not allowed", ctx, caller, empty, rpc.Forbidden)
			continue
		}
		if s.conns[caller] == nil {
			continue // this server has no such caller
		}
		s.cancelled(t, caller, name, m, r)
		s.late(t, caller, name, m, r)
		// The calls below come after those.
		expect("empty", ctx, caller, empty, r.empty)
		expect("garbage", ctx, caller, garbage(dynamicpb.NewMessage(m.Input()), 0), r.garbage)
	}
}
