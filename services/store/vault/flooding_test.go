package vault

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// floodRun is a run for one ciphertext.
func floodRun(run byte, digest [32]byte, quorum []uint32, client string) ledger.FloodRun {
	return ledger.FloodRun{Epoch: 1, Quorum: quorum, Run: ledger.RunID{run}, Client: client, Digests: [][32]byte{digest}}
}

// flooded decrypts a ciphertext with flooding as a party does, and gives what holds.
func flooded(v *Vault, r ledger.FloodRun, answer []byte, also ...seal.Also) (held []byte, first bool, err error) {
	there, err := v.Floods(r)
	if err != nil {
		return nil, false, err
	}
	if there[0].Answer != nil {
		return there[0].Answer, false, v.ReleaseFloods(r, there)
	}
	if err := v.BeginFloods(r); err != nil {
		return nil, false, err
	}
	if err := v.RecordFloods(r, [][]byte{answer}, also...); err != nil {
		return nil, false, err
	}
	return answer, true, v.ReleaseFloods(r, []ledger.Flood{{Run: r.Run}})
}

// A ciphertext that is decrypted with flooding has one answer, one client and one quorum.
func TestFlooding(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	addThreshold(t, v, 1)
	run := byte(0)
	first := func(i int, quorum []uint32, client string, answer string) (string, bool, error) {
		run++
		held, first, err := flooded(v, floodRun(run, digestOf(i), quorum, client), []byte(answer))
		return string(held), first, err
	}
	there, err := v.Floods(floodRun(1, digestOf(0), []uint32{0, 2}, "alice"))
	if err != nil || there[0].Answer != nil || there[0].Run != (ledger.RunID{}) {
		t.Errorf("%+v, %v", there, err)
	}
	held, new, err := first(0, []uint32{0, 2}, "alice", "one")
	if err != nil || !new || held != "one" {
		t.Fatalf("%q, %v, %v", held, new, err)
	}
	must(t, v.Close())
	v = d.open(t, k)
	if held, new, err = first(0, []uint32{0, 2}, "alice", "two"); err != nil || new || held != "one" {
		t.Errorf("%q, %v, %v", held, new, err)
	}
	refused(t, v.BeginFloods(floodRun(9, digestOf(0), []uint32{0, 2}, "alice")), vaulterr.ErrReleased)
	_, _, err = first(0, []uint32{0, 1}, "alice", "two")
	refused(t, err, vaulterr.ErrQuorum)
	var q *ledger.QuorumError
	if !errors.As(err, &q) || !slices.Equal(q.Quorum, []uint32{0, 2}) || !strings.Contains(err.Error(), "[0 2]") {
		t.Errorf("%v does not name the quorum", err)
	}
	refused(t, v.BeginFloods(floodRun(9, digestOf(0), []uint32{0, 1}, "alice")), vaulterr.ErrQuorum)
	_, _, err = first(0, []uint32{0, 2}, "bob", "two")
	refused(t, err, vaulterr.ErrDelivered)
	refused(t, v.BeginFloods(floodRun(9, digestOf(0), []uint32{0, 2}, "bob")), vaulterr.ErrDelivered)
	for _, bad := range [][]uint32{nil, {0}, {1, 0}, {0, 3}} {
		refused(t, v.BeginFloods(floodRun(9, digestOf(1), bad, "alice")), vaulterr.ErrRange)
	}
	refused(t, v.BeginFloods(floodRun(9, digestOf(1), []uint32{0, 1}, "")), vaulterr.ErrRange)
	refused(t, v.BeginFloods(floodRun(0, digestOf(1), []uint32{0, 1}, "alice")), vaulterr.ErrRange)
	twice := floodRun(9, digestOf(1), []uint32{0, 1}, "alice")
	twice.Digests = append(twice.Digests, twice.Digests[0])
	refused(t, v.BeginFloods(twice), vaulterr.ErrRange)
	for i := range 2 {
		_, _, err = first(1+i, []uint32{0, 1}, "alice", "x")
		must(t, err)
	}
	_, _, err = first(4, []uint32{0, 1}, "alice", "x")
	refused(t, err, vaulterr.ErrSpent)
	if e, err := v.Epoch(1); err != nil || e.Decrypted != 3 || e.Answered != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	stocked := inMemory(t)
	addEpoch(t, stocked, 1, keys.PurposeDecryption)
	must(t, stocked.ActivateEpoch(1))
	refused(t, stocked.BeginFloods(floodRun(1, digestOf(0), []uint32{0, 1}, "alice")), vaulterr.ErrState)
	noFindings(t, v)
	_, err = v.RetireEpoch(1, "test")
	must(t, err)
	_, _, err = first(0, []uint32{0, 2}, "alice", "two")
	refused(t, err, vaulterr.ErrErased)
	if n := objects(t, v); n != 0 {
		t.Errorf("%d objects", n)
	}
	noFindings(t, v)
}

