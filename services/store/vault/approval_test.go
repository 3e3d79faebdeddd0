package vault

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// approvedBy says who has approved a request, and whether that is enough to use it now.
func approvedBy(v *Vault, digest [32]byte) (names []string, ok bool, err error) {
	list, err := v.Approvals()
	for _, a := range list {
		if a.Digest == digest {
			names, ok = a.By, a.Needs > 0 && len(a.By) >= a.Needs && a.Waits(v.Clock())
		}
	}
	return names, ok, err
}

// wish is a request of alice's that two others must approve within an hour.
func wish(v *Vault, i int) ledger.Approval {
	return ledger.Approval{Digest: digestOf(i), Epoch: 1, Client: "alice", Messages: 7, Note: "circuit", Needs: 2, Expires: v.Clock().Add(time.Hour)}
}

// allowed is a vault with a threshold epoch and a request that bob and carol have approved.
func allowed(t testing.TB, v *Vault) {
	t.Helper()
	addThreshold(t, v, 1)
	_, err := v.RequestApproval(wish(v, 0))
	must(t, err)
	for _, by := range []string{"bob", "carol"} {
		_, err = v.Approve(digestOf(0), by)
		must(t, err)
	}
}

// use has a run use an approval up.
func use(v *Vault, run byte, client string) error {
	return v.RecordThreshold(runOf(run, int(run)*100, 3), v.UseApproval(digestOf(0), client))
}

