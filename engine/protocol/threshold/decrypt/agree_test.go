package decrypt

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
)

func runID(b byte) RunID { return RunID{b} }

var testSpans = []Span{{"batch-1", 1 << 40, 1}, {"batch-2", 7, 1}}

func agree(held [][]RunID, o ...roundtest.Option) *roundtest.Outcome[Terms] {
	return roundtest.Lockstep(len(held), func(s round.Session) (round.Transition[Terms], error) {
		offer := Offer{Held: held[s.Self]}
		if s.Self == 0 {
			offer.Records = testSpans
		}
		return Agree(s, "agree", offer)
	}, o...)
}

// Exactly the answers that all parties store for a common run are returned again.
func TestAgree(t *testing.T) {
	a, b, none := runID(1), runID(2), RunID{}
	for name, c := range map[string]struct {
		held  [][]RunID
		again []bool
	}{
		"nothing":                  {[][]RunID{{none, none}, {none, none}, {none, none}}, []bool{false, false}},
		"everything":               {[][]RunID{{a, b}, {a, b}, {a, b}}, []bool{true, true}},
		"one party lost an answer": {[][]RunID{{a, b}, {a, none}, {a, b}}, []bool{true, false}},
		"only party 0 has answers": {[][]RunID{{a, b}, {none, none}, {none, none}}, []bool{false, false}},
		"different runs":           {[][]RunID{{a, a}, {a, b}, {a, a}}, []bool{true, false}},
	} {
		out := agree(c.held).OK(t)
		for p, r := range out.Results {
			if !slices.Equal(r.Again, c.again) || !slices.Equal(r.Records, testSpans) {
				t.Errorf("%s, party %d: %+v", name, p, r)
			}
			fresh := 0
			for _, again := range c.again {
				if !again {
					fresh++
				}
			}
			if r.Fresh != fresh {
				t.Errorf("%s, party %d: %d fresh ciphertexts, want %d", name, p, r.Fresh, fresh)
			}
		}
	}
}

// The fresh ciphertexts use the first of the proposed records, if there are enough.
func TestTake(t *testing.T) {
	terms := Terms{Records: []Span{{"a", 5, 3}, {"b", 0, 1}, {"c", 9, 4}}}
	for fresh, want := range [][]Span{
		{}, {{"a", 5, 1}}, {{"a", 5, 2}}, {{"a", 5, 3}}, {{"a", 5, 3}, {"b", 0, 1}}, {{"a", 5, 3}, {"b", 0, 1}, {"c", 9, 1}},
		{{"a", 5, 3}, {"b", 0, 1}, {"c", 9, 2}}, {{"a", 5, 3}, {"b", 0, 1}, {"c", 9, 3}}, {{"a", 5, 3}, {"b", 0, 1}, {"c", 9, 4}}, nil,
	} {
		terms.Fresh = fresh
		if got := terms.Take(); !slices.Equal(got, want) || (got == nil) != (len(want) == 0) {
			t.Errorf("%d fresh ciphertexts: got %v", fresh, got)
		}
	}
	if terms.Records[0].Count != 3 {
		t.Error("Take changed the proposed records")
	}
}

// Terms with different records have different digests.
func TestTermsBindRecords(t *testing.T) {
	seen := map[round.Digest]bool{}
	for i, spans := range [][]Span{nil, {{"a", 5, 3}}, {{"a", 4, 3}}, {{"a", 5, 2}}, {{"b", 5, 3}}, {{"a", 5, 1}, {"a", 6, 2}}, {{"a", 6, 2}, {"a", 5, 1}}} {
		terms := Terms{Again: []bool{false, false, false}, Fresh: 3, Records: spans}
		if d := terms.Digest(); seen[d] {
			t.Errorf("terms %d have the digest of other terms", i)
		} else {
			seen[d] = true
		}
	}
}

// spans returns the offer of party 0 when it stores no answers.
func spans(list ...Span) []byte { return append([]byte{0}, encodeSpans(list)...) }

