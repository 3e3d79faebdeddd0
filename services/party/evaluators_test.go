package party

import (
	"context"
	"encoding/hex"
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

	"github.com/lodge-mpc/lodge/engine/params"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/audit"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/evaluator"
	"github.com/lodge-mpc/lodge/services/pki"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// liar changes one bit of a polynomial of every answer that an evaluator gives, while it is told to.
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

// A batch of a party whose evaluator lies is right: the party names the evaluator, and the session goes on.
func TestAnEvaluatorLies(t *testing.T) {
	ca, err := pki.NewAuthority("evaluators of p0", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	known, err := params.Lookup(set)
	if err != nil {
		t.Fatal(err)
	}
	hash := known.Hash()
	authority := write("ca.pem", ca.PEM())
	var lies atomic.Bool
	start := func(i int, f *config.PartyFile) config.Evaluator {
		name := fmt.Sprint("e", i)
		identity := "spiffe://lodge/evaluator/" + name
		cert, key, err := ca.Issue(pki.Leaf{Identity: identity, Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		e := &config.EvaluatorFile{
			Name: name, Listen: address, TLS: config.TLS{Certificate: write(name+".pem", cert), Key: write(name+".key", key), CA: f.TLS.CA},
			Party: config.Owner{Name: f.Name, Identity: f.Roster.Parties[f.Index].Identity}, MaxKeysMemory: 1 << 28, MaxMemory: 1 << 30,
			Params: []config.ParamsPin{{Name: set, Hash: hex.EncodeToString(hash[:])}}, AllowInsecureParams: true, StopAfter: config.Duration(time.Second),
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			var cheats []rpc.Inner
			if i == 1 {
				cheats = append(cheats, liar(&lies))
			}
			if err := evaluator.Run(ctx, e, "test", slog.New(slog.DiscardHandler), cheats...); err != nil {
				t.Error(err)
			}
		}()
		t.Cleanup(func() {
			cancel()
			<-done
		})
		return config.Evaluator{Name: name, Address: address, Identity: identity, Domain: fmt.Sprint("site-", i)}
	}
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		f.Limits.Idle, f.Limits.Compute = config.Duration(20*time.Second), config.Duration(time.Minute)
		if i == 0 {
			f.Evaluators.TLS.CA = authority
			f.Evaluators.Processes = []config.Evaluator{start(0, f), start(1, f)}
		}
	})
	for strings.Count(n.nodes[0].log.String(), "an evaluator is up") < 2 {
		time.Sleep(5 * time.Millisecond)
	}
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
