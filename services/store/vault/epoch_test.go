package vault

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func TestEpochs(t *testing.T) {
	v := inMemory(t)
	addEpoch(t, v, 1, "triples")
	if _, err := v.NewEpoch(keys.Epoch{ID: 1}); !errors.Is(err, vaulterr.ErrExists) {
		t.Fatalf("a second epoch 1: %v", err)
	}
	_, err := v.OpenEpochSecret(1)
	refused(t, err, vaulterr.ErrState)
	must(t, v.ActivateEpoch(1))
	must(t, v.ActivateEpoch(1))
	r, err := v.OpenEpochSecret(1)
	if got := content(t, r, err); got != string(canary) {
		t.Fatalf("got %q", got)
	}
	r, err = v.OpenEpochPublic(1)
	if got := content(t, r, err); got != "public" {
		t.Fatalf("got %q", got)
	}
	refused(t, v.ActivateEpoch(2), vaulterr.ErrNotFound)
	w, err := v.NewEpoch(keys.Epoch{ID: 2})
	must(t, err)
	w.Abort()
	if es, err := v.Epochs(); err != nil || len(es) != 1 || objects(t, v) != 2 {
		t.Fatalf("%v, %v, %d objects", es, err, objects(t, v))
	}
}

func TestRetire(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 10, 10)
	reserve(t, v, "r", in(0, 0, 5))
	if n, err := v.RetireEpoch(1, "verified"); err != nil || n != 2 {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := v.RetireEpoch(1, "again"); err != nil || n != 0 {
		t.Fatalf("%d, %v", n, err)
	}
	refused(t, v.ActivateEpoch(1), vaulterr.ErrErased)
	_, err := v.OpenEpochSecret(1)
	refused(t, err, vaulterr.ErrErased)
	_, err = fetch(v, "r", "alice")
	refused(t, err, vaulterr.ErrErased)
	_, err = v.Reserve(reservation(v, "s", in(1, 0, 5)))
	refused(t, err, vaulterr.ErrErased)
	if n := objects(t, v); n != 0 {
		t.Fatalf("%d objects left", n)
	}
	if _, err := v.NewEpoch(keys.Epoch{ID: 1}); !errors.Is(err, vaulterr.ErrExists) {
		t.Fatalf("a retired epoch's id was used again: %v", err)
	}
}

func TestLedger(t *testing.T) {
	v := inMemory(t)
	addEpoch(t, v, 1, "triples")
	addEpoch(t, v, 2, "decryption")
	k := ledger.LedgerKey{Epoch: 2, Digest: [32]byte{1}, Quorum: []int{0, 1, 2}}
	_, _, err := v.RecordDecryption(k, "alice", []byte("x"))
	refused(t, err, vaulterr.ErrState) // locked
	must(t, v.ActivateEpoch(1))
	must(t, v.ActivateEpoch(2))
	_, err = v.Decryption(k)
	refused(t, err, vaulterr.ErrNotFound)
	held, first, err := v.RecordDecryption(k, "alice", []byte("first"))
	if err != nil || !first || string(held) != "first" {
		t.Fatalf("%q, %v, %v", held, first, err)
	}
	held, first, err = v.RecordDecryption(k, "alice", []byte("second"))
	if err != nil || first || string(held) != "first" {
		t.Fatalf("%q, %v, %v", held, first, err)
	}
	_, _, err = v.RecordDecryption(k, "bob", []byte("third"))
	refused(t, err, vaulterr.ErrDelivered)
	others := k
	others.Quorum = []int{0, 1}
	held, first, err = v.RecordDecryption(others, "bob", []byte("other parties"))
	if err != nil || !first || string(held) != "other parties" {
		t.Fatalf("%q, %v, %v", held, first, err)
	}
	others.Quorum = []int{1, 0}
	_, _, err = v.RecordDecryption(others, "bob", []byte("another order"))
	refused(t, err, vaulterr.ErrState)
	wrong := k
	wrong.Epoch = 1
	_, _, err = v.RecordDecryption(wrong, "alice", []byte("x"))
	refused(t, err, vaulterr.ErrState) // purpose
	wrong.Epoch = 3
	_, _, err = v.RecordDecryption(wrong, "alice", []byte("x"))
	refused(t, err, vaulterr.ErrNotFound)
	_, err = v.RetireEpoch(2, "")
	must(t, err)
	_, _, err = v.RecordDecryption(k, "alice", nil)
	refused(t, err, vaulterr.ErrErased)
	fresh := k
	fresh.Digest[0]++
	_, _, err = v.RecordDecryption(fresh, "alice", []byte("x"))
	refused(t, err, vaulterr.ErrErased)
	_, err = v.Decryption(fresh)
	refused(t, err, vaulterr.ErrNotFound)
	if e, err := v.Decryption(k); err != nil || e.Object != "" || e.Client != "alice" {
		t.Fatalf("%+v, %v", e, err)
	}
}

