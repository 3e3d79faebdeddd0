package vault

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A draining epoch accepts no session and no batch, also after a restart, and still delivers its
// tuples.
func TestDrainEpoch(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	refused(t, v.DrainEpoch(1, 0), vaulterr.ErrNotFound)
	stocked(t, v, 20)
	addEpoch(t, v, 2, "triples")
	refused(t, v.DrainEpoch(2, 1), vaulterr.ErrState)
	w, err := v.NewBatch(batchOf("late", 10)) // begun before, and stored too late
	must(t, err)
	_, err = w.Write(shares("late", stock.Span{Count: 10}, tupleLen))
	must(t, err)
	before := version(t, v).Generation
	must(t, v.DrainEpoch(1, 0))
	must(t, v.DrainEpoch(1, 2)) // it has its successor later
	must(t, v.DrainEpoch(1, 9))
	must(t, v.DrainEpoch(1, 0))
	if now := version(t, v).Generation; now != before+2 {
		t.Errorf("generation %d after %d: a store that was put back would forget it", now, before)
	}
	refused(t, w.Commit(nil), vaulterr.ErrState)
	must(t, v.Close())

	v = d.open(t, k)
	e, err := v.Epoch(1)
	if err != nil || e.State != keys.EpochDraining || e.Successor != 2 {
		t.Fatalf("%+v, %v", e, err)
	}
	refused(t, v.SpendDecryptions(1, 1), vaulterr.ErrState)
	must(t, v.ActivateEpoch(1)) // by a coordinator that had not heard the answer
	if e, err = v.Epoch(1); err != nil || e.State != keys.EpochDraining {
		t.Fatalf("%+v, %v", e, err)
	}
	reserve(t, v, "r", in(0, 0, 5))
	if b, err := fetch(v, "r", "alice"); err != nil || len(b) != 5*tupleLen {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	noFindings(t, v)

	if n, err := v.RevokeEpoch(1, 0, "test"); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	_, err = fetch(v, "r", "alice")
	refused(t, err, vaulterr.ErrErased)
	key, err := v.MACKey("mac-1")
	if err != nil || key.State != keys.MACBurnt || objects(t, v) != 4 { // the keys of both epochs
		t.Errorf("%+v, %v, %d objects", key, err, objects(t, v))
	}
	noFindings(t, v)
	if n, err := v.RetireEpoch(1, "test"); err != nil || n != 0 || objects(t, v) != 2 {
		t.Errorf("%d, %v, %d objects", n, err, objects(t, v))
	}
	refused(t, v.DrainEpoch(1, 2), vaulterr.ErrErased)
	_, err = v.RevokeEpoch(1, 2, "test")
	refused(t, err, vaulterr.ErrErased)
}

// An epoch for decryption that drains decrypts.
func TestDrainForDecryption(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addEpoch(t, v, 1, "decryption")
	must(t, v.ActivateEpoch(1))
	must(t, v.DrainEpoch(1, 0))
	if _, first, err := v.RecordDecryption(ledger.LedgerKey{Epoch: 1, Digest: [32]byte{1}}, "alice", []byte("x")); err != nil || !first {
		t.Error(err)
	}
	r, err := v.OpenEpochSecret(1)
	if got := content(t, r, err); got != string(canary) {
		t.Errorf("got %q", got)
	}
}

// files are the bytes of all files below a directory.
func files(t *testing.T, dir string) (all []byte) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(all, b...)
		return err
	}))
	return all
}

