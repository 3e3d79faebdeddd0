package threshold_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	client "github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

var want = []uint64{0, 1, 2, 3, 15, 14, 13, 12, 5}

// ring returns a request for the coefficients of a ring ciphertext.
func ring(c *lwe.Ring, n int, quorum ...uint32) *client.Request {
	return &client.Request{Ring: []*lwe.Ring{c}, Coefficients: n, Quorum: ints(quorum)}
}

func ints(list []uint32) (out []int) {
	for _, x := range list {
		out = append(out, int(x))
	}
	return out
}

// opens decrypts as the client and compares the result.
func (w *world) opens(k *client.Key, r *client.Request, want []uint64) *client.Result {
	w.Helper()
	decrypt := func(k *client.Key, r *client.Request) (*client.Result, error) {
		return w.app.Decrypt(w.Context(), k, r)
	}
	if k.BGV() != nil {
		decrypt = w.vouched
	}
	out, err := decrypt(k, r)
	if err != nil {
		w.Fatal(err)
	}
	if !slices.Equal(out.Messages, want) {
		w.Errorf("%v, want %v", out.Messages, want)
	}
	return out
}

// refused checks the code of an error and that its text contains a word.
func refused(t *testing.T, err error, code lodge.Code, word string) {
	t.Helper()
	e := lodge.FromError(err)
	if err == nil || e.Code != code || !strings.Contains(e.What, word) {
		t.Errorf("%v, want %s that says %q", err, code, word)
	}
}

// Every quorum of three and of five parties decrypts ring and LWE ciphertexts, in both forms.
func TestEveryQuorum(t *testing.T) {
	for _, parties := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d parties", parties), func(t *testing.T) {
			w := newWorld(t, parties, nil)
			threshold := (parties - 1) / 2
			epoch := w.keys(0)
			all := quorums(parties, threshold+1)
			for _, quorum := range all {
				w.masks(epoch, 40, "exact", quorum...)
			}
			w.masks(epoch, 40, "paper", all[0]...)
			k, public := w.key(epoch)
			if k.Threshold != threshold || len(k.Holders) != parties || len(k.Masks) != len(all)+1 || k.Security != "passive" {
				t.Fatalf("%+v", k)
			}
			c := w.encrypt(k, public, want...)
			for _, quorum := range all {
				w.opens(k, ring(c, len(want), quorum...), want)
			}
			single, another := k.Scheme().NewLWE(), k.Scheme().NewLWE()
			k.Scheme().Extract(single, c, 4)
			k.Scheme().Extract(another, c, 3)
			w.opens(k, &client.Request{LWE: []*lwe.LWE{single, another}}, []uint64{15, 3})
			_, err := w.app.Decrypt(t.Context(), k, &client.Request{LWE: []*lwe.LWE{single, single}})
			refused(t, err, lodge.Invalid, "are the same")
			paper := ring(c, len(want), all[0]...)
			paper.Paper = true
			w.opens(k, paper, want)
		})
	}
}

// Results computed with the downloaded evaluation keys decrypt.
func TestComputedCiphertexts(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch := w.keys(1)
	w.masks(epoch, 100, "exact", 0, 2)
	k, public := w.key(epoch)
	steps := 0
	keys, err := w.app.EvaluationKeys(t.Context(), k, func(done, of int) { steps = max(steps, done*100/of) })
	if err != nil || steps != 100 {
		t.Fatalf("%d %%: %v", steps, err)
	}
	s := k.Scheme()
	e, err := lwe.NewEvaluator(s, keys, 1)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Encrypt(k, public, []uint64{1, 0}, lwe.Boolean)
	if err != nil {
		t.Fatal(err)
	}
	a, b, and := s.NewLWE(), s.NewLWE(), s.NewLWE()
	s.Extract(a, list[0], 0)
	s.Extract(b, list[0], 1)
	if err := e.Gate(and, lwe.Or, a, b); err != nil {
		t.Fatal(err)
	}
	w.opens(k, &client.Request{LWE: []*lwe.LWE{and}}, []uint64{2}) // p/8 for true

	if list, err = client.Encrypt(k, public, []uint64{3, 15}, lwe.Padded); err != nil {
		t.Fatal(err)
	}
	values := make([]uint64, s.P)
	for i := range values {
		values[i] = uint64(i) * uint64(i) % s.P
	}
	table, err := s.NewTable(values, lwe.Padded)
	if err != nil {
		t.Fatal(err)
	}
	var looked []*lwe.LWE
	for i := range 2 {
		in, out := s.NewLWE(), s.NewLWE()
		s.Extract(in, list[0], i)
		if err := e.Lookup(out, in, table); err != nil {
			t.Fatal(err)
		}
		s.Add(out, out, out) // converts the padded encoding to the plain one
		looked = append(looked, out)
	}
	w.opens(k, &client.Request{LWE: looked}, []uint64{9, 1})
}

