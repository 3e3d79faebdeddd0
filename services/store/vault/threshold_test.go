package vault

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// membersOf are the signing keys that rosterOf makes of names.
func membersOf(names ...string) [][]byte { return rosterOf(0, names...).Keys }

// thresholdEpoch describes an epoch whose members a, b and c decrypt in twos.
func thresholdEpoch(id uint64) keys.Epoch {
	return keys.Epoch{ID: id, Purpose: keys.PurposeThreshold, Limit: 3, Threshold: 1, Members: membersOf("a", "b", "c")}
}

func storeEpoch(v *Vault, e keys.Epoch) error {
	w, err := v.NewEpoch(e)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Secret.Write(canary); err != nil {
		return err
	}
	if _, err := w.Public.Write([]byte("public")); err != nil {
		return err
	}
	return w.Commit()
}

// addThreshold stores an active threshold epoch.
func addThreshold(t testing.TB, v *Vault, id uint64) {
	t.Helper()
	must(t, storeEpoch(v, thresholdEpoch(id)))
	must(t, v.ActivateEpoch(id))
}

// A threshold epoch has members of whom some suffice, this party among them, and no other epoch has
// any.
func TestMembers(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	must(t, v.Pin(keys.Roster{Hash: [32]byte{1}, Keys: membersOf("x", "a"), Self: 1}))
	for what, change := range map[string]func(*keys.Epoch){
		"no members":         func(e *keys.Epoch) { e.Members = nil },
		"no threshold":       func(e *keys.Epoch) { e.Threshold = 0 },
		"all of them":        func(e *keys.Epoch) { e.Threshold = 3 },
		"a huge threshold":   func(e *keys.Epoch) { e.Threshold = 1 << 31 },
		"one twice":          func(e *keys.Epoch) { e.Members[2] = e.Members[0] },
		"one without a key":  func(e *keys.Epoch) { e.Members[1] = nil },
		"others":             func(e *keys.Epoch) { e.Members[0] = []byte("x") },
		"too many":           func(e *keys.Epoch) { e.Members = append(e.Members, make([][]byte, keys.MaxMembers)...) },
		"members of triples": func(e *keys.Epoch) { e.Purpose, e.Threshold = keys.PurposeTriples, 0 },
		"triples of some":    func(e *keys.Epoch) { e.Purpose, e.Members = keys.PurposeTriples, nil },
	} {
		e := thresholdEpoch(1)
		change(&e)
		if err := storeEpoch(v, e); !errors.Is(err, vaulterr.ErrRange) {
			t.Errorf("%s: %v", what, err)
		}
	}
	addThreshold(t, v, 1)
	e, err := v.Epoch(1)
	if must(t, err); e.Threshold != 1 || len(e.Members) != 3 || string(e.Members[2]) != "c" || e.Holders != [32]byte{} {
		t.Errorf("%+v", e)
	}
	noFindings(t, v)
}

// A threshold epoch serves under every roster that has enough of its members and this party,
// wherever they are.
func TestStandingOfThreshold(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addThreshold(t, v, 1)
	addThreshold(t, v, 2)
	must(t, storeMasks(v, masksOf("m", 50, 0, 1)))
	must(t, v.ActivateBatch("m"))
	e, err := v.Epoch(1)
	must(t, err)
	if v.Standing(&e) != keys.SameRoster || !slices.Equal(v.Places(&e), []int{-1, -1, -1}) {
		t.Errorf("without a roster: %v, %v", v.Standing(&e), v.Places(&e))
	}
	for i, c := range []struct {
		keys     []string
		self     int
		standing keys.Standing
		places   []int
	}{
		{[]string{"a", "b", "c"}, 0, keys.SameRoster, []int{0, 1, 2}},
		{[]string{"c", "x", "a"}, 2, keys.SameRoster, []int{2, -1, 0}},
		{[]string{"b", "a", "y", "z"}, 1, keys.SameRoster, []int{1, 0, -1}},
		{[]string{"a", "x", "y"}, 0, keys.OtherParties, []int{0, -1, -1}},
		{[]string{"a", "b", "c", "x"}, 3, keys.OtherParties, []int{0, 1, 2}},
		{[]string{"a", "b", "c"}, 3, keys.OtherParties, []int{0, 1, 2}},
		{[]string{"a", "b", "c"}, -1, keys.OtherParties, []int{0, 1, 2}},
		{[]string{"x", "y"}, 0, keys.OtherParties, []int{-1, -1, -1}},
		{[]string{"b", "a"}, 1, keys.SameRoster, []int{1, 0, -1}},
	} {
		must(t, v.Pin(keys.Roster{Hash: [32]byte{byte(i + 1)}, Keys: membersOf(c.keys...), Self: c.self}))
		if v.Standing(&e) != c.standing || !slices.Equal(v.Places(&e), c.places) {
			t.Errorf("%v: %v, %v", c.keys, v.Standing(&e), v.Places(&e))
		}
		var want error
		if c.standing != keys.SameRoster {
			want = vaulterr.ErrRoster
		}
		in, err := v.OpenEpochSecret(1)
		closeAll(in)
		refused(t, err, want)
		_, err = v.SpendMasks("m", stock.Span{First: uint64(i), Count: 1})
		refused(t, err, want)
		refused(t, storeMasks(v, masksOf(fmt.Sprint("new-", i), 5, 0, 1)), want)
	}
	must(t, v.Sweep())
	clockOf(v, stock.Settle)
	must(t, v.Sweep())
	noFindings(t, v)
}

// No purpose is taken for another.
func TestPurposesNeverCross(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	stocked(t, v, 10)
	addEpoch(t, v, 2, keys.PurposeDecryption)
	must(t, v.ActivateEpoch(2))
	addThreshold(t, v, 3)
	refused(t, v.SpendDecryptions(3, 0), vaulterr.ErrState)
	_, _, err := v.RecordDecryption(ledger.LedgerKey{Epoch: 3, Quorum: []int{0, 1}}, "alice", canary)
	refused(t, err, vaulterr.ErrState)
	for _, epoch := range []uint64{2, 3} {
		b, k := batchOf("tuples", 5), macKey("mac-2")
		b.Epoch, b.MACKey, k.Epoch = epoch, "mac-2", epoch
		refused(t, storeBatch(v, b, k), vaulterr.ErrState)
		if _, err := v.MACKey("mac-2"); !errors.Is(err, vaulterr.ErrNotFound) {
			t.Errorf("a MAC key lies under epoch %d: %v", epoch, err)
		}
	}
	for _, epoch := range []uint64{1, 2} {
		b := masksOf("masks", 5, 0, 1)
		b.Epoch = epoch
		refused(t, storeMasks(v, b), vaulterr.ErrState)
	}
	noFindings(t, v)
}

// The record of an epoch from before members were introduced decodes unchanged, and has no members.
func TestEpochsOfBefore(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	e, err := seal.Decode[keys.Epoch](v.Store, "k", v.SealAt("k", []byte(`{"id":7,"state":"active","purpose":"triples","limit":5}`)))
	if must(t, err); e.ID != 7 || e.Purpose != keys.PurposeTriples || e.Threshold != 0 || e.Members != nil || v.CheckMembers(e) != nil {
		t.Errorf("%+v", e)
	}
}
