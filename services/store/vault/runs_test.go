package vault

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// digestOf names a ciphertext.
func digestOf(i int) [32]byte { return sha256.Sum256(fmt.Append(nil, "ciphertext ", i)) }

// runOf is a run of the quorum 0 and 1 that answers ciphertexts from one on, for alice.
func runOf(id byte, first, count int) ledger.ThresholdRun {
	r := ledger.ThresholdRun{Epoch: 1, Quorum: []uint32{0, 1}, Run: ledger.RunID{id}, Client: "alice", AnswerBytes: 8}
	for i := range count {
		r.Messages = append(r.Messages, only(digestOf(first+i)))
		r.Answers = append(r.Answers, answerOf(id, first+i)...)
	}
	return r
}

// only is the message of a ciphertext that has one.
func only(ciphertext [32]byte) ledger.Messages {
	return ledger.Messages{Ciphertext: ciphertext, First: 0, Count: 1}
}

func answerOf(id byte, i int) []byte { return share("answer"+string(rune(id)), uint64(i), 8) }

// holds: for ciphertexts from one on, the answers of a run.
func holds(t testing.TB, v *Vault, id byte, first, count int) {
	t.Helper()
	held, err := v.ThresholdAnswers(1, []uint32{0, 1}, runOf(id, first, count).Messages)
	must(t, err)
	for i, list := range held {
		if id == 0 && len(list) != 0 {
			t.Fatalf("ciphertext %d has an answer: %+v", first+i, list)
		}
		if id == 0 {
			continue
		}
		a := theOne(t, list)
		if (a.Run != ledger.RunID{id} || a.Client != "alice" || a.When.IsZero() || !bytes.Equal(a.Bytes, answerOf(id, first+i))) {
			t.Fatalf("ciphertext %d: %+v, and not of run %d", first+i, a, id)
		}
	}
}

// theOne is the answer for the message of a ciphertext that has one; one of nothing where it was
// never answered.
func theOne(t testing.TB, list []ledger.Answer) ledger.Answer {
	t.Helper()
	if len(list) == 0 {
		return ledger.Answer{}
	}
	if len(list) != 1 || list[0].First != 0 || list[0].Count != 1 {
		t.Fatalf("answers for one message: %+v", list)
	}
	return list[0]
}

func TestThresholdLedger(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addThreshold(t, v, 1)
	holds(t, v, 0, 0, 5)
	for _, r := range []ledger.ThresholdRun{runOf(1, 0, 1), runOf(2, 10, 1000), runOf(3, 5, 2)} { // more than a chunk in one
		must(t, v.RecordThreshold(r))
	}
	holds(t, v, 1, 0, 1)
	holds(t, v, 0, 1, 4)
	holds(t, v, 3, 5, 2)
	holds(t, v, 2, 10, 1000)
	must(t, v.RecordThreshold(runOf(4, 500, 3))) // the same client again, as others have lost theirs
	holds(t, v, 2, 10, 490)
	holds(t, v, 4, 500, 3)
	holds(t, v, 2, 503, 507)
	if n, err := v.ThresholdCount(1); err != nil || n != 1003 {
		t.Errorf("%d are answered, %v", n, err)
	}
	var mixed []ledger.Messages
	for _, i := range []int{502, 2000, 5, 700, 0, 502} {
		mixed = append(mixed, only(digestOf(i)))
	}
	held, err := v.ThresholdAnswers(1, []uint32{0, 1}, mixed)
	must(t, err)
	var runs []byte
	for _, list := range held {
		runs = append(runs, theOne(t, list).Run[0])
	}
	if !bytes.Equal(runs, []byte{4, 0, 3, 2, 1, 4}) {
		t.Errorf("runs %v", runs)
	}
	other := runOf(5, 0, 1) // another quorum has a separate ledger
	other.Quorum = []uint32{1, 2}
	held, err = v.ThresholdAnswers(1, other.Quorum, other.Messages)
	if must(t, err); len(held[0]) != 0 {
		t.Errorf("%+v", held)
	}
	must(t, v.RecordThreshold(other))
	holds(t, v, 1, 0, 1)
	if held, err = v.ThresholdAnswers(1, nil, nil); err != nil || len(held) != 0 {
		t.Errorf("%v, %v", held, err)
	}
	noFindings(t, v)
}