// A repeated request gets the same answers in every combination of ciphertexts; another client or
// recipient gets none.
func TestRepeats(t *testing.T) {
	w := newWorld(t, 3, func(i int, f *config.PartyFile) {
		f.Clients[2].Permissions = append(f.Clients[2].Permissions, config.PermDecrypt)
		f.Threshold.Rules = append(f.Threshold.Rules, config.DecryptRule{Client: devnet.Operator, AnyCiphertexts: true, MessagesPerHour: 1000, MaxMessages: 100})
	})
	epoch := w.keys(1)
	w.masks(epoch, 30, "exact", 0, 1)
	w.masks(epoch, 30, "exact", 1, 2)
	k, public := w.key(epoch)
	c, d := w.encrypt(k, public, want...), w.encrypt(k, public, 7, 8)
	first := w.opens(k, ring(c, 3, 0, 1), want[:3])
	if again := w.opens(k, ring(c, 3, 0, 1), want[:3]); !slices.EqualFunc(first.Answers.Parts, again.Answers.Parts, slices.Equal) {
		t.Error("a repeated request got different answers")
	}
	more := &client.Request{Ring: []*lwe.Ring{d, c}, Coefficients: 2, Quorum: []int{0, 1}}
	w.opens(k, more, []uint64{7, 8, 0, 1})
	free := func() uint64 {
		now, err := w.app.Key(t.Context(), epoch)
		if err != nil {
			t.Fatal(err)
		}
		return now.Masks[0].Free
	}
	if n := free(); n != 25 {
		t.Errorf("%d masks are left of 30: 5 messages were decrypted", n)
	}
	w.opens(k, ring(c, 9, 1, 2), want) // another quorum decrypts independently

	to, err := client.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	other := ring(c, 3, 0, 1)
	other.Recipient = to.Public()
	_, err = w.app.Decrypt(t.Context(), k, other)
	refused(t, err, lodge.Delivered, "recipient")
	_, err = w.as(devnet.Operator).Decrypt(t.Context(), k, ring(c, 3, 0, 1))
	refused(t, err, lodge.Delivered, "another client")
}

// A request uses masks of as many batches as it needs, within the stock, and no masks for repeated
// messages.
func TestMasksOfSeveralBatches(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch := w.keys(1)
	for _, n := range []uint64{10, 7, 12} {
		w.masks(epoch, n, "exact", 0, 2)
	}
	k, public := w.key(epoch)
	all := make([]uint64, 40)
	for i := range all {
		all[i] = uint64(i) % 16
	}
	c := w.encrypt(k, public, all...)
	refuses := func(n int, free int) {
		t.Helper()
		_, err := w.app.Decrypt(t.Context(), k, ring(c, n, 0, 2))
		refused(t, err, lodge.OutOfStock, fmt.Sprintf("has %d free exact masks", free))
		if e := lodge.FromError(err); free > 0 && !strings.Contains(e.What+e.Next, fmt.Sprintf("at most %d at a time", free)) { // a peer's error combines both in one text
			t.Errorf("no hint: %v", e)
		}
	}
	refuses(30, 29)
	w.opens(k, ring(c, 25, 0, 2), all[:25])
	now, err := w.app.Key(t.Context(), epoch)
	if err != nil || len(now.Masks) != 1 || now.Masks[0].Free != 4 {
		t.Fatalf("%+v, %v", now, err)
	}
	refuses(30, 4)
	w.opens(k, ring(c, 29, 0, 2), all[:29]) // 25 of these are answered already
	w.opens(k, ring(c, 29, 0, 2), all[:29])
	refuses(30, 0)
	if now, err = w.app.Key(t.Context(), epoch); err != nil || len(now.Masks) != 0 {
		t.Fatalf("%+v, %v", now, err)
	}
	if out := w.opens(now, ring(c, 29), all[:29]); !slices.Equal(out.Quorum, []int{0, 2}) { // the holders that answered before
		t.Errorf("%v have answered", out.Quorum)
	}
	_, err = w.app.Decrypt(t.Context(), now, ring(c, 30))
	refused(t, err, lodge.OutOfStock, "masks")
}

