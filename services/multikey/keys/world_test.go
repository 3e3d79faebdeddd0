package keys_test

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	mk "github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
)

const set = "insecure-M8-32"

// world is the parties of a cluster in this process, with real sockets, stores and certificates.
type world struct {
	testing.TB
	net  *devnet.Cluster
	stop map[int]func()
}

func newWorld(t testing.TB, change func(*config.PartyFile)) *world {
	t.Helper()
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{set}, Dev: true, Insecure: true, Multikey: set})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, net: net, stop: map[int]func(){}}
	for i := range net.Parties {
		w.start(i, change)
	}
	return w
}

// start starts a party.
func (w *world) start(i int, change func(*config.PartyFile)) {
	w.Helper()
	f, err := config.LoadParty(w.net.Parties[i])
	if err != nil {
		w.Fatal(err)
	}
	f.StopAfter = config.Duration(100 * time.Millisecond)
	if change != nil {
		change(f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- party.Run(ctx, f, "test", slog.New(slog.NewTextHandler(io.Discard, nil))) }()
	w.stop[i] = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(w.stop[i])
}

// as returns a client of a party.
func (w *world) as(name string, party int) *client {
	w.Helper()
	f, err := lodge.Load(filepath.Join(w.net.Dir, "clients", name+".yaml"))
	if err != nil {
		w.Fatal(err)
	}
	conn, err := f.Connect(f.Parties[party])
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	return &client{w, multikeyv1.NewKeysServiceClient(conn)}
}

// owner returns the party's own client, which may make and destroy the party's keys, and encrypt.
func (w *world) owner(party int) *client { return w.as(devnet.ClientName(party), party) }

type client struct {
	w *world
	multikeyv1.KeysServiceClient
}

func (c *client) make(request string) *multikeyv1.MultikeyKeys {
	c.w.Helper()
	r, err := c.MakeKeys(c.w.Context(), &multikeyv1.MakeKeysRequest{RequestId: []byte(request)}, grpc.WaitForReady(true))
	if err != nil {
		c.w.Fatal(err)
	}
	return r.GetKeys()
}

func (c *client) list() []*multikeyv1.MultikeyKeys {
	c.w.Helper()
	r, err := c.ListKeys(c.w.Context(), &multikeyv1.ListKeysRequest{}, grpc.WaitForReady(true))
	if err != nil {
		c.w.Fatal(err)
	}
	return r.GetKeys()
}

func refused(t *testing.T, err error, code lodge.Code, word string) {
	t.Helper()
	e := lodge.FromError(err)
	if err == nil || e.Code != code || !strings.Contains(e.What, word) {
		t.Errorf("%v, want %s that says %q", err, code, word)
	}
}

func pinned(t testing.TB, seed string) *multikey.Context {
	t.Helper()
	c, err := multikey.ContextOf(&config.Multikey{Set: set, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func scheme(t testing.TB) *mk.Scheme { return pinned(t, config.StandardSeed).Scheme }