// After a run that ends in the middle, its ciphertexts belong to its quorum and client and are
// counted, and unreleased answers may be begun again.
func TestFloodingThatEnds(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	e := thresholdEpoch(1)
	e.Limit = 4
	must(t, storeEpoch(v, e))
	must(t, v.ActivateEpoch(1))
	counts := func(want uint64) {
		t.Helper()
		if e, err := v.Epoch(1); err != nil || e.Decrypted != want {
			t.Errorf("%d are counted, want %d: %v", e.Decrypted, want, err)
		}
	}
	again := func() {
		t.Helper()
		must(t, v.Close())
		v = d.open(t, k)
		noFindings(t, v)
	}
	begun := floodRun(1, digestOf(0), []uint32{0, 1}, "alice")
	must(t, v.BeginFloods(begun))
	again()
	counts(1)
	refused(t, v.BeginFloods(floodRun(2, digestOf(0), []uint32{0, 2}, "alice")), vaulterr.ErrQuorum)
	refused(t, v.BeginFloods(floodRun(2, digestOf(0), []uint32{0, 1}, "bob")), vaulterr.ErrDelivered)
	refused(t, v.ReleaseFloods(begun, []ledger.Flood{{Run: begun.Run}}), vaulterr.ErrState)
	refused(t, v.ReleaseFloods(begun, nil), vaulterr.ErrRange)
	counts(1)
	next := floodRun(2, digestOf(0), []uint32{0, 1}, "alice")
	refused(t, v.RecordFloods(next, [][]byte{[]byte("x")}), vaulterr.ErrState)
	must(t, v.BeginFloods(next))
	counts(2)
	refused(t, v.RecordFloods(begun, [][]byte{[]byte("x")}), vaulterr.ErrState)
	refused(t, v.RecordFloods(next, nil), vaulterr.ErrRange)
	must(t, v.RecordFloods(next, [][]byte{[]byte("two")}))
	refused(t, v.RecordFloods(next, [][]byte{[]byte("x")}), vaulterr.ErrExists)
	again()
	held, err := v.Floods(next)
	if err != nil || string(held[0].Answer) != "two" || held[0].Run != next.Run || held[0].Released {
		t.Errorf("%+v, %v", held, err)
	}
	third := floodRun(3, digestOf(0), []uint32{0, 1}, "alice")
	must(t, v.BeginFloods(third)) // another party has lost its answer, and this one's has not left
	counts(3)
	if n := objects(t, v); n != 2 {
		t.Errorf("%d objects: replaced answers must be erased", n)
	}
	must(t, v.RecordFloods(third, [][]byte{[]byte("three")}))
	refused(t, v.ReleaseFloods(third, []ledger.Flood{{Run: next.Run}}), vaulterr.ErrState)
	must(t, v.ReleaseFloods(third, []ledger.Flood{{Run: third.Run}}))
	again()
	refused(t, v.BeginFloods(floodRun(4, digestOf(0), []uint32{0, 1}, "alice")), vaulterr.ErrReleased)
	held, err = v.Floods(third)
	if err != nil || string(held[0].Answer) != "three" || !held[0].Released {
		t.Errorf("%+v, %v", held, err)
	}
	two := ledger.FloodRun{Epoch: 1, Quorum: []uint32{0, 1}, Run: ledger.RunID{5}, Client: "alice", Digests: [][32]byte{digestOf(1), digestOf(2)}}
	refused(t, v.BeginFloods(two), vaulterr.ErrSpent) // both or none
	counts(3)
}