// Answers are encrypted to the recipient.
func TestSealedAnswers(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch := w.keys(1)
	w.masks(epoch, 30, "exact", 0, 1)
	k, public := w.key(epoch)
	to, err := client.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	r := ring(w.encrypt(k, public, want...), len(want))
	r.Recipient = to.Public()
	out, err := w.app.Decrypt(t.Context(), k, r)
	if err != nil || out.Messages != nil || !out.Answers.Sealed {
		t.Fatalf("%+v, %v", out, err)
	}
	private, err := to.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	same, err := client.LoadRecipient(private)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := same.Open(out.Answers); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	stranger, err := client.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Open(out.Answers); err == nil {
		t.Error("another client reads the answer")
	}
	swapped := *out.Answers
	swapped.Parts = [][]byte{out.Answers.Parts[1], out.Answers.Parts[0]}
	if _, err := to.Open(&swapped); err == nil {
		t.Error("an answer is accepted as another party's")
	}
}

// The client avoids a party that is down.
func TestRoutesAround(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch := w.keys(1)
	for _, q := range quorums(3, 2) {
		w.masks(epoch, 50, "exact", q...)
	}
	k, public := w.key(epoch)
	c := w.encrypt(k, public, want...)
	for down := range 3 {
		w.running[down]()
		w.app.Patience = 5 * time.Second
		r := ring(c, len(want))
		if out := w.opens(k, r, want); slices.Contains(out.Quorum, down) {
			t.Errorf("without party %d the quorum is %v", down, out.Quorum)
		}
		w.start(down, nil)
		w.app.Patience = 20 * time.Second
		if _, err := w.app.Key(t.Context(), epoch); err != nil {
			t.Fatal(err)
		}
	}
	w.running[0]()
	w.running[1]()
	w.app.Patience = 5 * time.Second
	_, err := w.app.Decrypt(t.Context(), k, ring(c, 1))
	refused(t, err, lodge.Unavailable, "can be reached")
}

// New shares of the same secrets, for other holders and another threshold: the keys stay, and old
// and new shares do not mix.
func TestReshare(t *testing.T) {
	w := newWorld(t, 5, nil)
	first := w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: set, Threshold: 1, Group: []uint32{0, 1, 2}}).GetEpoch()
	w.masks(first, 1, "paper", 0, 2)
	k, public := w.key(first)
	if !slices.Equal(k.Holders, []int{0, 1, 2}) {
		t.Fatalf("holders %v", k.Holders)
	}
	c := w.encrypt(k, public, want...)
	j := w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_RESHARE, FromEpoch: first, Threshold: 2, Group: []uint32{0, 1, 2, 3, 4}})
	second := j.GetEpoch()
	w.masks(second, 30, "exact", 1, 3, 4)
	renewed, _ := w.key(second)
	if renewed.Digest != k.Digest || renewed.Threshold != 2 || !slices.Equal(renewed.Holders, []int{0, 1, 2, 3, 4}) {
		t.Fatalf("%+v", renewed)
	}
	w.opens(renewed, ring(c, len(want)), want)

	// Back to three holders. One of them never had the first shares, and one of the old holders
	// does not take part.
	third := w.complete(&coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_RESHARE, FromEpoch: second, Threshold: 1, Group: []uint32{2, 3, 4},
		FromDigest: renewed.Digest[:], FromThreshold: 2, FromHolders: []uint32{1, 2, 0, 4, 5},
	}).GetEpoch()
	w.masks(third, 30, "exact", 2, 4)
	w.masks(third, 1, "paper", 2, 4)
	last, _ := w.key(third)
	w.opens(last, ring(c, len(want)), want)
	// The keys' errors are those of the three parties that made them, which new shares do not
	// record.
	made, now := paperFailure(t, k), paperFailure(t, last)
	p, err := decrypt.ParamsOf(w.scheme(), 1, true)
	if err != nil {
		t.Fatal(err)
	}
	if want := decrypt.FailureProbability(p.Kind, p.Modulus, p.Parties, w.scheme().NoiseOf(3, 1).Bootstrapped()); made != want || now <= want {
		t.Errorf("a decryption fails with probability %g and under new shares %g at most, and should with %g", made, now, want)
	}
	if err := w.app.Close(); err != nil {
		t.Fatal(err)
	}
}

func paperFailure(t *testing.T, k *client.Key) float64 {
	t.Helper()
	for _, m := range k.Masks {
		if m.FailureProbability > 0 {
			return m.FailureProbability
		}
	}
	t.Fatalf("epoch %d has no masks of the paper's form that can fail: %+v", k.Epoch, k.Masks)
	return 0
}

