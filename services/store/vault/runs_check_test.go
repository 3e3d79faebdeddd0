package vault

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A backup has the answers, and a restore keeps them with the epoch, and that they were given
// without.
func TestBackupOfAnswers(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	addThreshold(t, v, 1)
	must(t, v.RecordThreshold(runOf(1, 0, 1000)))
	_, _, err := flooded(v, floodRun(1, digestOf(5000), []uint32{0, 1}, "alice"), canary)
	must(t, err)
	stream := backupOf(t, v)
	for _, keep := range []bool{false, true} {
		disk := newDisk()
		_, err := Restore(&memory{disk: disk}, bytes.NewReader(stream), k, upkeep.RestoreOptions{KeepDecryption: keep})
		must(t, err)
		r := disk.open(t, k)
		noFindings(t, r)
		must(t, r.LeaveQuarantine())
		e, err := r.Epoch(1)
		if must(t, err); e.Answered != 1000 || e.Limit != 3 || e.Decrypted != 3 {
			t.Errorf("%+v", e)
		}
		if keep {
			holds(t, r, 1, 0, 1000)
			held, first, err := flooded(r, floodRun(2, digestOf(5000), []uint32{0, 1}, "alice"), nil)
			if err != nil || first || !bytes.Equal(held, canary) || e.State != keys.EpochDraining {
				t.Errorf("%q, %v, %v, %+v", held, first, err, e)
			}
			must(t, r.RecordThreshold(runOf(2, 2000, 1)))
			noFindings(t, r)
			continue
		}
		held, err := r.ThresholdAnswers(1, []uint32{0, 1}, []ledger.Messages{only(digestOf(999))})
		if must(t, err); theOne(t, held[0]).Client != "alice" || held[0][0].Bytes != nil {
			t.Errorf("%+v", held)
		}
		refused(t, r.RecordThreshold(runOf(2, 2000, 1)), vaulterr.ErrErased)
		if n := objects(t, r); n != 0 {
			t.Errorf("%d objects", n)
		}
	}
}

