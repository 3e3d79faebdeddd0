package vault

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// ringOf is a run of the quorum 0 and 1 that answers messages of ciphertexts, for alice.
func ringOf(id uint16, list ...ledger.Messages) ledger.ThresholdRun {
	r := ledger.ThresholdRun{Epoch: 1, Quorum: []uint32{0, 1}, Run: ledger.RunID{byte(id), byte(id >> 8), 1}, Client: "alice", AnswerBytes: 8, Messages: list}
	for _, m := range list {
		for k := range m.Count {
			r.Answers = append(r.Answers, ringAnswer(r.Run, m.Ciphertext, m.First+k)...)
		}
	}
	return r
}

func ringAnswer(run ledger.RunID, ciphertext [32]byte, message int) []byte {
	return share(fmt.Sprintf("%x %x", run, ciphertext), uint64(message), 8)
}

// answersOf gives the answers of the list, each by itself, with nil for messages that were never
// answered.
func answersOf(t testing.TB, v *Vault, list ...ledger.Messages) (runs [][]ledger.RunID) {
	t.Helper()
	held, err := v.ThresholdAnswers(1, []uint32{0, 1}, list)
	must(t, err)
	for i, answers := range held {
		of := make([]ledger.RunID, list[i].Count)
		next := list[i].First
		for _, a := range answers {
			if a.First < next || a.First+a.Count > list[i].End() || a.Count < 1 || a.Client == "" || a.When.IsZero() || len(a.Bytes) != 8*a.Count {
				t.Fatalf("%+v for %+v", a, list[i])
			}
			for k := range a.Count {
				if !bytes.Equal(a.Bytes[8*k:8*k+8], ringAnswer(a.Run, list[i].Ciphertext, a.First+k)) {
					t.Fatalf("message %d of %+v has another answer", a.First+k, list[i])
				}
				of[a.First-list[i].First+k] = a.Run
			}
			next = a.First + a.Count
		}
		runs = append(runs, of)
	}
	return runs
}

// A repeat with more messages of a ciphertext gets the answers that there are, and others for the
// rest; A reader that has fewer receives a part.
func TestMessagesOfCiphertexts(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addThreshold(t, v, 1)
	a, b := digestOf(1), digestOf(2)
	must(t, v.RecordThreshold(ringOf(1, ledger.Messages{Ciphertext: a, First: 0, Count: 4}, ledger.Messages{Ciphertext: b, First: 0, Count: 5000})))
	one, two, three, none := ringOf(1).Run, ringOf(2).Run, ringOf(3).Run, ledger.RunID{}
	is := func(got []ledger.RunID, want ...ledger.RunID) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Fatalf("runs %x, want %x", got, want)
		}
	}
	is(answersOf(t, v, ledger.Messages{Ciphertext: a, First: 0, Count: 6})[0], one, one, one, one, none, none)
	is(answersOf(t, v, ledger.Messages{Ciphertext: a, First: 2, Count: 1})[0], one)
	must(t, v.RecordThreshold(ringOf(2, ledger.Messages{Ciphertext: a, First: 4, Count: 2}))) // the rest of a repeat
	is(answersOf(t, v, ledger.Messages{Ciphertext: a, First: 0, Count: 6})[0], one, one, one, one, two, two)
	must(t, v.RecordThreshold(ringOf(3, ledger.Messages{Ciphertext: a, First: 1, Count: 1}, ledger.Messages{Ciphertext: a, First: 3, Count: 2}, ledger.Messages{Ciphertext: b, First: 4999, Count: 2}))) // which others have lost
	is(answersOf(t, v, ledger.Messages{Ciphertext: a, First: 0, Count: 7})[0], one, three, one, three, three, two, none)
	got := answersOf(t, v, ledger.Messages{Ciphertext: b, First: 4998, Count: 4}, ledger.Messages{Ciphertext: a, First: 5, Count: 1}, ledger.Messages{Ciphertext: digestOf(3), First: 0, Count: 1})
	is(got[0], one, three, three, none)
	is(got[1], two)
	is(got[2], none)
	if n, err := v.ThresholdCount(1); err != nil || n != 5007 {
		t.Errorf("%d are answered, %v", n, err)
	}
	noFindings(t, v)

	bob := ringOf(4, ledger.Messages{Ciphertext: a, First: 6, Count: 2})
	bob.Client = "bob"
	must(t, v.RecordThreshold(bob)) // messages that nobody else has
	for i, m := range []ledger.Messages{{Ciphertext: a, First: 0, Count: 1}, {Ciphertext: a, First: 5, Count: 4}, {Ciphertext: b, First: 0, Count: 1}, {Ciphertext: a, First: 0, Count: 100}} {
		r := ringOf(uint16(10+i), ledger.Messages{Ciphertext: digestOf(3), First: 0, Count: 1}, m)
		r.Client = "carol"
		refused(t, v.RecordThreshold(r), vaulterr.ErrDelivered)
	}
	refused(t, v.RecordThreshold(ringOf(5, ledger.Messages{Ciphertext: a, First: 5, Count: 2})), vaulterr.ErrDelivered) // bob has one message
	is(answersOf(t, v, ledger.Messages{Ciphertext: digestOf(3), First: 0, Count: 1})[0], none)
	noFindings(t, v)

	_, err := v.RetireEpoch(1, "test")
	must(t, err)
	held, err := v.ThresholdAnswers(1, []uint32{0, 1}, []ledger.Messages{{Ciphertext: a, First: 4, Count: 4}})
	must(t, err)
	var whose []string
	for _, x := range held[0] {
		if whose = append(whose, fmt.Sprint(x.Client, x.First, x.Count)); x.Bytes != nil {
			t.Errorf("%+v", x)
		}
	}
	if !slices.Equal(whose, []string{"alice4 1", "alice5 1", "bob6 2"}) {
		t.Errorf("%q", whose)
	}
	noFindings(t, v)
}

