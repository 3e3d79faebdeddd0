package party

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/offline/evaluator"
)

// liar changes one bit of a polynomial of every answer that an evaluator gives, while it is told
// to.
func liar(lies *atomic.Bool) rpc.Inner {
	return rpc.Inner{
		Unary: func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			return h(ctx, q)
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			return h(srv, &lying{ServerStream: ss, lies: lies})
		},
	}
}

type lying struct {
	grpc.ServerStream
	lies *atomic.Bool
	said bool
}

func (l *lying) SendMsg(m any) error {
	if r, ok := m.(*evaluatorv1.EvaluateResponse); ok && len(r.GetFrame()) > 0 && l.lies.Load() && !l.said {
		l.said = true
		r.GetFrame()[0] ^= 1 // of a residue that stays below its prime but for one in 2^46
	}
	return l.ServerStream.SendMsg(m)
}

// farm starts the parties' evaluators with a separate authority.
type farm struct {
	t         *testing.T
	ca        *pki.Authority
	dir       string
	authority string
}

func newFarm(t *testing.T) *farm {
	t.Helper()
	ca, err := pki.NewAuthority("evaluators of p0", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	f := &farm{t: t, ca: ca, dir: t.TempDir()}
	f.authority = f.write("ca.pem", ca.PEM())
	return f
}

func (m *farm) write(name string, b []byte) string {
	path := filepath.Join(m.dir, name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// start starts an evaluator of a party, with the party's sets.
func (m *farm) start(i int, f *config.PartyFile, cheats ...rpc.Inner) config.Evaluator {
	m.t.Helper()
	name := fmt.Sprint("e", i)
	identity := "spiffe://lodge/evaluator/" + name
	cert, key, err := m.ca.Issue(pki.Leaf{Identity: identity, Lifetime: time.Hour})
	if err != nil {
		m.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	e := &config.EvaluatorFile{
		Name: name, Listen: address, TLS: config.TLS{Certificate: m.write(name+".pem", cert), Key: m.write(name+".key", key), CA: f.TLS.CA},
		Party: config.Owner{Name: f.Name, Identity: f.Roster.Parties[f.Index].Identity}, MaxKeysMemory: 1 << 28, MaxMemory: 1 << 30,
		Params: f.Policy.Params, AllowInsecureParams: true, StopAfter: config.Duration(time.Second),
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := evaluator.Run(ctx, e, "test", slog.New(slog.DiscardHandler), cheats...); err != nil {
			m.t.Error(err)
		}
	}()
	m.t.Cleanup(func() {
		cancel()
		<-done
	})
	return config.Evaluator{Name: name, Address: address, Identity: identity, Domain: fmt.Sprint("site-", i)}
}

// upAt waits until a party sees count evaluators.
func upAt(x *node, count int) {
	for strings.Count(x.log.String(), "evaluator is up") < count {
		time.Sleep(5 * time.Millisecond)
	}
}

// A batch of a party whose evaluator lies is right: the party names the evaluator, and the session
// goes on.
func TestAnEvaluatorLies(t *testing.T) {
	m := newFarm(t)
	var lies atomic.Bool
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		f.Limits.Idle, f.Limits.Compute = config.Duration(20*time.Second), config.Duration(time.Minute)
		if i == 0 {
			f.Evaluators.TLS.CA = m.authority
			f.Evaluators.Processes = []config.Evaluator{m.start(0, f), m.start(1, f, liar(&lies))}
		}
	})
	upAt(n.nodes[0], 2)
	n.keys(1, forKeys)
	excluded := func() (notes []string) {
		list, err := n.nodes[0].party.audit.Entries(1, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Event == audit.EvaluatorExcluded {
				notes = append(notes, strings.Join(e.Objects, " "))
			}
		}
		return notes
	}
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	if got := excluded(); len(got) != 0 {
		t.Fatalf("%v are excluded", got)
	}
	lies.Store(true)
	n.complete(n.spec(jobv1.Kind_KIND_MATRIX, 1))
	if got := excluded(); len(got) != 1 || got[0] != "evaluator/e1" {
		t.Errorf("%v are excluded\n%s", got, n.nodes[0].log.String())
	}
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)) // by itself
}
