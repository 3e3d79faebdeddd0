package registry

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/sample"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	service "github.com/lodge-mpc/lodge/services/multikey"
)

func signer(i int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i) + 1}, ed25519.SeedSize))
}

func testContext(t *testing.T) *service.Context {
	t.Helper()
	c, err := service.ContextOf(&config.Multikey{Set: "insecure-M8-32", Seed: config.StandardSeed})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// own holds a party's own keys, by version.
type own struct {
	c     *service.Context
	owner int
	key   ed25519.PrivateKey
	weak  bool // makes keys as older versions did

	mu      sync.Mutex
	records [][]byte
	blobs   map[multikey.KeyID][]byte
}

func (o *own) Records() ([][]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.records, nil
}

func (o *own) Open(id multikey.KeyID) (io.ReadCloser, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b, ok := o.blobs[id]
	if !ok {
		return nil, os.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// make makes keys under the next version, and signs their record.
func (o *own) make(version uint64) *multikey.Keys {
	source := sample.NewSource(make([]byte, 32)).Sub("party", uint64(o.owner), version)
	signing := o.key.Public().(ed25519.PublicKey)
	number, seed := uint32(service.OwnerInSeed), service.OwnerSeed(signing, salt(version))
	if o.weak {
		number, seed = service.OwnerNumber(signing), [32]byte{byte(version), byte(o.owner)}
	}
	_, keys := o.c.GenerateWithSeed(number, seed, source, 2)
	b := keys.Header()
	for _, d := range keys.ChunkDigests() {
		b = append(b, d[:]...)
	}
	for i := range o.c.Chunks() {
		b = keys.AppendChunk(b, i)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.blobs == nil {
		o.blobs = map[multikey.KeyID][]byte{}
	}
	o.blobs[keys.ID()] = b
	o.records = append(o.records, o.record(keys.ID(), version, false))
	return keys
}

func (o *own) record(id multikey.KeyID, version uint64, revoked bool) []byte {
	r := service.Record{
		Version: version, Set: o.c.Hash(), CRS: o.c.CRS(), Key: id, Size: uint64(o.c.KeySize()),
		Created: time.Unix(1000, 0).UTC(), Revoked: revoked,
	}
	if !o.weak {
		r.Bound, r.Salt = true, salt(version)
	}
	return r.Sign(o.key)
}

// salt returns the salt of a version of a party's keys. Tests do not need unique salts.
func salt(version uint64) [32]byte { return [32]byte{byte(version), 31: 7} }

func (o *own) revoke(id multikey.KeyID, version uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.records = append(o.records, o.record(id, version, true))
}

// world is a number of connected registries.
type world struct {
	c          *service.Context
	own        []*own
	registries []*Registry
	conns      []*grpc.ClientConn
}

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// dial serves a registry and connects to it.
func dial(t *testing.T, s multikeyv1.RegistryServiceServer) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	multikeyv1.RegisterRegistryServiceServer(server, s)
	go server.Serve(l) //nolint:errcheck // ends with Stop
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// newWorld returns a world of n parties. between replaces the registries that the other parties
// see, by index.
func newWorld(t *testing.T, n int, between map[int]func(*Registry) multikeyv1.RegistryServiceServer) *world {
	t.Helper()
	var list []ed25519.PrivateKey
	for i := range n {
		list = append(list, signer(i))
	}
	return newWorldOf(t, list, between)
}

// newWorldOf returns a world with a party for each signing key.
func newWorldOf(t *testing.T, list []ed25519.PrivateKey, between map[int]func(*Registry) multikeyv1.RegistryServiceServer) *world {
	t.Helper()
	n := len(list)
	w := &world{c: testContext(t)}
	var names []string
	var signers []ed25519.PublicKey
	for i, k := range list {
		names = append(names, fmt.Sprintf("p%d", i))
		signers = append(signers, k.Public().(ed25519.PublicKey))
	}
	for i := range n {
		o := &own{c: w.c, owner: i, key: list[i]}
		r, err := New(Config{
			Context: w.c, Self: i, Names: names, Signers: signers, Source: o, Dir: filepath.Join(t.TempDir(), "multikey"),
			Limit: 1 << 30, Log: discard(), Peers: make([]grpc.ClientConnInterface, n),
		})
		if err != nil {
			t.Fatal(err)
		}
		w.own, w.registries = append(w.own, o), append(w.registries, r)
		var s multikeyv1.RegistryServiceServer = r
		if b := between[i]; b != nil {
			s = b(r)
		}
		w.conns = append(w.conns, dial(t, s))
	}
	for i, r := range w.registries {
		for j := range n {
			if j != i {
				r.Peers[j] = w.conns[j]
			}
		}
	}
	return w
}

// sync performs one cycle of a registry's regular work.
func (w *world) sync(t *testing.T, i int) {
	t.Helper()
	r := w.registries[i]
	if err := r.own(); err != nil {
		t.Fatal(err)
	}
	r.announce(t.Context())
	for p := range w.registries {
		if r.Peers[p] != nil {
			r.ask(t.Context(), p)
		}
	}
	r.fetchNow(t)
}

// fetchNow fetches missing keys once.
func (r *Registry) fetchNow(t *testing.T) {
	t.Helper()
	r.fetchAll(t.Context())
	r.fetches.Wait()
}

func code(err error) rpc.Code {
	if err == nil {
		return ""
	}
	return rpc.FromError(err).Code
}

// Every party receives all keys; later versions supersede earlier ones, and revocations end them.
func TestRegistry(t *testing.T) {
	w := newWorld(t, 3, nil)
	var keys []*multikey.Keys
	for _, o := range w.own {
		keys = append(keys, o.make(1))
	}
	for range 2 {
		for i := range w.registries {
			w.sync(t, i)
		}
	}
	for i, r := range w.registries {
		for owner, k := range keys {
			got, err := r.Load(t.Context(), k.ID())
			if err != nil || got.ID() != k.ID() || got.Owner != service.OwnerInSeed {
				t.Fatalf("party %d does not have the keys of %d: %v", i, owner, err)
			}
			if rec, known := r.Owner(k.ID()); !known || !bytes.Equal(rec.Signer[:], signer(owner).Public().(ed25519.PublicKey)) || rec.Revoked {
				t.Errorf("party %d knows %+v", i, rec)
			}
		}
		if _, err := r.Load(t.Context(), multikey.KeyID{1}); code(err) != rpc.UnknownKey {
			t.Errorf("unknown keys: %v", err)
		}
	}
	second := w.own[1].make(2)
	w.sync(t, 1) // announces to the others
	r := w.registries[0]
	others := filepath.Join(r.Dir, "alice"+keysSuffix) // a file that `lodge mk registry fetch` may have written
	if err := os.WriteFile(others, []byte("keys"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Usable(keys[1].ID()); code(err) != rpc.RetiredKey {
		t.Errorf("superseded keys: %v", err)
	}
	if err := r.Usable(second.ID()); code(err) != rpc.Unavailable {
		t.Errorf("keys that are not fetched: %v", err)
	}
	w.sync(t, 0)
	if err := r.Usable(second.ID()); err != nil {
		t.Errorf("fetched keys: %v", err)
	}
	if files, err := filepath.Glob(filepath.Join(r.Dir, "*-*"+keysSuffix)); err != nil || len(files) != 2 {
		t.Errorf("the files are %v, want two", files)
	}
	if _, err := os.Stat(others); err != nil {
		t.Errorf("a foreign file: %v", err)
	}
	w.own[1].revoke(second.ID(), 2)
	w.sync(t, 1)
	if err := r.Usable(second.ID()); code(err) != rpc.RetiredKey {
		t.Errorf("revoked keys: %v", err)
	}
	if err := r.Usable(keys[1].ID()); code(err) != rpc.RetiredKey {
		t.Errorf("keys superseded by revoked keys: %v", err)
	}
	// A party that was away receives the revocation from a party other than the owner, and keeps it
	// across a restart.
	w.registries[2].Peers[1] = nil
	w.sync(t, 2)
	again, err := New(w.registries[2].Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Usable(second.ID()); code(err) != rpc.RetiredKey {
		t.Errorf("revoked keys after a restart: %v", err)
	}
	again.fetchNow(t) // stored keys are found
	if err := again.Usable(keys[0].ID()); err != nil {
		t.Errorf("keys after a restart: %v", err)
	}
}

// Each kind of invalid record is rejected with its own error.
func TestRecordsAreRefused(t *testing.T) {
	w := newWorld(t, 2, nil)
	o := w.own[1]
	good := o.record(multikey.KeyID{1}, 1, false)
	r := w.registries[0]
	if err := r.accept([][]byte{good}); err != nil {
		t.Fatal(err)
	}
	forged := bytes.Clone(good)
	forged[110] ^= 1
	other := service.Record{Version: 2, Set: [32]byte{1}, CRS: o.c.CRS(), Size: uint64(o.c.KeySize()), Created: time.Unix(1, 0)}
	reference := service.Record{Version: 2, Set: o.c.Hash(), CRS: [32]byte{1}, Size: uint64(o.c.KeySize()), Created: time.Unix(1, 0)}
	size := service.Record{Version: 2, Set: o.c.Hash(), CRS: o.c.CRS(), Size: 1, Created: time.Unix(1, 0)}
	stranger := service.Record{Version: 2, Set: o.c.Hash(), CRS: o.c.CRS(), Size: uint64(o.c.KeySize()), Created: time.Unix(1, 0)}
	for name, x := range map[string]struct {
		record []byte
		want   error
		code   rpc.Code
	}{
		"two records of one version":  {o.record(multikey.KeyID{2}, 1, false), ErrConflict, rpc.Conflict},
		"a revocation of other keys":  {o.record(multikey.KeyID{2}, 1, true), ErrConflict, rpc.Conflict},
		"not signed":                  {forged, service.ErrSignature, rpc.Invalid},
		"short":                       {good[1:], service.ErrRecord, rpc.Invalid},
		"of another set":              {other.Sign(signer(1)), multikey.ErrSet, rpc.Invalid},
		"of another reference string": {reference.Sign(signer(1)), multikey.ErrCRS, rpc.Invalid},
		"of the wrong size":           {size.Sign(signer(1)), service.ErrRecord, rpc.Invalid},
		"of an unknown party":         {stranger.Sign(signer(9)), service.ErrOwner, rpc.Invalid},
		"signed by a party other than the owner": {func() []byte {
			x := own{c: o.c, owner: 0, key: signer(0)}
			b := x.record(multikey.KeyID{3}, 1, false)
			b[0] = 1
			return b
		}(), service.ErrSignature, rpc.Invalid},
	} {
		if err := r.accept([][]byte{x.record}); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
		if _, err := r.Announce(t.Context(), &multikeyv1.AnnounceRequest{Records: [][]byte{x.record}}); code(err) != x.code {
			t.Errorf("%s, announced: %v", name, err)
		}
	}
	if _, err := r.Announce(t.Context(), &multikeyv1.AnnounceRequest{Records: make([][]byte, maxAnnounced+1)}); code(err) != rpc.TooLarge {
		t.Errorf("too many records: %v", err)
	}
	// A revocation is accepted before its record, and valid records are accepted together with an
	// invalid one.
	if err := r.accept([][]byte{good[1:], o.record(multikey.KeyID{5}, 5, true)}); !errors.Is(err, service.ErrRecord) {
		t.Error(err)
	}
	if err := r.accept([][]byte{o.record(multikey.KeyID{5}, 5, false)}); err != nil {
		t.Error(err)
	}
	if err := r.Usable(multikey.KeyID{5}); code(err) != rpc.RetiredKey {
		t.Errorf("revoked before its record was known: %v", err)
	}
	if err := r.Usable(multikey.KeyID{1}); code(err) != rpc.RetiredKey {
		t.Errorf("superseded by revoked keys: %v", err)
	}
	later := service.Record{Version: 5, Set: o.c.Hash(), CRS: o.c.CRS(), Key: multikey.KeyID{5}, Size: uint64(o.c.KeySize()), Created: time.Unix(2000, 0), Revoked: true}
	before := bytes.Clone(r.book.owners[1][1].Revocation)
	if err := r.accept([][]byte{later.Sign(signer(1))}); err != nil || !bytes.Equal(r.book.owners[1][1].Revocation, before) {
		t.Errorf("a second revocation: %v", err)
	}
}

// An owner cannot make others remember or store more than the limits.
func TestRegistryIsBounded(t *testing.T) {
	w := newWorld(t, 2, nil)
	o, r := w.own[1], w.registries[0]
	for v := range uint64(maxVersions + 10) {
		if err := r.accept([][]byte{o.record(multikey.KeyID{byte(v), 1}, v+1, false)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.book.owners[1]); n != maxVersions {
		t.Errorf("%d versions are remembered, want %d", n, maxVersions)
	}
	if err := r.accept([][]byte{o.record(multikey.KeyID{0, 1}, 1, false)}); err != nil || len(r.book.owners[1]) != maxVersions {
		t.Errorf("an old version: %v", err)
	}
	again, err := New(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.book.owners[1]) != maxVersions || again.book.current(1) == nil {
		t.Error("the registry contains other keys after a restart")
	}
	known := len(r.faults)
	for v := range uint64(5) {
		if err := r.accept([][]byte{o.record(multikey.KeyID{byte(v), 2}, maxVersions+20+v, false)}); err != nil {
			t.Fatal(err)
		}
		r.fetchNow(t) // these keys do not exist
	}
	if n := len(r.faults) - known; n > 2 {
		t.Errorf("%d faults of an owner are remembered", n)
	}
	r.Limit = int64(w.c.KeySize()) - 1
	used := int64(0)
	if err := r.begin(t.Context(), r.book.current(1), &used); !errors.Is(err, ErrRoom) || len(r.fetching) > 0 {
		t.Errorf("above the limit: %v", err)
	}
	if err := os.WriteFile(filepath.Join(r.Dir, recordsFile), []byte("no records"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(r.Config); err == nil {
		t.Error("a file without records is accepted")
	}
}

// GetPublished validates its request.
func TestGetPublished(t *testing.T) {
	w := newWorld(t, 1, nil)
	keys := w.own[0].make(1)
	w.sync(t, 0)
	id := keys.ID()
	client := multikeyv1.NewRegistryServiceClient(w.conns[0])
	chunks := uint32(w.c.Chunks())
	for name, x := range map[string]struct {
		request *multikeyv1.GetPublishedRequest
		count   uint32
		want    rpc.Code
	}{
		"all":                            {&multikeyv1.GetPublishedRequest{Key: id[:]}, chunks, ""},
		"the second":                     {&multikeyv1.GetPublishedRequest{Key: id[:], First: 1, Count: 1}, 1, ""},
		"more than the number of chunks": {&multikeyv1.GetPublishedRequest{Key: id[:], First: 1, Count: 1<<32 - 1}, chunks - 1, ""},
		"past the end":                   {&multikeyv1.GetPublishedRequest{Key: id[:], First: chunks + 1}, 0, rpc.Invalid},
		"a name too short":               {&multikeyv1.GetPublishedRequest{Key: id[1:]}, 0, rpc.Invalid},
		"nobody's":                       {&multikeyv1.GetPublishedRequest{Key: make([]byte, 32)}, 0, rpc.UnknownKey},
	} {
		stream, err := client.GetPublished(context.Background(), x.request)
		if err != nil {
			t.Fatal(err)
		}
		n := uint32(0)
		_, err = stream.Recv()
		for err == nil {
			if _, err = stream.Recv(); err == nil {
				n++
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if n != x.count || code(err) != x.want {
			t.Errorf("%s: %d chunks and %v, want %d and %q", name, n, err, x.count, x.want)
		}
	}
}

// Errors for keys of a party that has left the roster say so, also after a restart. The keys are
// valid again if the party returns.
func TestOwnerHasLeft(t *testing.T) {
	w := newWorld(t, 3, nil)
	keys := w.own[2].make(1)
	w.sync(t, 2)
	w.sync(t, 0)
	c := w.registries[0].Config
	less := c
	less.Signers, less.Names, less.Peers = c.Signers[:2], c.Names[:2], c.Peers[:2]
	for range 2 {
		r, err := New(less)
		if err != nil {
			t.Fatal(err)
		}
		var refused *rpc.Error
		if err := r.Usable(keys.ID()); !errors.As(err, &refused) || refused.Code != rpc.UnknownKey || !strings.Contains(refused.What, "has left the roster") {
			t.Errorf("keys of a party that has left: %v", err)
		}
		if err := r.accept([][]byte{w.own[1].record(multikey.KeyID{7}, 1, false)}); err != nil { // writes all records again
			t.Fatal(err)
		}
		if err := r.accept([][]byte{w.own[2].record(multikey.KeyID{8}, 2, false)}); !errors.Is(err, service.ErrOwner) {
			t.Errorf("a new record of a party that has left: %v", err)
		}
	}
	again, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Usable(keys.ID()); code(err) != rpc.Unavailable {
		t.Errorf("keys of a party that has returned: %v", err)
	}
}