// sharesOf are new shares, with this threshold, of the keys of an epoch.
func sharesOf(t *testing.T, v *Vault, id, from uint64, threshold uint32) {
	t.Helper()
	of, err := v.Epoch(from)
	must(t, err)
	e := thresholdEpoch(id)
	e.From, e.Digest, e.Limit, e.Threshold = from, of.Digest, 1<<20, threshold
	e.Members = membersOf("a", "b", "c", "d", "e")
	must(t, storeEpoch(v, e))
	must(t, v.ActivateEpoch(id))
}

// under begins ciphertext i under an epoch with a threshold of one.
func under(v *Vault, epoch uint64, i int) error {
	r := floodRun(byte(epoch), digestOf(i), []uint32{0, 1}, "alice")
	r.Epoch, r.Run[1] = epoch, byte(i)
	return v.BeginFloods(r)
}

// New shares of the same secrets are the same keys: a ciphertext keeps its quorum, and earlier
// answers count, under new shares twice, as a quorum of the first shares has two holders. New
// shares bring nothing that there was not.
func TestFloodingUnderNewShares(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	left := func(want ...uint64) {
		t.Helper()
		for i, n := range want {
			e, err := v.Epoch(uint64(i) + 1)
			must(t, err)
			limit, err := v.FloodingLimit(e.ID)
			if must(t, err); limit-e.Decrypted != n {
				t.Errorf("epoch %d: %d left, want %d", e.ID, limit-e.Decrypted, n)
			}
		}
	}
	first := thresholdEpoch(1)
	first.Limit, first.Digest = 9, [32]byte{1}
	must(t, storeEpoch(v, first))
	must(t, v.ActivateEpoch(1))
	addThreshold(t, v, 2) // other keys
	must(t, under(v, 1, 0))
	sharesOf(t, v, 3, 1, 1)
	left(8, 3, 4)
	refused(t, under(v, 3, 0), vaulterr.ErrQuorum)
	must(t, under(v, 3, 1))
	must(t, under(v, 2, 0))
	must(t, under(v, 2, 1))
	left(6, 1, 3)
	sharesOf(t, v, 4, 3, 1)
	must(t, under(v, 4, 2))
	must(t, under(v, 1, 3))
	left(3, 1, 1, 1)
	_, err := v.RetireEpoch(1, "test")
	must(t, err)
	must(t, v.Close())
	v = d.open(t, k)
	refused(t, under(v, 3, 3), vaulterr.ErrQuorum) // of the retired epoch
	must(t, under(v, 3, 4))
	left(1, 1, 0, 0)
	for epoch := range uint64(2) {
		refused(t, under(v, 3+epoch, 5), vaulterr.ErrSpent)
	}
	sharesOf(t, v, 5, 4, 1)
	left(1, 1, 0, 0, 0)
	refused(t, under(v, 5, 5), vaulterr.ErrSpent)
	must(t, under(v, 2, 5))
	noFindings(t, v)
}

// The threshold of the epoch in which keys were made says how often a ciphertext counts, and that
// of new shares nothing.
func TestFloodingCostsByTheFirstThreshold(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	first := thresholdEpoch(1)
	first.Limit, first.Threshold, first.Members = 9, 2, membersOf("a", "b", "c", "d", "e")
	must(t, storeEpoch(v, first))
	must(t, v.ActivateEpoch(1))
	sharesOf(t, v, 2, 1, 1)
	for i := range 3 {
		must(t, under(v, 2, i))
	}
	refused(t, under(v, 2, 3), vaulterr.ErrSpent)
}

// A party that held no share when the keys were made answers nothing with flooding.
func TestFloodingByNewHolders(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	e := thresholdEpoch(2)
	e.From, e.Limit = 1, 1<<20
	must(t, storeEpoch(v, e))
	must(t, v.ActivateEpoch(2))
	refused(t, under(v, 2, 0), vaulterr.ErrSpent)
	if e, err := v.Epoch(2); err != nil || e.Limit != 0 {
		t.Errorf("%d, %v", e.Limit, err)
	}
	sharesOf(t, v, 3, 2, 1)
	refused(t, under(v, 3, 0), vaulterr.ErrSpent)
	if limit, err := v.FloodingLimit(3); err != nil || limit != 0 {
		t.Errorf("%d, %v", limit, err)
	}
}