// Every refusal has its own error.
func TestRefusals(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch, other := w.keys(1), w.keys(1)
	w.masks(epoch, 4, "exact", 0, 1)
	k, public := w.key(epoch)
	foreign, theirs := w.key(other)
	ctx := t.Context()
	c := w.encrypt(k, public, want...)
	ask := func(r *client.Request, change func(*client.Key)) error {
		asked := *k
		if change != nil {
			change(&asked)
		}
		_, err := w.app.Decrypt(ctx, &asked, r)
		return err
	}
	_ = theirs
	refused(t, ask(ring(c, 5, 0, 1), nil), lodge.OutOfStock, "masks")
	refused(t, ask(ring(c, 1, 1, 2), nil), lodge.OutOfStock, "masks")
	refused(t, ask(ring(c, 1, 0, 1, 2), nil), "wrong_quorum", "3 parties")
	refused(t, ask(ring(c, 1, 1, 0), nil), "wrong_quorum", "not in order")
	refused(t, ask(ring(c, 1, 0, 1), func(k *client.Key) { k.Epoch = 99 }), lodge.NotFound, "epoch 99")
	refused(t, ask(ring(c, 1, 0, 1), func(k *client.Key) { k.Digest = foreign.Digest }), "foreign_ciphertext", "epoch 1 has")
	paper := ring(c, 1, 0, 1)
	paper.Paper = true
	refused(t, ask(paper, nil), lodge.OutOfStock, "masks")
	w.opens(k, ring(c, 4, 0, 1), want[:4])

	operator := w.as(devnet.Operator)
	_, err := operator.Decrypt(ctx, k, ring(c, 1, 0, 1))
	refused(t, err, lodge.Forbidden, "decrypt")

	j := w.submit(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: set, Threshold: 2})
	if !strings.Contains(j.GetFailure().GetReason(), "honest majority") {
		t.Errorf("a threshold of 2 of 3: %v", j.GetFailure())
	}
	j = w.submit(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_MASKS, Epoch: epoch, Count: 5, Group: []uint32{0, 1, 2}, Form: jobv1.MaskForm_MASK_FORM_EXACT})
	if j.GetFailure().GetCheck() != "wrong_quorum" {
		t.Errorf("masks for three: %v", j.GetFailure())
	}
}

// A party allows only decryptions that its rules permit.
func TestPolicy(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 3, func(i int, f *config.PartyFile) {
		f.Threshold = config.Threshold{
			Attesters: []config.Attester{{Name: "auditor", Key: hex.EncodeToString(public)}},
			Rules: []config.DecryptRule{
				{Client: devnet.App, Epochs: []uint64{1}, MessagesPerHour: 10, MaxMessages: 6, Provenance: []string{"auditor"}},
				{Client: devnet.App, Epochs: []uint64{2}, AnyCiphertexts: true, MessagesPerHour: 10, MaxMessages: 6},
				{Client: devnet.App, Keys: []string{strings.Repeat("00", 32)}, MessagesPerHour: 10, MaxMessages: 6}, // of unknown keys
			},
		}
		f.AllowPassiveThreshold = true
	})
	for range 3 {
		w.masks(w.keys(1), 40, "exact", 0, 1)
	}
	ctx := t.Context()
	k, pk := w.key(1)
	c := w.encrypt(k, pk, want...)
	r := ring(c, 3, 0, 1)
	_, err = w.app.Decrypt(ctx, k, r)
	refused(t, err, "policy_refused", "must be signed")
	if err := r.Sign(k, "somebody", "average", private); err != nil {
		t.Fatal(err)
	}
	_, err = w.app.Decrypt(ctx, k, r)
	refused(t, err, "policy_refused", "somebody")
	if err := r.Sign(k, "auditor", "average", private); err != nil {
		t.Fatal(err)
	}
	r.Circuit = "median"
	_, err = w.app.Decrypt(ctx, k, r)
	refused(t, err, "policy_refused", "has not signed")
	r.Circuit = "average"
	w.opens(k, r, want[:3])
	more := ring(c, 4, 0, 1)
	more.Attester, more.Circuit, more.Signature = r.Attester, r.Circuit, r.Signature
	_, err = w.app.Decrypt(ctx, k, more)
	refused(t, err, "policy_refused", "has not signed")

	k, pk = w.key(2)
	c = w.encrypt(k, pk, want...)
	_, err = w.app.Decrypt(ctx, k, ring(c, 7, 0, 1))
	refused(t, err, "policy_refused", "6 at a time")
	paper := ring(c, 1, 0, 1)
	paper.Paper = true
	_, err = w.app.Decrypt(ctx, k, paper)
	refused(t, err, "policy_refused", "allow_paper_form")
	w.opens(k, ring(c, 6, 0, 1), want[:6])
	_, err = w.app.Decrypt(ctx, k, ring(w.encrypt(k, pk, want...), 5, 0, 1))
	refused(t, err, lodge.RateLimited, "may have 10")
	if e := lodge.FromError(err); !strings.Contains(e.What+e.Next, "try again in ") {
		t.Errorf("the error gives no time to retry: %v", e)
	}
	w.opens(k, ring(c, 6, 0, 1), want[:6]) // a repeat is not counted

	k, pk = w.key(3)
	_, err = w.app.Decrypt(ctx, k, ring(w.encrypt(k, pk, 1), 1, 0, 1))
	refused(t, err, "policy_refused", "no rule")

	// The audit logs of the parties that decrypted show the decryptions and their clients.
	for i, file := range w.net.Parties {
		f, err := config.LoadParty(file)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := audit.Tail(f.AuditDir, 100)
		if i > 1 && err == nil && len(entries) > 0 || i < 2 && err != nil {
			t.Errorf("party %d: %d entries, %v", i, len(entries), err)
		}
		var notes []string
		for _, e := range entries {
			if e.Event == audit.Decrypted {
				notes = append(notes, e.Note)
			}
			if e.Actor != devnet.App || len(e.Objects) != 1 || !strings.HasPrefix(e.Objects[0], "epoch/") || e.Digest == [32]byte{} {
				t.Errorf("party %d: %+v", i, e)
			}
		}
		if wrote := []string{
			`answered: 3 messages, 3 of them for the first time, 2 parties, circuit "average" by auditor`,
			"answered: 6 messages, 6 of them for the first time, 2 parties, any_ciphertexts: this client can read the key",
			"repeated: 6 messages, 0 of them for the first time, 2 parties, any_ciphertexts: this client can read the key",
		}; i < 2 && !slices.Equal(notes, wrote) {
			t.Errorf("party %d: %q", i, notes)
		}
	}
}