func TestMalformedOffers(t *testing.T) {
	none := [][]RunID{{{}, {}}, {{}, {}}, {{}, {}}}
	some := [][]RunID{{runID(1), {}}, {runID(1), {}}, {runID(1), {}}}
	zeros := append([]byte{1}, make([]byte, 32)...)
	for _, from := range []round.Party{0, 1} {
		for _, held := range [][][]RunID{none, some} {
			for _, e := range []roundtest.Edit{roundtest.Truncate(1), roundtest.Payload([]byte{2}), roundtest.Payload([]byte{}), roundtest.Payload(zeros)} {
				agree(held, roundtest.Rewrite(from, "agree/offer", e)).Blamed(t, from, round.CheckShape)

			}
		}
	}
	for _, bad := range [][]byte{
		{0}, spans(Span{"", 0, 1}), spans(Span{" ", 0, 1}), spans(Span{"x", 0, 0}), spans(Span{"x", 0, 3}), spans(Span{"x", 0, 2}, Span{"y", 0, 1}),
		spans(Span{"x", ^uint64(0), 2}), spans(Span{strings.Repeat("x", 129), 0, 1}), append(spans(Span{"x", 0, 1}), 0), spans(Span{"x", 0, 1})[:10],
		{0, 1, 'x', 0}, append([]byte{0, 65}, make([]byte, 100)...),
	} {
		agree(none, roundtest.Rewrite(0, "agree/offer", roundtest.Payload(bad))).Blamed(t, 0, round.CheckShape)
	}
	for _, bad := range []Offer{{}, {Held: []RunID{{}}, Records: []Span{{"x", 0, 2}}}, {Held: make([]RunID, 100), Records: slices.Repeat([]Span{{"x", 0, 1}}, MaxSpans+1)}} {
		if _, err := Agree(round.Session{}, "agree", bad); err == nil {
			t.Errorf("accepted the offer %+v", bad)
		}
	}
}

func FuzzOffer(f *testing.F) {
	f.Add([]byte{0}, false)
	f.Add((&Offer{Held: []RunID{{}, runID(3)}, Records: []Span{{"b", 7, 1}, {"c", 9, 1}}}).encode(true), true)
	f.Fuzz(func(t *testing.T, b []byte, first bool) {
		o, err := decodeOffer(b, 2, first)
		if err == nil && !bytes.Equal(o.encode(first), b) {
			t.Errorf("%x is encoded again as %x", b, o.encode(first))
		}
	})
}

func answerParams(t *testing.T) Params {
	t.Helper()
	set, err := lwe.Lookup("insecure-L8-50")
	if err != nil {
		t.Fatal(err)
	}
	s, err := lwe.New(set)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParamsOf(s, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Answers of several runs survive encoding, and are summed by run.
func TestAnswers(t *testing.T) {
	p := answerParams(t)
	eta, phi := uint64(1)<<p.Kind.LogEta, uint64(1)<<p.Kind.LogPhi
	want := []uint64{0, 1, 15, 7, 3}
	parts := [][]Part{make([]Part, len(want)), make([]Part, len(want))}
	for i, m := range want {
		id := runID(byte(1 + i%3))
		parts[0][i] = Part{id, (m*phi + 5) % eta}
		parts[1][i] = Part{id, eta - 5}
	}
	var read [][]Part
	for _, x := range parts {
		b, err := EncodeAnswer(p, x)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > MaxAnswer(p, len(want)) {
			t.Errorf("%d bytes, at most %d", len(b), MaxAnswer(p, len(want)))
		}
		got, err := DecodeAnswer(p, len(want), b)
		if err != nil || !slices.Equal(got, x) {
			t.Fatalf("%v, %v", got, err)
		}
		read = append(read, got)
		for _, bad := range [][]byte{nil, b[:len(b)-1], append(bytes.Clone(b), 0), append([]byte{b[0] + 1}, b[1:]...), append([]byte{b[0], 0, 0}, b[3:]...), append([]byte{b[0], 9, 0}, b[3:]...)} {
			if _, err := DecodeAnswer(p, len(want), bad); !errors.Is(err, ErrAnswers) {
				t.Errorf("%x: %v", bad, err)
			}
		}
		at := 3 + 3*len(RunID{}) // the number of the first message's run
		bad := bytes.Clone(b)
		bad[at] = 3
		if _, err := DecodeAnswer(p, len(want), bad); !errors.Is(err, ErrAnswers) {
			t.Errorf("a run that does not exist: %v", err)
		}
	}
	got, err := Plaintexts(p, read)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v, %v", got, err)
	}
	read[1][2].Run = runID(9)
	if _, err := Plaintexts(p, read); !errors.Is(err, ErrRuns) {
		t.Errorf("%v", err)
	}
	read[1][2] = Part{read[0][2].Run, parts[1][2].Word + 1}
	if _, err := Plaintexts(p, read); !errors.Is(err, ErrAnswers) {
		t.Errorf("a sum that is not a plaintext: %v", err)
	}
	if _, err := Plaintexts(p, read[:1]); !errors.Is(err, ErrAnswers) {
		t.Errorf("one answer of two: %v", err)
	}
	if _, err := Plaintexts(p, [][]Part{read[0], read[1][:1]}); !errors.Is(err, ErrAnswers) {
		t.Errorf("answers of two lengths: %v", err)
	}
	Wipe(read[0])
	if read[0][0].Word != 0 {
		t.Error("Wipe left a word")
	}
	if _, err := EncodeAnswer(p, nil); !errors.Is(err, ErrAnswers) {
		t.Errorf("no parts: %v", err)
	}
}

// Values returns the words of a run's answer.
func TestValues(t *testing.T) {
	for _, k := range kinds(t, q50, 4, 2, 1<<20) {
		w := newWorld(q50, 16, 2, k)
		m := every(4)
		l := w.encryptAll(m, w.gaussian(len(m), 1000))
		out := w.run(l, w.deal(t, w.uniform(len(m))), Outside).OK(t)
		var words [][]uint64
		for _, r := range out.Results {
			_, v, err := Values(w.Params, len(m), r.Answer)
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, v)
			if _, _, err := Values(w.Params, len(m)+70, r.Answer); !errors.Is(err, ErrAnswers) {
				t.Errorf("%v", err)
			}
			if _, _, err := Values(w.Params, len(m), r.Answer[:5]); !errors.Is(err, ErrAnswers) {
				t.Errorf("%v", err)
			}
		}
		if got, err := Sum(w.Params, words); err != nil || !slices.Equal(got, m) {
			t.Errorf("%s: %v, %v", describe(k), got, err)
		}
	}
}