// For any sequence of runs, a message has the answer of the last run.
func TestLedgerOfAnyMessages(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		v := inMemory(t)
		addThreshold(t, v, 1)
		random := rand.New(rand.NewPCG(seed, 0))
		const ciphertexts, messages = 3, 40
		var want [ciphertexts][messages]ledger.RunID
		answered := uint64(0)
		for id := range uint16(30) {
			var list []ledger.Messages
			for _, c := range random.Perm(ciphertexts)[:1+random.IntN(ciphertexts)] {
				for from := 0; from < messages; {
					m := ledger.Messages{Ciphertext: digestOf(c), First: from + random.IntN(messages-from), Count: 1}
					m.Count += random.IntN(messages - m.First)
					if random.IntN(3) == 0 {
						break
					}
					list, from = append(list, m), m.End()
				}
			}
			if len(list) == 0 {
				continue
			}
			r := ringOf(id+1, list...)
			must(t, v.RecordThreshold(r))
			for _, m := range list {
				for c := range ciphertexts {
					for k := m.First; k < m.End() && m.Ciphertext == digestOf(c); k++ {
						if want[c][k] == (ledger.RunID{}) {
							answered++
						}
						want[c][k] = r.Run
					}
				}
			}
			for c := range ciphertexts {
				first := random.IntN(messages)
				m := ledger.Messages{Ciphertext: digestOf(c), First: first, Count: 1 + random.IntN(messages-first)}
				if got := answersOf(t, v, m)[0]; !slices.Equal(got, want[c][m.First:m.End()]) {
					t.Fatalf("seed %d, run %d: %+v has %x, want %x", seed, id, m, got, want[c][m.First:m.End()])
				}
			}
		}
		if n, err := v.ThresholdCount(1); err != nil || n != answered {
			t.Errorf("seed %d: %d are answered, and %d counted, %v", seed, answered, n, err)
		}
		noFindings(t, v)
	}
}