// Threshold keys require that the operator has explicitly allowed them.
func TestPassiveKeysAreRefused(t *testing.T) {
	w := newWorld(t, 3, func(i int, f *config.PartyFile) { f.AllowPassiveThreshold = i != 1 })
	j := w.submit(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: set, Threshold: 1})
	if j.GetFailure().GetCheck() != "passive_keygen" || !strings.Contains(j.GetFailure().GetReason(), "allow_passive_threshold") {
		t.Errorf("%v", j.GetFailure())
	}
}

// Parties that receive different requests detect that first, and spend no masks.
func TestDifferentQuestions(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch := w.keys(1)
	w.masks(epoch, 30, "exact", 0, 1)
	k, public := w.key(epoch)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id := bytes.Repeat([]byte{7}, 16)
	errs := make([]error, 2)
	var group sync.WaitGroup
	for i := range errs {
		c := w.encrypt(k, public, uint64(i))
		group.Go(func() { _, errs[i] = w.raw(ctx, i, k, c, func(h *thresholdv1.DecryptHeader) { h.RequestId = id }) })
	}
	group.Wait()
	for i, err := range errs {
		e := lodge.FromError(err)
		if err == nil || e.Code != "pin_mismatch" && e.Code != lodge.Unavailable {
			t.Errorf("party %d: %v", i, err)
		}
	}
	if ctx.Err() != nil {
		t.Error("it waited for the whole timeout")
	}
	if now, err := w.app.Key(t.Context(), epoch); err != nil || now.Masks[0].Free != 30 {
		t.Errorf("%+v, %v", now.Masks, err)
	}
}