// A key decrypts as many ciphertexts as it may, those of clients and of sessions together, also
// across a restart.
func TestDecryptionsAreCounted(t *testing.T) {
	d, key := newDisk(), &seal.Key{}
	v := d.open(t, key)
	addEpoch(t, v, 1, "decryption") // of three
	refused(t, v.SpendDecryptions(1, 1), vaulterr.ErrState)
	refused(t, v.SpendDecryptions(2, 1), vaulterr.ErrNotFound)
	must(t, v.ActivateEpoch(1))
	refused(t, v.SpendDecryptions(1, 4), vaulterr.ErrSpent)
	refused(t, v.SpendDecryptions(1, ^uint64(0)), vaulterr.ErrSpent)
	must(t, v.SpendDecryptions(1, 2))
	v = d.open(t, key)
	refused(t, v.SpendDecryptions(1, 2), vaulterr.ErrSpent)
	k := ledger.LedgerKey{Epoch: 1, Digest: [32]byte{1}, Quorum: []int{0, 1}}
	for range 2 { // the second is the same decryption
		_, _, err := v.RecordDecryption(k, "alice", []byte("answer"))
		must(t, err)
	}
	k.Digest[0]++
	_, _, err := v.RecordDecryption(k, "alice", []byte("answer"))
	refused(t, err, vaulterr.ErrSpent)
	_, err = v.Decryption(k)
	refused(t, err, vaulterr.ErrNotFound)
}

// Answers are objects: they survive a restart, those that nobody recorded and those of a retired
// epoch do not.
func TestAnswersAreObjects(t *testing.T) {
	d, key := newDisk(), &seal.Key{}
	v := d.open(t, key)
	addEpoch(t, v, 1, "decryption")
	must(t, v.ActivateEpoch(1))
	answers := func() (n int) {
		blobs, err := v.Backend.Blobs()
		must(t, err)
		for _, b := range blobs {
			if strings.HasPrefix(b, "answer-") {
				n++
			}
		}
		return n
	}
	k := ledger.LedgerKey{Epoch: 1, Digest: [32]byte{1}, Quorum: []int{0, 1}}
	for range 3 {
		_, _, err := v.RecordDecryption(k, "alice", bytes.Repeat([]byte("answer"), 50_000))
		must(t, err)
	}
	if answers() != 1 {
		t.Errorf("%d objects for one answer", answers())
	}
	v = d.open(t, key)
	held, first, err := v.RecordDecryption(k, "alice", []byte("another"))
	if err != nil || first || len(held) != 300_000 || answers() != 1 {
		t.Errorf("%d bytes, %v, %v; %d objects", len(held), first, err, answers())
	}
	_, err = v.RetireEpoch(1, "")
	must(t, err)
	if answers() != 0 {
		t.Errorf("%d answers outlive their epoch", answers())
	}
}

// Of two writers of one epoch, one commits: an id names one set of keys, ever.
func TestTwoWritersOfAnEpoch(t *testing.T) {
	v := inMemory(t)
	var ws [2]*keys.EpochWriter
	for i := range ws {
		var err error
		ws[i], err = v.NewEpoch(keys.Epoch{ID: 1, Purpose: "triples"})
		must(t, err)
		_, err = ws[i].Secret.Write([]byte{byte('a' + i)})
		must(t, err)
	}
	must(t, ws[1].Commit())
	refused(t, ws[0].Commit(), vaulterr.ErrExists)
	must(t, v.ActivateEpoch(1))
	r, err := v.OpenEpochSecret(1)
	if got := content(t, r, err); got != "b" {
		t.Errorf("the share of a key is %q", got)
	}
	_, err = v.NewEpoch(keys.Epoch{ID: 1, Purpose: "triples"})
	refused(t, err, vaulterr.ErrExists)
}
