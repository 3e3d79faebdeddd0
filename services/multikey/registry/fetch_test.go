package registry

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// relay is a registry whose streams of keys are modified.
type relay struct {
	*Registry
	change func(n int, m *multikeyv1.GetPublishedResponse) error
}

type relayed struct {
	multikeyv1.RegistryService_GetPublishedServer
	n      int
	change func(n int, m *multikeyv1.GetPublishedResponse) error
}

func (s *relayed) Send(m *multikeyv1.GetPublishedResponse) error {
	s.n++
	if err := s.change(s.n-1, m); err != nil {
		return err
	}
	return s.RegistryService_GetPublishedServer.Send(m)
}

func (r relay) GetPublished(m *multikeyv1.GetPublishedRequest, s multikeyv1.RegistryService_GetPublishedServer) error {
	return r.Registry.GetPublished(m, &relayed{s, 0, r.change})
}

// Data that does not belong to the record's keys is rejected with a reason and not stored. The keys
// can then be fetched from another party.
func TestWrongKeysAreRefused(t *testing.T) {
	head := func(f func(m *multikeyv1.GetPublishedResponse)) func(int, *multikeyv1.GetPublishedResponse) error {
		return func(n int, m *multikeyv1.GetPublishedResponse) error {
			if n == 0 {
				f(m)
			}
			return nil
		}
	}
	chunk := func(f func(m *multikeyv1.GetPublishedResponse)) func(int, *multikeyv1.GetPublishedResponse) error {
		return func(n int, m *multikeyv1.GetPublishedResponse) error {
			if n == 1 {
				f(m)
			}
			return nil
		}
	}
	for name, x := range map[string]struct {
		change func(int, *multikeyv1.GetPublishedResponse) error
		want   error
	}{
		"one digest missing":      {head(func(m *multikeyv1.GetPublishedResponse) { m.ChunkDigests = m.ChunkDigests[1:] }), ErrDigests},
		"one extra digest":        {head(func(m *multikeyv1.GetPublishedResponse) { m.ChunkDigests = append(m.ChunkDigests, m.ChunkDigests[0]) }), ErrDigests},
		"a short digest":          {head(func(m *multikeyv1.GetPublishedResponse) { m.ChunkDigests[0] = m.ChunkDigests[0][1:] }), ErrDigests},
		"another digest":          {head(func(m *multikeyv1.GetPublishedResponse) { m.ChunkDigests[0][0] ^= 1 }), ErrDigests},
		"a header of another set": {head(func(m *multikeyv1.GetPublishedResponse) { m.Header[0] ^= 1 }), ErrDigests},
		"a short header":          {head(func(m *multikeyv1.GetPublishedResponse) { m.Header = m.Header[1:] }), ErrDigests},
		"no header":               {head(func(m *multikeyv1.GetPublishedResponse) { m.Header = nil }), ErrDigests},
		"a flipped bit":           {chunk(func(m *multikeyv1.GetPublishedResponse) { m.Chunk[len(m.Chunk)-1] ^= 1 }), ErrChunk},
		"a short chunk":           {chunk(func(m *multikeyv1.GetPublishedResponse) { m.Chunk = m.Chunk[1:] }), ErrChunk},
		"a long chunk":            {chunk(func(m *multikeyv1.GetPublishedResponse) { m.Chunk = append(m.Chunk, 0) }), ErrChunk},
		"another chunk":           {chunk(func(m *multikeyv1.GetPublishedResponse) { m.Index++ }), ErrChunk},
		"a truncated stream":      {chunk(func(m *multikeyv1.GetPublishedResponse) { m.Index = 1 << 31 }), ErrChunk},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, map[int]func(*Registry) multikeyv1.RegistryServiceServer{
				1: func(r *Registry) multikeyv1.RegistryServiceServer { return relay{r, x.change} },
			})
			keys := w.own[1].make(1)
			w.sync(t, 1)
			r := w.registries[0]
			if err := r.fetch(t.Context(), r.book.current(1)); !errors.Is(err, x.want) {
				t.Errorf("%v, want %v", err, x.want)
			}
			w.sync(t, 0)
			if err := r.Usable(keys.ID()); code(err) != rpc.Unavailable {
				t.Errorf("the keys: %v", err)
			}
		})
	}
}