// A check finds damage of the ledger, and an entry behind a wrong pointer is not accepted as an
// answer.
func TestCheckOfRuns(t *testing.T) {
	t.Parallel()
	place := ledger.Pointers(1, []uint32{0, 1}, [][32]byte{digestOf(0), digestOf(1)})
	elsewhere := ledger.Pointers(1, []uint32{0, 2}, [][32]byte{digestOf(5)})
	const size = ledger.DigestLen + 1 + 1 + 8 // of an entry
	at := func(p ledger.AnswerPiece) []byte { return ledger.EncodePointer([]ledger.AnswerPiece{p}) }
	for want, c := range map[string]struct {
		damage func(*Vault, store.Tx) error
		reads  error
	}{
		place[0] + ": it points to chunk 7 of run 01000000000000000000000000000000": {func(_ *Vault, tx store.Tx) error {
			return tx.Put(place[0], at(ledger.AnswerPiece{First: 0, Count: 1, Run: ledger.RunID{1}, Chunk: 7, Offset: 0}))
		}, vaulterr.ErrCorrupt},
		place[1] + ": it points to chunk 0 of run 09000000000000000000000000000000": {func(_ *Vault, tx store.Tx) error {
			return tx.Put(place[1], at(ledger.AnswerPiece{First: 0, Count: 1, Run: ledger.RunID{9}, Chunk: 0, Offset: 0}))
		}, vaulterr.ErrNotFound},
		"at/1/: of 1 of 3 messages they do not lead to the answers": {func(_ *Vault, tx store.Tx) error {
			return tx.Put(place[0], at(ledger.AnswerPiece{First: 0, Count: 1, Run: ledger.RunID{2}, Chunk: 0, Offset: 0}))
		}, vaulterr.ErrCorrupt},
		place[0] + ": does not point to offset 0 of chunk 0 of run 01": {func(_ *Vault, tx store.Tx) error {
			return tx.Put(place[0], at(ledger.AnswerPiece{First: 0, Count: 1, Run: ledger.RunID{1}, Chunk: 0, Offset: size}))
		}, vaulterr.ErrCorrupt},
		place[1] + ": does not point to offset 42 of chunk 0 of run 01": {func(_ *Vault, tx store.Tx) error {
			return tx.Put(place[1], at(ledger.AnswerPiece{First: 0, Count: 2, Run: ledger.RunID{1}, Chunk: 0, Offset: size})) // the second has no answer
		}, vaulterr.ErrCorrupt},
		"at/1/: of 1 of 4 messages they do not lead to the answers": {func(_ *Vault, tx store.Tx) error {
			return tx.Put(elsewhere[0], at(ledger.AnswerPiece{First: 0, Count: 1, Run: ledger.RunID{2}, Chunk: 0, Offset: 0})) // of another quorum
		}, nil},
		"epoch/00000000000000000001: 2 messages are answered, and it counts 3": {func(_ *Vault, tx store.Tx) error {
			return tx.Delete(place[0])
		}, nil},
		place[0] + ": vault: stored data does not authenticate": {func(_ *Vault, tx store.Tx) error {
			return tx.Put(place[0], []byte("short"))
		}, vaulterr.ErrCorrupt},
		ledger.RunKey(1, ledger.RunID{1}) + ": it has answers for 2 messages, and counts 7": {func(v *Vault, tx store.Tx) error {
			r, err := seal.Get[ledger.RunRecord](v.Store, tx, ledger.RunKey(1, ledger.RunID{1}))
			if err == nil {
				r.Count = 7
				err = seal.Put(v.Store, tx, ledger.RunKey(1, ledger.RunID{1}), r)
			}
			return err
		}, nil},
		ledger.RunKey(1, ledger.RunID{1}) + ": it has 0 chunks of answers, and should have 1": {func(_ *Vault, tx store.Tx) error {
			return tx.Delete(ledger.ChunkKey(1, ledger.RunID{1}, 0))
		}, vaulterr.ErrCorrupt},
		ledger.RunKey(1, ledger.RunID{8}) + ": is not recorded, and has answers": {func(_ *Vault, tx store.Tx) error {
			return tx.Put(ledger.ChunkKey(1, ledger.RunID{8}, 0), nil)
		}, nil},
		ledger.RunKey(1, ledger.RunID{1}) + ": vault: stored data does not authenticate: " + ledger.ChunkKey(1, ledger.RunID{1}, 0): {func(_ *Vault, tx store.Tx) error {
			return tx.Put(ledger.ChunkKey(1, ledger.RunID{1}, 0), make([]byte, 100))
		}, vaulterr.ErrCorrupt},
		ledger.RunKey(5, ledger.RunID{1}) + ": its epoch 5 is not recorded, or for something else": {func(v *Vault, tx store.Tx) error {
			return seal.Put(v.Store, tx, ledger.RunKey(5, ledger.RunID{1}), &ledger.RunRecord{Epoch: 5, Run: ledger.RunID{1}})
		}, nil},
		ledger.RunKey(1, ledger.RunID{1}) + ": vault: out of range: [0] is not a quorum": {func(v *Vault, tx store.Tx) error {
			r, err := seal.Get[ledger.RunRecord](v.Store, tx, ledger.RunKey(1, ledger.RunID{1}))
			if err == nil {
				r.Quorum = []uint32{0}
				err = seal.Put(v.Store, tx, ledger.RunKey(1, ledger.RunID{1}), r)
			}
			return err
		}, vaulterr.ErrCorrupt},
	} {
		d, k := newDisk(), &seal.Key{}
		v := d.open(t, k)
		addThreshold(t, v, 1)
		must(t, v.RecordThreshold(runOf(1, 0, 2)))
		must(t, v.RecordThreshold(runOf(2, 5, 1)))
		noFindings(t, v)
		must(t, v.Update(func(tx store.Tx) error { return c.damage(v, tx) }))
		_, err := v.ThresholdAnswers(1, []uint32{0, 1}, []ledger.Messages{only(digestOf(0)), only(digestOf(1))})
		refused(t, err, c.reads)
		v, err = Examine(&memory{disk: d}, k)
		must(t, err)
		if got := findings(t, v, true); !slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("%s is not found, but\n%s", want, strings.Join(got, "\n"))
		}
	}
}