// An upload is checked against the header, and each kind of error has its own text, before the
// peers are contacted.
func TestMalformedRequests(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch := w.keys(1)
	w.masks(epoch, 30, "exact", 0, 1)
	k, public := w.key(epoch)
	c := w.encrypt(k, public, 1)
	bad := k.Scheme().AppendRing(nil, c)
	for i := range 7 {
		bad[i] = 0xff // not a residue
	}
	sum := decrypt.CiphertextsDigest(bad, len(bad))
	for name, x := range map[string]struct {
		change func(*thresholdv1.DecryptHeader)
		send   []byte
		want   lodge.Code
	}{
		"no id":               {change: func(h *thresholdv1.DecryptHeader) { h.RequestId = nil }, want: lodge.Invalid},
		"no digest":           {change: func(h *thresholdv1.DecryptHeader) { h.CiphertextsDigest = nil }, want: lodge.Invalid},
		"another digest":      {change: func(h *thresholdv1.DecryptHeader) { h.CiphertextsDigest = sum[:] }, want: lodge.Invalid},
		"no form":             {change: func(h *thresholdv1.DecryptHeader) { h.Form, h.Coefficients = 0, 0 }, want: lodge.Invalid},
		"no ciphertexts":      {change: func(h *thresholdv1.DecryptHeader) { h.Count = 0 }, want: lodge.Invalid},
		"more to come":        {change: func(h *thresholdv1.DecryptHeader) { h.Count = 2 }, want: lodge.Invalid},
		"no coefficients":     {change: func(h *thresholdv1.DecryptHeader) { h.Coefficients = 0 }, want: lodge.Invalid},
		"too many":            {change: func(h *thresholdv1.DecryptHeader) { h.Coefficients = 1 << 20 }, want: lodge.Invalid},
		"coefficients of LWE": {change: func(h *thresholdv1.DecryptHeader) { h.Form = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_LWE }, want: lodge.Invalid},
		"strange masks":       {change: func(h *thresholdv1.DecryptHeader) { h.Masks = 9 }, want: lodge.Invalid},
		"recipient":           {change: func(h *thresholdv1.DecryptHeader) { h.Recipient = []byte("me") }, want: lodge.Invalid},
		"long circuit": {change: func(h *thresholdv1.DecryptHeader) {
			h.Provenance = &thresholdv1.Provenance{Circuit: strings.Repeat("x", 300)}
		}, want: lodge.TooLarge},
		"huge":       {change: func(h *thresholdv1.DecryptHeader) { h.Count = 1 << 31 }, want: "policy_refused"},
		"too long":   {send: make([]byte, k.Scheme().RingSize()+1), want: lodge.TooLarge},
		"no residue": {change: func(h *thresholdv1.DecryptHeader) { h.CiphertextsDigest = sum[:] }, send: bad, want: "malformed_ciphertext"},
	} {
		_, err := w.rawBytes(t.Context(), 0, k, c, x.change, x.send)
		if e := lodge.FromError(err); err == nil || e.Code != x.want {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		}
	}
	w.opens(k, ring(c, 1, 0, 1), []uint64{1})
}

// Holders refuse a reshare whose spec does not match their own record of the old epoch.
func TestReshareOfSomethingElse(t *testing.T) {
	w := newWorld(t, 3, nil)
	first, other := w.keys(1), w.keys(1)
	k, _ := w.key(first)
	foreign, _ := w.key(other)
	q := func() *coordinatorv1.JobRequest {
		return &coordinatorv1.JobRequest{
			Kind: jobv1.Kind_KIND_RESHARE, Params: set, FromEpoch: first, Threshold: 1, Group: []uint32{0, 1, 2},
			FromDigest: k.Digest[:], FromThreshold: 1, FromHolders: []uint32{1, 2, 3},
		}
	}
	for name, change := range map[string]func(*coordinatorv1.JobRequest){
		"other keys":      func(q *coordinatorv1.JobRequest) { q.FromDigest = foreign.Digest[:] },
		"swapped holders": func(q *coordinatorv1.JobRequest) { q.FromHolders = []uint32{2, 1, 3} },
		"fewer holders":   func(q *coordinatorv1.JobRequest) { q.FromHolders = []uint32{1, 2} },
		"no majority":     func(q *coordinatorv1.JobRequest) { q.Threshold = 2 },
	} {
		x := q()
		change(x)
		j := w.submit(x)
		if j.GetState() == jobv1.JobState_JOB_STATE_COMPLETED || j.GetFailure().GetOutcome() != "refused" {
			t.Errorf("%s: %s, %v", name, j.GetState(), j.GetFailure())
		}
	}
	w.complete(q())
}

// Keys of one purpose cannot be used for another.
func TestPurposes(t *testing.T) {
	w := newWorld(t, 3, nil, "insecure-8")
	threshold := w.keys(1)
	k, public := w.key(threshold)
	c := w.encrypt(k, public, 1)
	for _, p := range []jobv1.Purpose{jobv1.Purpose_PURPOSE_TRIPLES, jobv1.Purpose_PURPOSE_DECRYPTION} {
		other := w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: "insecure-8", Purpose: p}).GetEpoch()
		_, err := w.raw(t.Context(), 0, k, c, func(h *thresholdv1.DecryptHeader) { h.Epoch = other })
		refused(t, err, lodge.KeyPurpose, "not for threshold")
		_, err = w.operator.SubmitJob(t.Context(), &coordinatorv1.SubmitJobRequest{Job: &coordinatorv1.JobRequest{
			Kind: jobv1.Kind_KIND_MASKS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Params: set, Epoch: other, Count: 5, Group: []uint32{0, 1}, Form: jobv1.MaskForm_MASK_FORM_EXACT,
		}})
		refused(t, err, lodge.NotFound, "threshold keys of epoch")
	}
	j := w.submit(&coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_SCALAR, Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Params: "insecure-8", Field: "p128", Dim: 1, Count: 1, Epoch: threshold, Tenant: devnet.Tenant,
	})
	if j.GetFailure().GetCheck() != string(lodge.KeyPurpose) {
		t.Errorf("triples under threshold keys: %v", j.GetFailure())
	}
}