// A broken stream is continued where it ended, at another party, and after a restart.
func TestFetchIsResumed(t *testing.T) {
	c := testContext(t)
	broken := errors.New("broken")
	first := -1
	w := newWorld(t, 3, map[int]func(*Registry) multikeyv1.RegistryServiceServer{
		1: func(r *Registry) multikeyv1.RegistryServiceServer {
			return relay{r, func(n int, _ *multikeyv1.GetPublishedResponse) error {
				if n == 2 {
					return broken
				}
				return nil
			}}
		},
		2: func(r *Registry) multikeyv1.RegistryServiceServer {
			return relay{r, func(n int, m *multikeyv1.GetPublishedResponse) error {
				if n == 1 {
					first = int(m.GetIndex())
				}
				return nil
			}}
		},
	})
	if c.Chunks() < 2 {
		t.Fatalf("%d chunks are too few for this test", c.Chunks())
	}
	keys := w.own[1].make(1)
	w.sync(t, 1)
	r := w.registries[0]
	r.Peers[2] = nil
	w.registries[2].Peers[1] = w.conns[1]
	r.fetchNow(t)
	if err := r.Usable(keys.ID()); code(err) != rpc.Unavailable {
		t.Fatalf("after a broken stream: %v", err)
	}
	// Party 2 fetches the keys in as many streams as needed.
	for range c.Chunks() {
		w.sync(t, 2)
	}
	if err := w.registries[2].Usable(keys.ID()); err != nil {
		t.Fatal(err)
	}
	r.Peers[1] = nil
	r.Peers[2] = w.conns[2]
	again, err := New(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	again.Limit = int64(c.KeySize() + 32*c.Chunks()) // also if the limit allows only these keys
	again.fetchNow(t)
	if err := again.Usable(keys.ID()); err != nil || first != 1 {
		t.Errorf("%v, and the first chunk from party 2 is %d, want 1", err, first)
	}
}

// An owner that stops sending delays only its own keys, and only until it has newer ones.
func TestSlowOwner(t *testing.T) {
	slow, sent, over := atomic.Bool{}, make(chan struct{}), make(chan struct{})
	w := newWorld(t, 3, map[int]func(*Registry) multikeyv1.RegistryServiceServer{
		1: func(r *Registry) multikeyv1.RegistryServiceServer {
			return relay{r, func(n int, _ *multikeyv1.GetPublishedResponse) error {
				if n == 1 && slow.CompareAndSwap(false, true) {
					close(sent)
					<-over
				}
				return nil
			}}
		},
	})
	defer close(over)
	first, other := w.own[1].make(1), w.own[2].make(1)
	r := w.registries[0]
	if err := r.accept(slices.Concat(w.own[1].records, w.own[2].records)); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 3; i++ {
		if err := w.registries[i].own(); err != nil {
			t.Fatal(err)
		}
	}
	go r.Run(t.Context())
	usable := func(k *multikey.Keys) {
		t.Helper()
		for range 600 {
			if r.Usable(k.ID()) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatal(r.Usable(k.ID()))
	}
	<-sent
	usable(other)
	if err := r.Usable(first.ID()); code(err) != rpc.Unavailable {
		t.Errorf("keys whose owner sends nothing: %v", err)
	}
	second := w.own[1].make(2)
	if err := w.registries[1].own(); err != nil {
		t.Fatal(err)
	}
	w.registries[1].announce(t.Context())
	usable(second)
	for range 600 { // the received part of the first version is removed
		if files, err := filepath.Glob(filepath.Join(r.Dir, "*-*")); err != nil || len(files) == 2 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("files of unwanted keys are kept")
}

// If a party sends for too long, the rest is requested from another.
func TestSlowSender(t *testing.T) {
	over := make(chan struct{})
	w := newWorld(t, 3, map[int]func(*Registry) multikeyv1.RegistryServiceServer{
		1: func(r *Registry) multikeyv1.RegistryServiceServer {
			return relay{r, func(n int, m *multikeyv1.GetPublishedResponse) error {
				if n == 2 && m.GetIndex() == 1 {
					<-over
				}
				return nil
			}}
		},
	})
	defer close(over)
	keys := w.own[1].make(1)
	w.registries[2].Peers[1] = dial(t, w.registries[1]) // this one is fast
	w.sync(t, 2)
	if err := w.registries[2].Usable(keys.ID()); code(err) != rpc.UnknownKey {
		t.Fatal(err)
	}
	w.sync(t, 1)
	w.sync(t, 2)
	r := w.registries[0]
	r.patience = 200 * time.Millisecond
	r.Peers[2] = nil
	err := r.fetch(t.Context(), r.book.current(1)) // gRPC reports the end of the time in one of two ways
	if err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) && !strings.Contains(err.Error(), codes.DeadlineExceeded.String()) {
		t.Fatalf("from a party that sends for too long: %v", err)
	}
	r.patience = longest
	r.Peers[1], r.Peers[2] = nil, w.conns[2]
	r.fetchNow(t)
	if err := r.Usable(keys.ID()); err != nil {
		t.Error(err)
	}
}

// If an owner signs two versions of the same keys, their file is written only once at a time.
func TestSameKeysTwice(t *testing.T) {
	w := newWorld(t, 2, nil)
	keys := w.own[1].make(1)
	w.own[1].records = append(w.own[1].records, w.own[1].record(keys.ID(), 2, false))
	r := w.registries[0]
	if err := r.accept(w.own[1].records); err != nil {
		t.Fatal(err)
	}
	earlier, later := r.book.owners[1][0], r.book.owners[1][1]
	stopped := false
	r.fetching[earlier] = func() { stopped = true }
	if _, missing, busy := r.plan(); len(missing) != 0 || len(busy) != 1 || !stopped {
		t.Errorf("%d are missing and %d being fetched, and the earlier fetch is stopped: %v", len(missing), len(busy), stopped)
	}
	delete(r.fetching, earlier)
	if _, missing, _ := r.plan(); len(missing) != 1 || missing[0] != later {
		t.Errorf("%d are missing then", len(missing))
	}
}

// A party that signs that another party's keys are its own gains nothing, and does not prevent
// others from fetching them.
func TestKeysOfAnotherOwner(t *testing.T) {
	w := newWorld(t, 3, nil)
	keys := w.own[1].make(1)
	w.sync(t, 1)
	w.own[2].records = append(w.own[2].records, w.own[2].record(keys.ID(), 1, false))
	w.own[2].blobs = w.own[1].blobs
	w.sync(t, 2)
	r := w.registries[0]
	if err := r.fetch(t.Context(), r.book.current(2)); !errors.Is(err, multikey.ErrOwner) {
		t.Errorf("keys with the header of another owner: %v", err)
	}
	w.sync(t, 0)
	if rec, known := r.Owner(keys.ID()); !known || !bytes.Equal(rec.Signer[:], signer(1).Public().(ed25519.PublicKey)) {
		t.Errorf("the owner is %+v", rec)
	}
	if _, err := r.Load(t.Context(), keys.ID()); err != nil {
		t.Error(err)
	}
}

// Keys that were damaged on disk are fetched again and not used.
func TestDamagedKeys(t *testing.T) {
	w := newWorld(t, 2, nil)
	keys := w.own[1].make(1)
	w.sync(t, 1)
	w.sync(t, 0)
	r := w.registries[0]
	files, err := filepath.Glob(filepath.Join(r.Dir, "*"+keysSuffix))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Load(t.Context(), keys.ID()); !errors.Is(err, ErrChunk) {
		t.Errorf("damaged keys: %v", err)
	}
	again, err := New(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	again.fetchNow(t)
	if _, err := again.Load(t.Context(), keys.ID()); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}