// The digest binds everything that the client must send to all parties alike.
func TestQuestionBindsEverything(t *testing.T) {
	make := func(change func(*Question)) *Question {
		q := &Question{ID: []byte("id"), Epoch: 3, Keys: [32]byte{1}, Quorum: []uint32{0, 2}, Count: 4, Each: 1, Recipient: []byte("to"), Ciphertexts: [32]byte{2}}
		change(q)
		return q
	}
	plain := make(func(*Question) {})
	seen := map[round.Digest]bool{plain.Digest(): true}
	for i, change := range []func(*Question){
		func(q *Question) { q.ID = []byte("di") }, func(q *Question) { q.Epoch++ }, func(q *Question) { q.Keys[0]++ },
		func(q *Question) { q.Quorum = []uint32{0, 1} }, func(q *Question) { q.Ring = true }, func(q *Question) { q.Count++ },
		func(q *Question) { q.Each++ }, func(q *Question) { q.Paper = true }, func(q *Question) { q.Recipient = nil },
		func(q *Question) { q.Ciphertexts[0]++ },
	} {
		q := make(change)
		if d := q.Digest(); seen[d] {
			t.Errorf("the digest does not bind change %d", i)
		} else {
			seen[d] = true
		}
		same := q.Request("c", "x") == plain.Request("c", "x")
		if whoever := i == 0 || i == 3; same != whoever {
			t.Errorf("change %d: the same request is %v", i, same)
		}
	}
	if plain.Request("c", "x") == plain.Request("d", "x") || plain.Request("c", "x") == plain.Request("c", "y") {
		t.Error("a request does not bind the client or the circuit")
	}
	if bytes.Equal(plain.Info(0), plain.Info(1)) {
		t.Error("the context of an answer does not bind the party")
	}
	said := map[string]bool{}
	for _, q := range []*Question{plain, {}, {Ring: true, Each: 1}, {Ring: true, Each: 2}, {Epoch: 1}, {Keys: [32]byte{1}}, {Ciphertexts: [32]byte{1}}} {
		for _, circuit := range []string{"a", "ab"} {
			if s := string(q.Statement(circuit)); said[s] {
				t.Errorf("a statement does not bind %+v, %s", q, circuit)
			} else {
				said[s] = true
			}
		}
	}
	names := map[[32]byte]bool{}
	for _, q := range []Question{{}, {Paper: true}} {
		for _, c := range [][32]byte{{}, {1}, {31: 1}} {
			names[q.Name(c)] = true
		}
	}
	if len(names) != 6 {
		t.Error("a name does not bind ciphertext and form")
	}
}