// rows are the bytes of all rows that a store in PostgreSQL has, in hexadecimal turned back into
// bytes. Dead rows, which a vacuum reclaims, are not among them.
func rows(t *testing.T, dsn string) (all []byte) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer conn.Close(ctx)
	names, err := conn.Query(ctx, `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`)
	must(t, err)
	tables, err := pgx.CollectRows(names, pgx.RowTo[string])
	must(t, err)
	for _, table := range tables {
		got, err := conn.Query(ctx, fmt.Sprintf(`SELECT t::text FROM %s t`, pgx.Identifier{table}.Sanitize()))
		must(t, err)
		texts, err := pgx.CollectRows(got, pgx.RowTo[string])
		must(t, err)
		for _, row := range texts {
			for _, piece := range strings.Split(row, `\\x`)[1:] {
				end := strings.IndexFunc(piece, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })
				b, err := hex.DecodeString(piece[:end])
				must(t, err)
				all = append(all, b...)
			}
		}
	}
	return all
}

// needles are pieces of all secrets that decrypt a blob: its key under the vault's, the keys of its
// segments, and the beginning of the plaintext.
func needles(t *testing.T, v *Vault) map[string][]byte {
	t.Helper()
	names, err := v.Backend.Blobs()
	must(t, err)
	out := map[string][]byte{}
	for _, name := range names {
		b, err := v.Backend.Open(name)
		must(t, err)
		for what, at := range map[string]int64{"wrapped key": int64(seal.WrappedStart), "first slot or chunk": seal.HeaderBlock, "data": 0} {
			piece := make([]byte, 32)
			if what == "data" && !strings.HasPrefix(name, "tuples-") || what != "data" && strings.HasPrefix(name, "tuples-") {
				continue
			}
			if what == "first slot or chunk" {
				at += stock.SlotFixed // a slot begins with its place
			}
			if n, _ := b.ReadAt(piece, at); n == len(piece) {
				out[name+": "+what] = piece
			}
		}
		must(t, b.Close())
	}
	return out
}

// After an epoch is destroyed nothing is left in a store's files or rows with which its keys, MAC
// keys and shares could be read, by somebody who has the operator's key as well. The embedded store
// has them nowhere in its files.
func TestDestroyedEpochIsNowhere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "vault")
	for name, p := range map[string]func(t *testing.T) (func() (store.Store, error), func() []byte){
		"directory": func(t *testing.T) (func() (store.Store, error), func() []byte) {
			return func() (store.Store, error) { return store.OpenDir(dir) }, func() []byte { return files(t, dir) }
		},
		"postgres": func(t *testing.T) (func() (store.Store, error), func() []byte) {
			dsn, _ := storetest.Postgres(t)
			return func() (store.Store, error) { return store.OpenPostgres(context.Background(), dsn) }, func() []byte { return rows(t, dsn) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			open, raw := p(t)
			s, err := open()
			must(t, err)
			v, err := OpenIn(s, newKey(t))
			must(t, err)
			defer v.Close()
			stocked(t, v, 1500, 20)
			addEpoch(t, v, 2, "triples")
			must(t, v.ActivateEpoch(2))
			reserve(t, v, "r", in(0, 10, 700))
			_, err = fetch(v, "r", "alice")
			must(t, err)
			lost, kept := map[string][]byte{}, map[string][]byte{}
			keeps := seal.ObjectName("", "2")
			for what, b := range needles(t, v) {
				if strings.Contains(what, keeps) {
					kept[what] = b
				} else {
					lost[what] = b
				}
			}
			if len(lost) < 9 || len(kept) < 2 {
				t.Fatalf("%d and %d things to look for", len(lost), len(kept))
			}
			all := raw()
			for what, b := range lost {
				if !bytes.Contains(all, b) {
					t.Errorf("%s is not found although it is stored", what)
				}
			}
			must(t, v.DrainEpoch(1, 2))
			if _, err := v.RetireEpoch(1, "destroyed"); err != nil {
				t.Fatal(err)
			}
			all = raw()
			for what, b := range lost {
				if bytes.Contains(all, b) {
					t.Errorf("%s is still there", what)
				}
			}
			for what, b := range kept {
				if !bytes.Contains(all, b) {
					t.Errorf("%s, of the other epoch, is missing", what)
				}
			}
			noFindings(t, v)
		})
	}
}