// A request waits for as many others as it needs, and is used once.
func TestApproval(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	addThreshold(t, v, 1)
	refused(t, use(v, 1, "alice"), vaulterr.ErrApproval)
	bold := wish(v, 0)
	bold.By = []string{"bob", "carol"}
	asked, err := v.RequestApproval(bold)
	if must(t, err); len(asked.By) > 0 {
		t.Errorf("it begins with the approval of %v", asked.By)
	}
	again := wish(v, 0)
	again.Note, again.Needs = "other", 1 // which changes nothing
	if same, err := v.RequestApproval(again); err != nil || !same.When.Equal(asked.When) || same.Needs != 2 || same.Note != "circuit" || same.Messages != 7 {
		t.Errorf("%+v, %v", same, err)
	}
	again.Client = "bob"
	_, err = v.RequestApproval(again)
	refused(t, err, vaulterr.ErrExists)
	_, err = v.Approve(digestOf(0), "alice")
	refused(t, err, vaulterr.ErrOwn)
	_, err = v.Approve(digestOf(0), "")
	refused(t, err, vaulterr.ErrRange)
	_, err = v.Approve(digestOf(1), "bob")
	refused(t, err, vaulterr.ErrNotFound)
	is := func(ok bool, names ...string) {
		t.Helper()
		got, yes, err := approvedBy(v, digestOf(0))
		if err != nil || yes != ok || !slices.Equal(got, names) {
			t.Fatalf("%v, %v, %v", got, yes, err)
		}
	}
	is(false)
	for range 3 { // of whom one is enough for one
		_, err = v.Approve(digestOf(0), "bob")
		must(t, err)
	}
	is(false, "bob")
	refused(t, use(v, 1, "alice"), vaulterr.ErrApproval)
	must(t, v.Close())
	v = d.open(t, k)
	out, err := v.Approve(digestOf(0), "carol")
	if must(t, err); !slices.Equal(out.By, []string{"bob", "carol"}) {
		t.Errorf("%+v", out)
	}
	is(true, "bob", "carol")
	noFindings(t, v)
	refused(t, use(v, 1, "bob"), vaulterr.ErrApproval)
	if n, err := v.ThresholdCount(1); n != 0 || err != nil {
		t.Errorf("%d are answered, %v", n, err)
	}
	must(t, use(v, 1, "alice"))
	holds(t, v, 1, 100, 3)
	is(false, "bob", "carol")
	refused(t, use(v, 2, "alice"), vaulterr.ErrApproval)
	holds(t, v, 0, 200, 3)
	_, err = v.Approve(digestOf(0), "dora")
	refused(t, err, vaulterr.ErrState)
	all, err := v.Approvals()
	if must(t, err); len(all) != 1 || all[0].Used.IsZero() {
		t.Errorf("%+v", all)
	}
	noFindings(t, v)
	if s, err := v.Stats(); err != nil || s.Approvals != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if fresh, err := v.RequestApproval(wish(v, 0)); err != nil || len(fresh.By) != 0 || !fresh.Used.IsZero() {
		t.Errorf("%+v, %v", fresh, err)
	}
	is(false)
	if s, err := v.Stats(); err != nil || s.Approvals != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// An approval goes with masks and with flooding, too, and where these are refused it stays.
func TestApprovalInOneStep(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	allowed(t, v)
	must(t, storeMasks(v, masksOf("m", 10, 0, 1)))
	must(t, v.ActivateBatch("m"))
	_, err := v.SpendMasks("m", span(0, 11), v.UseApproval(digestOf(0), "alice"))
	refused(t, err, vaulterr.ErrRange)
	_, err = v.SpendMasks("m", span(0, 1), v.UseApproval(digestOf(0), "bob"))
	refused(t, err, vaulterr.ErrApproval)
	if b := mustBatch(t, v, "m"); len(b.Taken) > 0 {
		t.Errorf("%+v", b)
	}
	_, err = v.SpendMasks("m", span(0, 1), v.UseApproval(digestOf(0), "alice"))
	must(t, err)
	_, _, err = flooded(v, floodRun(1, digestOf(9), []uint32{0, 1}, "alice"), canary, v.UseApproval(digestOf(0), "alice"))
	refused(t, err, vaulterr.ErrApproval)
	if e, err := v.Epoch(1); err != nil || e.Decrypted != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	there, err := v.Floods(floodRun(1, digestOf(9), []uint32{0, 1}, "alice"))
	if err != nil || there[0].Answer != nil {
		t.Errorf("%+v, %v", there, err)
	}
	before := version(t, v)
	_, err = v.RequestApproval(wish(v, 0))
	must(t, err)
	for _, by := range []string{"bob", "carol"} {
		_, err = v.Approve(digestOf(0), by)
		must(t, err)
	}
	if now := version(t, v); now.Generation != before.Generation { // losing that does no harm
		t.Errorf("generation %d, and %d before", now.Generation, before.Generation)
	}
	_, first, err := flooded(v, floodRun(1, digestOf(9), []uint32{0, 1}, "alice"), canary, v.UseApproval(digestOf(0), "alice"))
	if err != nil || !first {
		t.Errorf("%v, %v", first, err)
	}
	_, first, err = flooded(v, floodRun(2, digestOf(9), []uint32{0, 1}, "alice"), nil, v.UseApproval(digestOf(0), "alice"))
	if err != nil || first { // a repeated answer needs no other approval
		t.Errorf("%v, %v", first, err)
	}
}

// An expired request cannot be used, and is deleted.
func TestApprovalExpires(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	c := setClock(v)
	allowed(t, v)
	late := wish(v, 1)
	late.Expires = v.Clock().Add(3 * time.Hour)
	_, err := v.RequestApproval(late)
	must(t, err)
	c.pass(time.Hour - 1)
	must(t, v.Sweep())
	if _, ok, err := approvedBy(v, digestOf(0)); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	c.pass(1)
	if _, ok, err := approvedBy(v, digestOf(0)); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	refused(t, use(v, 1, "alice"), vaulterr.ErrApproval)
	_, err = v.Approve(digestOf(0), "dora")
	refused(t, err, vaulterr.ErrExpired)
	if again, err := v.RequestApproval(wish(v, 0)); err != nil || len(again.By) != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	c.pass(time.Hour)
	spoil(t, v, ledger.ApprovalPrefix+"00")
	refused(t, v.Sweep(), vaulterr.ErrCorrupt)
	must(t, v.Backend.Update(func(tx store.Tx) error { return tx.Delete(ledger.ApprovalPrefix + "00") }))
	all, err := v.Approvals()
	if must(t, err); len(all) != 1 || all[0].Digest != digestOf(1) {
		t.Errorf("%+v", all)
	}
	noFindings(t, v)
}

func TestApprovalRefuses(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addThreshold(t, v, 1)
	addEpoch(t, v, 2, keys.PurposeDecryption)
	must(t, v.ActivateEpoch(2))
	for what, c := range map[string]struct {
		change func(*ledger.Approval)
		want   error
	}{
		"no client":      {func(a *ledger.Approval) { a.Client = "" }, vaulterr.ErrRange},
		"a long client":  {func(a *ledger.Approval) { a.Client = strings.Repeat("a", seal.MaxName+1) }, vaulterr.ErrRange},
		"a long note":    {func(a *ledger.Approval) { a.Note = strings.Repeat("a", ledger.MaxNote+1) }, vaulterr.ErrRange},
		"a note of any":  {func(a *ledger.Approval) { a.Note = "\xff" }, vaulterr.ErrRange},
		"nobody needed":  {func(a *ledger.Approval) { a.Needs = 0 }, vaulterr.ErrRange},
		"all needed":     {func(a *ledger.Approval) { a.Needs = seal.MaxClients + 1 }, vaulterr.ErrRange},
		"expired":        {func(a *ledger.Approval) { a.Expires = v.Clock() }, vaulterr.ErrRange},
		"never expires":  {func(a *ledger.Approval) { a.Expires = v.Clock().Add(ledger.MaxApprovalTime + time.Minute) }, vaulterr.ErrRange},
		"for decryption": {func(a *ledger.Approval) { a.Epoch = 2 }, vaulterr.ErrState},
		"no epoch":       {func(a *ledger.Approval) { a.Epoch = 3 }, vaulterr.ErrNotFound},
	} {
		a := wish(v, 0)
		c.change(&a)
		if _, err := v.RequestApproval(a); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	_, err := v.Approve(digestOf(0), strings.Repeat("a", seal.MaxName+1))
	refused(t, err, vaulterr.ErrRange)
	for i := range ledger.MaxWaiting {
		_, err := v.RequestApproval(wish(v, i))
		must(t, err)
	}
	_, err = v.RequestApproval(wish(v, ledger.MaxWaiting))
	refused(t, err, vaulterr.ErrWaiting)
	_, err = v.RequestApproval(wish(v, 5)) // which waits already
	must(t, err)
	other := wish(v, ledger.MaxWaiting)
	other.Client = "bob"
	_, err = v.RequestApproval(other)
	must(t, err)
	for _, by := range []string{"bob", "carol"} {
		_, err = v.Approve(digestOf(0), by)
		must(t, err)
	}
	must(t, use(v, 1, "alice")) // which makes room
	_, err = v.RequestApproval(wish(v, ledger.MaxWaiting+1))
	must(t, err)
	if _, err = v.RetireEpoch(1, "test"); err != nil {
		t.Fatal(err)
	}
	if all, err := v.Approvals(); err != nil || len(all) != 0 {
		t.Errorf("%d are left, %v", len(all), err)
	}
	noFindings(t, v)
}

// No approval comes back from a backup, or outlives a quarantine.
func TestApprovalsAndBackups(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	allowed(t, v)
	r := newDisk()
	_, err := Restore(&memory{disk: r}, bytes.NewReader(backupOf(t, v)), k, upkeep.RestoreOptions{KeepDecryption: true})
	must(t, err)
	restored := r.open(t, k)
	refused(t, func() error { _, err := restored.RequestApproval(wish(v, 1)); return err }(), vaulterr.ErrQuarantine)
	must(t, restored.LeaveQuarantine())
	refused(t, use(restored, 1, "alice"), vaulterr.ErrApproval)
	if all, err := restored.Approvals(); err != nil || len(all) != 0 {
		t.Errorf("%d are left, %v", len(all), err)
	}
	spoil(t, v, ledger.ApprovalPrefix+"00") // which keeps nobody from quarantine
	must(t, v.Update(func(tx store.Tx) error {
		id, err := seal.Get[seal.Identity](v.Store, tx, seal.IdentityKey)
		if err == nil {
			_, err = v.QuarantineIn(tx, id, 0, "test", true)
		}
		return err
	}))
	_, err = v.Approve(digestOf(0), "dora")
	refused(t, err, vaulterr.ErrQuarantine)
	must(t, v.LeaveQuarantine())
	if all, err := v.Approvals(); err != nil || len(all) != 0 {
		t.Errorf("%d are left, %v", len(all), err)
	}
	noFindings(t, v)
}

func TestCheckOfApprovals(t *testing.T) {
	t.Parallel()
	where := ledger.ApprovalKey(digestOf(0))
	for want, damage := range map[string]func(*ledger.Approval){
		where + ": 2 clients have approved it, of 2 needed: ":            func(a *ledger.Approval) { a.By[1] = "alice" },
		where + ": 2 clients have approved it, of 2 needed: an approver": func(a *ledger.Approval) { a.By[1] = "bob" },
		where + ": 2 clients have approved it, of 3 needed: ":            func(a *ledger.Approval) { a.Needs, a.Used = 3, a.When },
		where + ": its epoch 9 is not recorded, or retired":              func(a *ledger.Approval) { a.Epoch = 9 },
		where + ": vault: stored data does not authenticate: ":           func(a *ledger.Approval) { a.Digest[0]++ },
	} {
		d, k := newDisk(), &seal.Key{}
		v := d.open(t, k)
		allowed(t, v)
		must(t, v.Update(func(tx store.Tx) error {
			a, err := v.Approval(tx, digestOf(0))
			if err == nil {
				damage(a)
				err = seal.Put(v.Store, tx, where, a)
			}
			return err
		}))
		v, err := Examine(&memory{disk: d}, k)
		must(t, err)
		if got := findings(t, v, false); !slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("%s is not found, but\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// Every fault at every write: a used approval stays used, and the answer stays recorded.
func TestApprovalCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	play := func(name string, at int, f fault) int {
		d, k := newDisk(), &seal.Key{}
		d.fault = func(n int, _ string) fault {
			if n == at {
				return f
			}
			return works
		}
		var v *Vault
		do := func(step func() error) {
			t.Helper()
			for try := 0; ; try++ {
				for v == nil {
					v, _ = OpenIn(&memory{disk: d}, k)
				}
				err := step()
				if err == nil {
					return
				}
				if v = nil; try == 3 {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		do(func() error {
			if err := storeEpoch(v, thresholdEpoch(1)); err != nil && !errors.Is(err, vaulterr.ErrExists) {
				return err
			}
			return v.ActivateEpoch(1)
		})
		do(func() error { _, err := v.RequestApproval(wish(v, 0)); return err })
		for _, by := range []string{"bob", "carol"} {
			do(func() error { _, err := v.Approve(digestOf(0), by); return err })
		}
		do(func() error {
			err := use(v, 1, "alice")
			if errors.Is(err, vaulterr.ErrExists) {
				return nil
			}
			return err
		})
		holds(t, v, 1, 100, 3)
		if err := use(v, 2, "alice"); !errors.Is(err, vaulterr.ErrApproval) {
			t.Fatalf("%s: it is used twice: %v", name, err)
		}
		noFindings(t, v)
		return d.writes
	}
	n := play("no fault", -1, works)
	for _, f := range []fault{fails, doubtful, unwritten, before, after, half} {
		for at := range n {
			play(fmt.Sprintf("write %d, fault %d", at, f), at, f)
		}
	}
}

// A record holds the request unchanged.
func TestApprovalRecord(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	c := setClock(v)
	allowed(t, v)
	all, err := v.Approvals()
	must(t, err)
	want := wish(v, 0)
	want.When, want.By = c.Time, []string{"bob", "carol"}
	if len(all) != 1 || !reflect.DeepEqual(all[0], want) {
		t.Errorf("%+v, want %+v", all, want)
	}
}