// The digest of ciphertexts depends on each of them and on their order.
func TestCiphertextsDigest(t *testing.T) {
	encoded := []byte("one two three ")
	seen := map[[32]byte]bool{CiphertextsDigest(encoded, 7): true}
	for i, size := range []int{1, 2, 14, 100} {
		d := CiphertextsDigest(encoded, size)
		if same := size == 100; seen[d] != same { // a size of 100 covers all bytes at once, as 14 does
			t.Errorf("%d: ciphertexts of %d bytes: seen is %v", i, size, seen[d])
		}
		seen[d] = true
	}
	for i := range encoded {
		changed := bytes.Clone(encoded)
		changed[i]++
		if d := CiphertextsDigest(changed, 7); seen[d] {
			t.Errorf("the digest does not bind byte %d", i)
		} else {
			seen[d] = true
		}
	}
	if swapped := CiphertextsDigest(append(bytes.Clone(encoded[7:]), encoded[:7]...), 7); seen[swapped] {
		t.Error("the digest does not bind the order")
	}
	one := sha256.Sum256(encoded[:7])
	two := sha256.Sum256(encoded[7:])
	if CiphertextsDigest(encoded, 7) != sha256.Sum256(append(one[:], two[:]...)) {
		t.Error("the digest is not the hash of the ciphertexts' hashes")
	}
}

// Quorums of up to seven parties have an exact form for NoiseBound in every set.
func TestParamsOfEverySet(t *testing.T) {
	for _, set := range lwe.Sets() {
		s, err := lwe.New(set)
		if err != nil {
			t.Fatal(err)
		}
		for threshold := 1; threshold <= 6; threshold++ {
			p, err := ParamsOf(s, threshold, false)
			if err != nil {
				t.Fatal(err)
			}
			if MaxNoise(p.Kind, p.Modulus, p.Parties) < NoiseBound(s) || p.Kind.Form != masks.Exact {
				t.Errorf("%s, threshold %d: %+v", set.Name, threshold, p.Kind)
			}
			if p, err = ParamsOf(s, threshold, true); err != nil || p.Kind.Form != masks.Paper {
				t.Errorf("%s, threshold %d: %+v, %v", set.Name, threshold, p.Kind, err)
			}
		}
	}
}

// Parties with different terms about stored answers detect it with the first message.
func TestDifferentChoices(t *testing.T) {
	for _, k := range kinds(t, q50, 4, 2, 1<<20) {
		w := newWorld(q50, 16, 2, k)
		m := every(4)
		l, batches := w.encryptAll(m, w.gaussian(len(m), 1000)), w.deal(t, w.uniform(len(m)))
		out := roundtest.Lockstep(2, func(s round.Session) (round.Transition[*Result], error) {
			terms := Terms{Again: []bool{s.Self == 0, s.Self == 1}}
			return Start(Config{
				Session: s, Step: "test", Params: w.Params, Ciphertexts: l, Chosen: terms.Digest(), Secret: w.shares[s.Self], Masks: batches[s.Self],
				Recipient: 0, Workers: 1,
			})
		})
		var b *round.Blame
		if !errors.As(out.Errors[0], &b) || b.Check != CheckAgreement {
			t.Errorf("%s: %v", describe(k), out.Errors)
		}
	}
}

// Masks of several batches serve one run if all parties join them in the same order.
func TestMasksOfSeveralBatches(t *testing.T) {
	for _, k := range kinds(t, q50, 4, 3, 1<<20) {
		w := newWorld(q50, 16, 3, k)
		m := every(4)
		l := w.encryptAll(m, w.gaussian(len(m), 1000))
		deal := func(swap int) []*masks.Batch {
			a, b := w.deal(t, w.uniform(len(m)-5)), w.deal(t, w.uniform(5))
			out := make([]*masks.Batch, len(a))
			for p := range out {
				list := []*masks.Batch{a[p], b[p]}
				if p == swap {
					slices.Reverse(list)
				}
				var err error
				if out[p], err = masks.Join(list...); err != nil {
					t.Fatal(err)
				}
			}
			return out
		}
		if got := w.received(t, w.run(l, deal(-1), Outside).OK(t), Outside, len(m)); !slices.Equal(got, m) {
			t.Errorf("%s: %v", describe(k), got)
		}
		var b *round.Blame
		if out := w.run(l, deal(1), 0); !errors.As(out.Errors[0], &b) || b.Check != CheckAgreement || b.Party != 1 {
			t.Errorf("%s, joined in the other order at party 1: %v", describe(k), out.Errors)
		}
	}
}