// A party gives new shares only to holders that its own configuration allows, and only with at
// least its minimum threshold.
func TestReshareIsEveryHoldersToAllow(t *testing.T) {
	w := newWorld(t, 4, func(i int, f *config.PartyFile) { f.Threshold.Reshare = config.Reshare{} })
	first := w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: set, Threshold: 1, Group: []uint32{0, 1, 2}}).GetEpoch()
	j := w.submit(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_RESHARE, FromEpoch: first, Threshold: 1, Group: []uint32{0, 1, 3}})
	if j.GetFailure().GetCheck() != "policy_refused" || !strings.Contains(j.GetFailure().GetReason(), "p3") {
		t.Errorf("%v", j.GetFailure())
	}
	w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_RESHARE, FromEpoch: first, Threshold: 1, Group: []uint32{0, 1, 2}})

	lower := newWorld(t, 5, func(i int, f *config.PartyFile) { f.Threshold.Reshare.MinThreshold = 2 })
	first = lower.keys(2)
	j = lower.submit(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_RESHARE, FromEpoch: first, Threshold: 1, Group: []uint32{0, 1, 2}})
	if j.GetFailure().GetCheck() != "policy_refused" || !strings.Contains(j.GetFailure().GetReason(), "no lower than 2") {
		t.Errorf("%v", j.GetFailure())
	}
}

// A coordinator that names nonexistent parties is rejected before the session begins.
func TestPartiesThatThereAreNot(t *testing.T) {
	w := newWorld(t, 3, nil)
	f, err := config.LoadCoordinator(w.net.Coordinator)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := rpc.LoadCredentials(f.TLS.Files())
	if err != nil {
		t.Fatal(err)
	}
	m := w.net.Roster.Parties[0]
	conn, err := rpc.Dial(m.Address, m.Identity, credentials)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	hash, roster := w.scheme().Hash(), w.net.Roster.Hash()
	for name, change := range map[string]func(*jobv1.SessionSpec){
		"holders": func(s *jobv1.SessionSpec) { s.FromHolders = []uint32{64, 63, 62} },
		"group":   func(s *jobv1.SessionSpec) { s.Group = []uint32{0, 1, 60} },
		"others":  func(s *jobv1.SessionSpec) { s.Group, s.FromHolders = []uint32{1, 2}, []uint32{2, 3} },
	} {
		s := &jobv1.SessionSpec{
			Ref: &jobv1.SessionRef{JobId: "hostile-" + name, Ordinal: 1}, Protocol: jobv1.Protocol_PROTOCOL_THRESHOLD, ProtocolVersion: job.ProtocolVersion,
			Params: set, ParamsHash: hash[:], RosterHash: roster[:], Kind: jobv1.Kind_KIND_RESHARE, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Epoch: 9,
			FromEpoch: 8, FromDigest: make([]byte, 32), FromThreshold: 1, FromHolders: []uint32{1, 2, 3}, Threshold: 1, Group: []uint32{0, 1, 2},
			Deadline: timestamppb.New(time.Now().Add(time.Minute)),
		}
		change(s)
		_, err := thresholdv1.NewThresholdServiceClient(conn).Start(t.Context(), &jobv1.StartRequest{Spec: s}, grpc.WaitForReady(true))
		refused(t, err, lodge.Invalid, "part")
	}
}