// Invalid bytes are neither pointers nor entries.
func TestPointersAreChecked(t *testing.T) {
	t.Parallel()
	p := ledger.AnswerPiece{First: 3, Count: 2, Run: ledger.RunID{1}, Chunk: 4, Offset: 300}
	good := ledger.EncodePointer([]ledger.AnswerPiece{p, {First: 5, Count: 1, Run: ledger.RunID{2}, Chunk: 0, Offset: 0}})
	if got, err := ledger.DecodePointer(good); err != nil || len(got) != 2 || got[0] != p {
		t.Errorf("%+v, %v", got, err)
	}
	for name, bad := range map[string][]byte{
		"empty":         {},
		"cut":           good[:len(good)-1],
		"half an id":    good[:30],
		"no messages":   ledger.EncodePointer([]ledger.AnswerPiece{{First: 0, Count: 0, Run: ledger.RunID{1}, Chunk: 0, Offset: 0}}),
		"twice":         ledger.EncodePointer([]ledger.AnswerPiece{p, p}),
		"out of order":  ledger.EncodePointer([]ledger.AnswerPiece{p, {First: 0, Count: 1, Run: ledger.RunID{1}, Chunk: 0, Offset: 0}}),
		"overlapping":   ledger.EncodePointer([]ledger.AnswerPiece{p, {First: 4, Count: 1, Run: ledger.RunID{1}, Chunk: 0, Offset: 0}}),
		"large numbers": ledger.EncodePointer([]ledger.AnswerPiece{{First: 0, Count: 1 << 40, Run: ledger.RunID{1}, Chunk: 0, Offset: 0}}),
	} {
		if _, err := ledger.DecodePointer(bad); !errors.Is(err, vaulterr.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	chunk := ledger.AppendEntry(nil, ledger.Messages{Ciphertext: digestOf(0), First: 7, Count: 2}, make([]byte, 16))
	if e, next, err := ledger.EntryAt(chunk, 0, 8); err != nil || next != len(chunk) || e.First != 7 || len(e.Answers) != 16 {
		t.Errorf("%+v, %d, %v", e, next, err)
	}
	for name, f := range map[string]func() (ledger.Entry, int, error){
		"below":           func() (ledger.Entry, int, error) { return ledger.EntryAt(chunk, -1, 8) },
		"behind":          func() (ledger.Entry, int, error) { return ledger.EntryAt(chunk, len(chunk), 8) },
		"far behind":      func() (ledger.Entry, int, error) { return ledger.EntryAt(chunk, 1<<30, 8) },
		"longer answers":  func() (ledger.Entry, int, error) { return ledger.EntryAt(chunk, 0, 9) },
		"cut":             func() (ledger.Entry, int, error) { return ledger.EntryAt(chunk[:len(chunk)-1], 0, 8) },
		"without numbers": func() (ledger.Entry, int, error) { return ledger.EntryAt(chunk[:ledger.DigestLen], 0, 8) },
		"without messages": func() (ledger.Entry, int, error) {
			return ledger.EntryAt(ledger.AppendEntry(nil, ledger.Messages{Ciphertext: digestOf(0), First: 7, Count: 0}, nil), 0, 8)
		},
	} {
		if e, _, err := f(); !errors.Is(err, vaulterr.ErrCorrupt) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// A pointer of a ciphertext has one record, however many messages it has, and so has their run.
func TestRecordsOfARun(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addThreshold(t, v, 1)
	must(t, v.RecordThreshold(ringOf(1, ledger.Messages{Ciphertext: digestOf(1), First: 0, Count: 2048}, ledger.Messages{Ciphertext: digestOf(2), First: 0, Count: 2048})))
	counts := map[string]int{}
	must(t, v.Backend.View(func(tx store.Tx) error {
		for _, prefix := range []string{ledger.RunPrefix, ledger.AnswersPrefix, ledger.AnsweredPrefix} {
			if err := tx.Scan(prefix, func(string, []byte) error { counts[prefix]++; return nil }); err != nil {
				return err
			}
		}
		return nil
	}))
	if counts[ledger.RunPrefix] != 1 || counts[ledger.AnswersPrefix] != 2 || counts[ledger.AnsweredPrefix] != 2 {
		t.Errorf("%v", counts)
	}
}