// Answers under new shares after a backup count too, also if the epoch in which the keys were made
// is retired in the backup, or missing.
func TestFloodingUnderNewSharesAfterRestore(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		for _, retired := range []bool{true, false} {
			d, k := newDisk(), &seal.Key{}
			v := d.open(t, k)
			first := thresholdEpoch(1)
			first.Limit = 9
			must(t, storeEpoch(v, first))
			must(t, v.ActivateEpoch(1))
			if retired {
				_, err := v.RetireEpoch(1, "test")
				must(t, err)
			}
			r := newDisk()
			_, err := Restore(&memory{disk: r}, bytes.NewReader(backupOf(t, v)), k, upkeep.RestoreOptions{KeepDecryption: keep})
			must(t, err)
			v = r.open(t, k)
			must(t, v.LeaveQuarantine())
			sharesOf(t, v, 2, 1, 1)
			refused(t, under(v, 2, 0), vaulterr.ErrSpent)
		}
	}
}

// Answers after a backup are not in it. So the store that comes of it begins nothing with flooding,
// under any epoch of the keys, however often it is restored. Answers that the backup knows are
// given again.
func TestFloodingAfterRestore(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	first := thresholdEpoch(1)
	first.Limit = 9
	must(t, storeEpoch(v, first))
	must(t, v.ActivateEpoch(1))
	known := floodRun(1, digestOf(0), []uint32{0, 1}, "alice")
	_, _, err := flooded(v, known, canary)
	must(t, err)
	begun := floodRun(2, digestOf(1), []uint32{0, 1}, "alice")
	must(t, v.BeginFloods(begun))
	r := newDisk()
	_, err = Restore(&memory{disk: r}, bytes.NewReader(backupOf(t, v)), k, upkeep.RestoreOptions{KeepDecryption: true})
	must(t, err)
	v = r.open(t, k)
	must(t, v.LeaveQuarantine())
	held, err := v.Floods(known)
	if must(t, err); !held[0].Released || !bytes.Equal(held[0].Answer, canary) {
		t.Errorf("%+v", held)
	}
	begun.Run = ledger.RunID{3}
	refused(t, v.BeginFloods(begun), vaulterr.ErrSpent)
	refused(t, v.BeginFloods(floodRun(4, digestOf(2), []uint32{0, 1}, "alice")), vaulterr.ErrSpent)
	sharesOf(t, v, 2, 1, 1)
	other := floodRun(5, digestOf(3), []uint32{0, 1}, "alice")
	other.Epoch = 2
	refused(t, v.BeginFloods(other), vaulterr.ErrSpent)
}

// Wherever it stops, a ciphertext that was begun is its quorum's, and counted, and an answer that
// was released stays.
func TestFloodingCrashes(t *testing.T) {
	t.Parallel()
	for _, f := range []fault{fails, doubtful, unwritten, before, after, half} {
		writes := floodingUntil(t, -1, f)
		for at := range writes {
			floodingUntil(t, at, f)
		}
	}
}

func floodingUntil(t *testing.T, at int, f fault) (writes int) {
	t.Helper()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	addThreshold(t, v, 1)
	start := d.writes
	d.fault = func(n int, _ string) fault {
		if at >= 0 && n == start+at {
			return f
		}
		return works
	}
	r := floodRun(1, digestOf(0), []uint32{0, 1}, "alice")
	steps := []func() error{
		func() error { return v.BeginFloods(r) },
		func() error { return v.RecordFloods(r, [][]byte{[]byte("answer")}) },
		func() error { return v.ReleaseFloods(r, []ledger.Flood{{Run: r.Run}}) },
	}
	reached := 0
	for i, step := range steps {
		if step() != nil {
			break
		}
		reached = i + 1
	}
	writes = d.writes - start
	d.fault = nil
	v = d.open(t, k)
	noFindings(t, v)
	e, err := v.Epoch(1)
	must(t, err)
	what := fmt.Sprintf("fault %d at %d, after step %d", f, at, reached)
	if reached >= 1 {
		if e.Decrypted != 1 {
			t.Errorf("%s: %d are counted", what, e.Decrypted)
		}
		refused(t, v.BeginFloods(floodRun(2, digestOf(0), []uint32{0, 2}, "alice")), vaulterr.ErrQuorum)
	}
	held, err := v.Floods(r)
	must(t, err)
	if reached >= 2 && string(held[0].Answer) != "answer" || reached >= 3 && !held[0].Released {
		t.Errorf("%s: %+v", what, held)
	}
	return writes
}