// If a rule requires it, other clients must approve each request, once for each time it is used.
func TestApprovals(t *testing.T) {
	w := newWorld(t, 3, func(i int, f *config.PartyFile) {
		r := &f.Threshold.Rules[0]
		r.AnyCiphertexts, r.MaxTotal, r.Approvals = false, 0, 2
		f.Clients[0].Permissions = append(f.Clients[0].Permissions, config.PermApprove)
		f.Clients[1].Permissions = append(f.Clients[1].Permissions, config.PermApprove)
	})
	epoch := w.keys(1)
	w.masks(epoch, 30, "exact", 0, 1)
	k, public := w.key(epoch)
	r := ring(w.encrypt(k, public, want...), 3, 0, 1)
	_, err := w.app.Decrypt(t.Context(), k, r)
	refused(t, err, "approval_needed", "0 have")
	approve := func(client string, party int) error {
		conn := w.connect(client, party)
		defer conn.Close()
		list, err := thresholdv1.NewThresholdServiceClient(conn).ListApprovals(t.Context(), &thresholdv1.ListApprovalsRequest{})
		if err != nil || len(list.GetApprovals()) != 1 || list.GetApprovals()[0].GetMessages() != 3 {
			t.Fatalf("%v, %v", list, err)
		}
		_, err = thresholdv1.NewThresholdServiceClient(conn).ApproveDecryption(t.Context(), &thresholdv1.ApproveDecryptionRequest{Request: list.GetApprovals()[0].GetRequest()})
		return err
	}
	refused(t, approve(devnet.App, 0), lodge.Forbidden, "own")
	// Both parties must know the request: the client's call may have ended with the first party's
	// refusal.
	for p := range 2 {
		_, err := w.raw(t.Context(), p, k, r.Ring[0], func(h *thresholdv1.DecryptHeader) { h.Coefficients = 3 })
		refused(t, err, "approval_needed", "2 other clients")
	}
	for p := range 2 {
		if err := approve(devnet.Operator, p); err != nil {
			t.Fatal(err)
		}
	}
	_, err = w.app.Decrypt(t.Context(), k, r)
	refused(t, err, "approval_needed", "1 have")
	for p := range 2 {
		if err := approve(devnet.ClientName(p), p); err != nil {
			t.Fatal(err)
		}
	}
	w.opens(k, r, want[:3])
	w.opens(k, r, want[:3]) // a repeat needs no approval
	for p := range 2 {
		f, err := config.LoadParty(w.net.Parties[p])
		if err != nil {
			t.Fatal(err)
		}
		entries, err := audit.Tail(f.AuditDir, 100)
		if err != nil {
			t.Fatal(err)
		}
		var events []string
		for _, e := range entries {
			events = append(events, fmt.Sprintf("%s by %s: %s", e.Event, e.Actor, e.Note))
		}
		if wrote := []string{
			"approved by operator: 1 of 2, 3 messages for app", "approved by " + devnet.ClientName(p) + ": 2 of 2, 3 messages for app",
			"decrypted by app: answered: 3 messages, 3 of them for the first time, 2 parties", "decrypted by app: repeated: 3 messages, 0 of them for the first time, 2 parties",
		}; !slices.Equal(events, wrote) {
			t.Errorf("party %d: %q", p, events)
		}
	}
	more := ring(r.Ring[0], 4, 0, 1)
	_, err = w.app.Decrypt(t.Context(), k, more)
	refused(t, err, "approval_needed", "0 have")
}

// Masks that a party has spent are never used again: a run with them is refused, the party that
// proposed them removes them from its stock, and the next attempt proposes others.
func TestMasksAreUsedOnce(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch := w.keys(1)
	batch := w.masks(epoch, 30, "exact", 0, 1).GetBatchId()
	k, public := w.key(epoch)
	w.running[1]()
	f, err := config.LoadParty(w.net.Parties[1])
	if err != nil {
		t.Fatal(err)
	}
	key, err := seal.LoadKey(f.Vault.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vault.OpenPlace(t.Context(), seal.Place{Dir: f.Vault.Dir}, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.SpendMasks(batch, stock.Span{First: 2, Count: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.SpendMasks(batch, stock.Span{First: 0, Count: 4}); !errors.Is(err, vaulterr.ErrTaken) {
		t.Errorf("spent again: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	w.start(1, nil)
	c := w.encrypt(k, public, want...)
	ask := func(id byte) (errs [2]error) {
		var group sync.WaitGroup
		for p := range errs {
			group.Go(func() {
				_, errs[p] = w.raw(t.Context(), p, k, c, func(h *thresholdv1.DecryptHeader) { h.RequestId, h.Coefficients = bytes.Repeat([]byte{id}, 16), 4 })
			})
		}
		group.Wait()
		return errs
	}
	for _, err := range ask(1) {
		refused(t, err, "mask_spent", "are spent at party 1")
	}
	for p, err := range ask(2) {
		if err != nil {
			t.Errorf("repeated request, party %d: %v", p, err)
		}
	}
	w.opens(k, ring(c, 4, 0, 1), want[:4])
	now, err := w.app.Key(t.Context(), epoch)
	if err != nil || now.Masks[0].Free != 30-4-4 {
		t.Errorf("%+v, %v: four were refused and four spent", now.Masks, err)
	}
	for _, err := range ask(2) {
		refused(t, err, lodge.Conflict, "was begun before")
	}
}