// The peers remember that answers were given.
func TestRunsMakeAGeneration(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addThreshold(t, v, 1)
	before := version(t, v)
	must(t, v.RecordThreshold(runOf(1, 0, 10)))
	if now := version(t, v); now.Generation != before.Generation+1 {
		t.Errorf("generation %d, and %d before", now.Generation, before.Generation)
	}
}

// Answers of any size are held.
func TestAnswersOfAnySize(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addThreshold(t, v, 1)
	for i, size := range []int{1, 7, ledger.AnswersChunk - 32, ledger.AnswersChunk, ledger.MaxAnswer} {
		r := runOf(byte(i+1), i*10, 3)
		r.AnswerBytes, r.Answers = size, shares("large", span(0, 3), size)
		must(t, v.RecordThreshold(r))
		held, err := v.ThresholdAnswers(1, r.Quorum, r.Messages)
		must(t, err)
		for k, list := range held {
			if a := theOne(t, list); !bytes.Equal(a.Bytes, r.Answers[k*size:(k+1)*size]) {
				t.Errorf("%d bytes: another answer of %d bytes", size, len(a.Bytes))
			}
		}
	}
	noFindings(t, v)
}

// Rejected runs leave no trace.
func TestThresholdLedgerRefuses(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addThreshold(t, v, 1)
	addEpoch(t, v, 2, keys.PurposeDecryption)
	must(t, v.ActivateEpoch(2))
	must(t, storeEpoch(v, thresholdEpoch(3)))
	must(t, v.RecordThreshold(runOf(1, 0, 3)))
	records := func() (n int) {
		kinds, err := v.Kinds()
		must(t, err)
		for _, k := range kinds {
			n += k
		}
		return n
	}
	before := records()
	for what, c := range map[string]struct {
		change func(*ledger.ThresholdRun)
		want   error
	}{
		"the same run":          {func(r *ledger.ThresholdRun) { r.Run = ledger.RunID{1} }, vaulterr.ErrExists},
		"another client":        {func(r *ledger.ThresholdRun) { *r = runOf(2, 2, 3); r.Client = "bob" }, vaulterr.ErrDelivered},
		"no client":             {func(r *ledger.ThresholdRun) { r.Client = "" }, vaulterr.ErrRange},
		"a client of any bytes": {func(r *ledger.ThresholdRun) { r.Client = "\xff" }, vaulterr.ErrRange},
		"a long client":         {func(r *ledger.ThresholdRun) { r.Client = strings.Repeat("a", 2*seal.MaxName+1) }, vaulterr.ErrRange},
		"no run":                {func(r *ledger.ThresholdRun) { r.Run = ledger.RunID{} }, vaulterr.ErrRange},
		"no ciphertexts":        {func(r *ledger.ThresholdRun) { r.Messages, r.Answers = nil, nil }, vaulterr.ErrRange},
		"one twice":             {func(r *ledger.ThresholdRun) { r.Messages[1] = r.Messages[0] }, vaulterr.ErrRange},
		"one in two places": {func(r *ledger.ThresholdRun) {
			r.Messages[2] = ledger.Messages{Ciphertext: r.Messages[0].Ciphertext, First: 1, Count: 1}
		}, vaulterr.ErrRange},
		"overlapping messages": {func(r *ledger.ThresholdRun) {
			r.Messages = []ledger.Messages{{Ciphertext: digestOf(100), First: 0, Count: 2}, {Ciphertext: digestOf(100), First: 1, Count: 1}}
		}, vaulterr.ErrRange},
		"messages out of order": {func(r *ledger.ThresholdRun) {
			r.Messages = []ledger.Messages{{Ciphertext: digestOf(100), First: 2, Count: 1}, {Ciphertext: digestOf(100), First: 0, Count: 2}}
		}, vaulterr.ErrRange},
		"no messages":         {func(r *ledger.ThresholdRun) { r.Messages[1].Count = 0; r.Answers = r.Answers[8:] }, vaulterr.ErrRange},
		"messages below none": {func(r *ledger.ThresholdRun) { r.Messages[1].First = -1 }, vaulterr.ErrRange},
		"messages above all":  {func(r *ledger.ThresholdRun) { r.Messages[1].First = ledger.MaxRun }, vaulterr.ErrRange},
		"no bytes":            {func(r *ledger.ThresholdRun) { r.AnswerBytes, r.Answers = 0, nil }, vaulterr.ErrRange},
		"too many bytes": {func(r *ledger.ThresholdRun) {
			r.AnswerBytes = ledger.MaxAnswer + 1
			r.Answers = make([]byte, 3*r.AnswerBytes)
		}, vaulterr.ErrRange},
		"bytes missing":  {func(r *ledger.ThresholdRun) { r.Answers = r.Answers[1:] }, vaulterr.ErrRange},
		"half a quorum":  {func(r *ledger.ThresholdRun) { r.Quorum = []uint32{0} }, vaulterr.ErrRange},
		"for decryption": {func(r *ledger.ThresholdRun) { r.Epoch = 2 }, vaulterr.ErrState},
		"locked":         {func(r *ledger.ThresholdRun) { r.Epoch = 3 }, vaulterr.ErrState},
		"no epoch":       {func(r *ledger.ThresholdRun) { r.Epoch = 4 }, vaulterr.ErrNotFound},
	} {
		r := runOf(9, 100, 3)
		c.change(&r)
		if err := v.RecordThreshold(r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if n := records(); n != before {
			t.Errorf("%s: %d records, and %d before", what, n, before)
		}
	}
	huge := runOf(9, 100, 3)
	huge.Messages = []ledger.Messages{{Ciphertext: digestOf(0), First: 0, Count: ledger.MaxRun}, only(digestOf(1))}
	huge.AnswerBytes, huge.Answers = 1, make([]byte, ledger.MaxRun+1)
	refused(t, v.RecordThreshold(huge), vaulterr.ErrRange)
	for _, epoch := range []uint64{2, 3} {
		_, err := v.ThresholdAnswers(epoch, []uint32{0, 1}, huge.Messages[:1])
		refused(t, err, vaulterr.ErrState)
	}
	_, err := v.ThresholdAnswers(4, []uint32{0, 1}, huge.Messages[:1])
	refused(t, err, vaulterr.ErrNotFound)
	if n, err := v.ThresholdCount(1); err != nil || n != 3 {
		t.Errorf("%d are answered, %v", n, err)
	}
	must(t, v.Pin(keys.Roster{Keys: membersOf("c", "a")}))
	refused(t, v.RecordThreshold(runOf(9, 100, 3)), vaulterr.ErrRange) // this party, c, is not in the quorum
	must(t, v.Pin(keys.Roster{Hash: [32]byte{1}, Keys: membersOf("a", "x")}))
	refused(t, v.RecordThreshold(runOf(9, 100, 3)), vaulterr.ErrRoster)
	_, err = v.ThresholdAnswers(1, []uint32{0, 1}, runOf(1, 0, 1).Messages)
	refused(t, err, vaulterr.ErrRoster)
}

// A retired epoch keeps the count of its answers, and no store has the answers.
func TestRetireThreshold(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addThreshold(t, v, 1)
	addThreshold(t, v, 2)
	must(t, v.RecordThreshold(runOf(1, 0, 1000)))
	other := runOf(1, 0, 1000)
	other.Epoch = 2
	must(t, v.RecordThreshold(other))
	must(t, v.DrainEpoch(1, 2))
	must(t, v.RecordThreshold(runOf(2, 2000, 10))) // old ciphertexts under it are decrypted
	_, err := v.RetireEpoch(1, "test")
	must(t, err)
	for _, i := range []int{0, 999, 2000} {
		held, err := v.ThresholdAnswers(1, []uint32{0, 1}, []ledger.Messages{only(digestOf(i))})
		if must(t, err); theOne(t, held[0]).Client != "alice" || held[0][0].Run == (ledger.RunID{}) || held[0][0].Bytes != nil {
			t.Errorf("%+v", held)
		}
	}
	refused(t, v.RecordThreshold(runOf(3, 5000, 1)), vaulterr.ErrErased)
	must(t, v.Backend.View(func(tx store.Tx) error {
		return tx.Scan(ledger.RunsOf(ledger.AnswersPrefix, 1), func(key string, _ []byte) error { return errors.New("left: " + key) })
	}))
	held, err := v.ThresholdAnswers(2, []uint32{0, 1}, other.Messages)
	if must(t, err); !bytes.Equal(theOne(t, held[999]).Bytes, answerOf(1, 999)) {
		t.Error("the answers of another epoch are missing")
	}
	noFindings(t, v)
	must(t, v.Quarantine("test", 0))
	refused(t, v.RecordThreshold(runOf(3, 5000, 1)), vaulterr.ErrErased)
	must(t, v.LeaveQuarantine())
	addThreshold(t, v, 3)
	later := runOf(7, 0, 1)
	later.Epoch = 3
	must(t, v.Quarantine("test", 0))
	refused(t, v.RecordThreshold(later), vaulterr.ErrErased)
	noFindings(t, v)
}

// In quarantine no answers are given, not even old ones.
func TestQuarantineOfAnswers(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	addThreshold(t, v, 1)
	must(t, v.RecordThreshold(runOf(1, 0, 1)))
	_, _, err := flooded(v, floodRun(1, digestOf(5), []uint32{0, 1}, "alice"), canary)
	must(t, err)
	r := newDisk()
	_, err = Restore(&memory{disk: r}, bytes.NewReader(backupOf(t, v)), k, upkeep.RestoreOptions{KeepDecryption: true})
	must(t, err)
	v = r.open(t, k)
	refused(t, v.RecordThreshold(runOf(2, 1, 1)), vaulterr.ErrQuarantine)
	_, err = v.ThresholdAnswers(1, []uint32{0, 1}, runOf(1, 0, 1).Messages)
	refused(t, err, vaulterr.ErrQuarantine)
	_, _, err = flooded(v, floodRun(1, digestOf(5), []uint32{0, 1}, "alice"), canary)
	refused(t, err, vaulterr.ErrQuarantine)
}

// The answers are encrypted under the key of the epoch's secret: erasing that erases them, whatever
// old records a store keeps.
func TestAnswersAreUnderTheEpoch(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	addThreshold(t, v, 1)
	r := runOf(1, 0, 3)
	copy(r.Answers, "CANARYAA")
	must(t, v.RecordThreshold(r))
	kept := map[string][]byte{}
	for key, value := range d.records {
		if strings.HasPrefix(key, ledger.AnswersPrefix) {
			kept[key] = value
		}
	}
	e, err := v.Epoch(1)
	must(t, err)
	for key, value := range kept {
		if _, err := v.UnsealAt(key, value); !errors.Is(err, vaulterr.ErrCorrupt) || bytes.Contains(value, []byte("CANARY")) {
			t.Errorf("%s opens without the epoch: %v", key, err)
		}
		aead, err := v.AnswersCipher(&e)
		must(t, err)
		if plain, err := seal.Unseal(aead, key, value); err != nil || !bytes.Contains(plain, []byte("CANARYAA")) {
			t.Errorf("%s does not open: %v", key, err)
		}
	}
	if len(kept) != 1 {
		t.Errorf("%d chunks", len(kept))
	}
	_, err = v.RetireEpoch(1, "test")
	must(t, err)
	_, err = v.AnswersCipher(&e)
	refused(t, err, vaulterr.ErrErased)
}
