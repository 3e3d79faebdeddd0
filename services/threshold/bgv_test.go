package threshold_test

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	client "github.com/lodge-mpc/lodge/clients/go/threshold"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

const (
	bgvSet = "insecure-B5-17"
	noRoom = "insecure-B5-8" // too small for flooding
)

// floods replaces the application's rule by one with flooding, which requires provenance signed by
// the cluster's attester.
func floods(_ int, f *config.PartyFile) {
	r := &f.Threshold.Rules[0]
	r.AnyCiphertexts, r.MaxTotal, r.Provenance, r.AllowFlooding = false, 0, []string{devnet.Attester}, true
}

// vouched decrypts with provenance signed by the cluster's attester.
func (w *world) vouched(k *client.Key, r *client.Request) (*client.Result, error) {
	w.Helper()
	key, err := w.net.AttesterKey()
	if err != nil {
		w.Fatal(err)
	}
	if err := r.Sign(k, devnet.Attester, "test", key); err != nil {
		return nil, err
	}
	return w.app.Decrypt(w.Context(), k, r)
}

// bgvUser encrypts under BGV keys and computes with the ciphertexts.
type bgvUser struct {
	*world
	key       *client.Key
	encoder   *bgv.Encoder
	encryptor *rlwe.Encryptor
	evaluator *bgv.Evaluator
}

// bgvKeys makes keys of a set, for automorphisms.
func (w *world) bgvKeys(set string, threshold uint32, galois ...uint32) uint64 {
	w.Helper()
	return w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: set, Threshold: threshold, Galois: galois}).GetEpoch()
}

// user fetches the keys of an epoch.
func (w *world) user(epoch uint64) *bgvUser {
	w.Helper()
	k, err := w.app.Key(w.Context(), epoch)
	if err != nil {
		w.Fatal(err)
	}
	public, evaluation, err := w.app.BGVKeys(w.Context(), k, nil)
	if err != nil {
		w.Fatal(err)
	}
	alone, err := w.app.BGVPublicKey(w.Context(), k)
	if err != nil || !alone.Equal(public) {
		w.Fatalf("another public key: %v", err)
	}
	p := k.BGV().Lattigo
	return &bgvUser{w, k, bgv.NewEncoder(p), bgv.NewEncryptor(p, public), bgv.NewEvaluator(p, evaluation)}
}

// values returns values for all slots.
func (u *bgvUser) values(seed uint64) []uint64 {
	v := make([]uint64, u.key.BGV().Lattigo.MaxSlots())
	for i := range v {
		v[i] = (seed + uint64(i)*seed*7) % u.key.BGV().T
	}
	return v
}

// encrypt encrypts values in slots if slots is set, and in coefficients otherwise.
func (u *bgvUser) encrypt(values []uint64, slots bool) *rlwe.Ciphertext {
	u.Helper()
	p := bgv.NewPlaintext(u.key.BGV().Lattigo, u.key.BGV().MaxLevel())
	p.IsBatched = slots
	err := u.encoder.Encode(values, p)
	var ct *rlwe.Ciphertext
	if err == nil {
		ct, err = u.encryptor.EncryptNew(p)
	}
	if err != nil {
		u.Fatal(err)
	}
	return ct
}

// flooded decrypts whole ciphertexts with flooding, and compares the slots.
func (u *bgvUser) flooded(want []uint64, ct *rlwe.Ciphertext, quorum ...uint32) *client.Result {
	u.Helper()
	out, err := u.vouched(u.key, &client.Request{BGV: []*rlwe.Ciphertext{ct}, Flooding: true, Quorum: ints(quorum)})
	if err != nil {
		u.Fatal(err)
	}
	slots, err := u.key.Slots(out.Messages)
	if err != nil || !slices.Equal(slots, want) {
		u.Errorf("%v, want %v: %v", slots, want, err)
	}
	return out
}

// computed returns a product of sums, rotated, and the values in its slots.
func (u *bgvUser) computed(seed uint64) (*rlwe.Ciphertext, []uint64) {
	u.Helper()
	x, y := u.values(seed), u.values(seed+1)
	a, b := u.encrypt(x, true), u.encrypt(y, true)
	sum, err := u.evaluator.AddNew(a, b)
	if err == nil {
		sum, err = u.evaluator.MulRelinNew(sum, b)
	}
	if err == nil {
		sum, err = u.evaluator.RotateColumnsNew(sum, 1)
	}
	if err == nil {
		sum, err = u.evaluator.RotateRowsNew(sum)
	}
	if err != nil {
		u.Fatal(err)
	}
	t, half := u.key.BGV().T, len(x)/2
	want := make([]uint64, len(x))
	for row := range 2 {
		for i := range half {
			from := (1-row)*half + (i+1)%half
			want[row*half+i] = (x[from] + y[from]) % t * y[from] % t
		}
	}
	return sum, want
}

// rotations returns the automorphisms of a rotation by one column, and of the rows.
func rotations(set string) []uint32 {
	n := map[string]uint32{bgvSet: 32, noRoom: 32, "insecure-B6-31": 64, "B12-17": 4096}[set]
	list := []uint32{5, 2*n - 1}
	slices.Sort(list)
	return list
}

// Keys are made, fetched and used for computation, and every quorum decrypts the results under
// masks and with flooding.
func TestBGV(t *testing.T) {
	for _, c := range []struct {
		parties  int
		set      string
		flooding bool
	}{{3, bgvSet, true}, {5, "insecure-B6-31", true}, {3, noRoom, false}, {3, "B12-17", false}} {
		t.Run(fmt.Sprintf("%s, %d parties", c.set, c.parties), func(t *testing.T) {
			w := newWorld(t, c.parties, floods, c.set)
			threshold := (c.parties - 1) / 2
			u := w.user(w.bgvKeys(c.set, 0, rotations(c.set)...))
			k := u.key
			if k.Threshold != threshold || len(k.Galois) != 2 || (k.FloodingLimit > 0) != c.flooding || k.Scheme() != nil {
				t.Fatalf("%+v", k)
			}
			all := quorums(c.parties, threshold+1)
			for _, quorum := range all {
				w.masks(k.Epoch, 8, "exact", quorum...)
			}
			want := u.values(3)[:7]
			ct := u.encrypt(want, false)
			for _, quorum := range all {
				w.opens(k, &client.Request{BGV: []*rlwe.Ciphertext{ct}, Coefficients: 7, Quorum: ints(quorum)}, want)
			}
			w.opens(k, &client.Request{BGV: []*rlwe.Ciphertext{ct}, Coefficients: 7, Quorum: ints(all[0])}, want) // again, without masks
			if !c.flooding {
				_, err := w.vouched(k, &client.Request{BGV: []*rlwe.Ciphertext{ct}, Flooding: true})
				refused(t, err, lodge.Invalid, "no flooding")
				return
			}
			for i, quorum := range all {
				product, slots := u.computed(uint64(i) + 10)
				u.flooded(slots, product, quorum...)
			}
			now, err := w.app.Key(t.Context(), k.Epoch)
			if each := uint64(len(all) * (threshold + 1) / c.parties); err != nil || now.Flooded != each || now.FloodingLimit != 1<<20/uint64(c.parties-threshold) {
				t.Errorf("%d of %d, want %d: %v", now.Flooded, now.FloodingLimit, each, err)
			}
		})
	}
}

// A ciphertext that was decrypted with flooding is bound to its quorum and its client, and a
// repeated request gets the same answers.
func TestFloodingLedger(t *testing.T) {
	w := newWorld(t, 3, func(i int, f *config.PartyFile) {
		floods(i, f)
		f.Clients[2].Permissions = append(f.Clients[2].Permissions, config.PermDecrypt)
		f.Threshold.Rules = append(f.Threshold.Rules, config.DecryptRule{
			Client: devnet.Operator, MessagesPerHour: 1000, MaxMessages: 100, AllowFlooding: true, Provenance: []string{devnet.Attester},
		})
	}, bgvSet)
	u := w.user(w.bgvKeys(bgvSet, 1))
	want := u.values(5)
	ct := u.encrypt(want, true)
	before := u.flooded(want, ct, 0, 2)
	again := u.flooded(want, ct) // the client finds the quorum
	if !slices.Equal(again.Quorum, []int{0, 2}) || !slices.EqualFunc(before.Answers.Parts, again.Answers.Parts, slices.Equal[[]byte]) {
		t.Errorf("quorum %v, or different answers", again.Quorum)
	}
	for _, quorum := range [][]int{{0, 1}, {1, 2}} {
		_, err := w.vouched(u.key, &client.Request{BGV: []*rlwe.Ciphertext{ct}, Flooding: true, Quorum: quorum})
		refused(t, err, "wrong_quorum", "by the holders [0 2]")
	}
	request := &client.Request{BGV: []*rlwe.Ciphertext{ct}, Flooding: true, Quorum: []int{0, 2}}
	if _, err := w.vouched(u.key, request); err != nil { // and request now carries the provenance
		t.Fatal(err)
	}
	_, err := w.as(devnet.Operator).Decrypt(t.Context(), u.key, request)
	refused(t, err, lodge.Delivered, "another client")
	to, err := client.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	sealed := &client.Request{BGV: []*rlwe.Ciphertext{ct}, Flooding: true, Quorum: []int{0, 2}, Recipient: to.Public()}
	_, err = w.vouched(u.key, sealed)
	refused(t, err, lodge.Delivered, "another client")
	// a ciphertext that differs only in c_0 is the same ciphertext
	other := ct.CopyNew()
	for i := range other.Value[0].Coeffs {
		other.Value[0].Coeffs[i][0] = (other.Value[0].Coeffs[i][0] + 1) % u.key.BGV().Q[i]
	}
	_, err = w.vouched(u.key, &client.Request{BGV: []*rlwe.Ciphertext{other}, Flooding: true, Quorum: []int{0, 1}})
	refused(t, err, "wrong_quorum", "[0 2]")
	// a batch of which a part was answered before
	second := u.encrypt(u.values(6), true)
	both, err := w.vouched(u.key, &client.Request{BGV: []*rlwe.Ciphertext{second, ct}, Flooding: true, Quorum: []int{0, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if slots, err := u.key.Slots(both.Messages[32:]); err != nil || !slices.Equal(slots, want) {
		t.Errorf("%v, %v", slots, err)
	}
	// a party restarts, and has all answers
	w.running[2]()
	w.start(2, floods)
	after := u.flooded(want, ct, 0, 2)
	if !slices.EqualFunc(before.Answers.Parts, after.Answers.Parts, slices.Equal[[]byte]) {
		t.Error("different answers after a restart")
	}
	if now, err := w.app.Key(t.Context(), u.key.Epoch); err != nil || now.Flooded != 2 {
		t.Errorf("%d are counted, want 2: %v", now.Flooded, err)
	}
}

// Answers to BGV ciphertexts are encrypted to a recipient, in both modes.
func TestBGVRecipient(t *testing.T) {
	w := newWorld(t, 3, floods, bgvSet)
	u := w.user(w.bgvKeys(bgvSet, 1))
	w.masks(u.key.Epoch, 4, "exact", 1, 2)
	to, err := client.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	want := u.values(4)
	ct := u.encrypt(want, false)
	for _, r := range []*client.Request{{Coefficients: 4}, {Flooding: true}} {
		r.BGV, r.Recipient, r.Quorum = []*rlwe.Ciphertext{ct}, to.Public(), []int{1, 2}
		out, err := w.vouched(u.key, r)
		if err != nil || out.Messages != nil {
			t.Fatalf("%v, %v", out, err)
		}
		got, err := to.Open(out.Answers)
		if n := len(got); err != nil || n != max(r.Coefficients, 32*len(r.BGV)*btoi(r.Flooding)) || !slices.Equal(got, want[:n]) {
			t.Errorf("%v, %v", got, err)
		}
		out.Answers.Ciphertexts[9] ^= 1
		if _, err := to.Open(out.Answers); err == nil {
			t.Error("answers to other ciphertexts are opened")
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Requests under keys of another scheme, and malformed requests, are rejected with a specific
// error.
func TestBGVRefusals(t *testing.T) {
	w := newWorld(t, 3, nil, bgvSet)
	lweEpoch := w.keys(1)
	u := w.user(w.bgvKeys(bgvSet, 1))
	lweKey, public := w.key(lweEpoch)
	ct := u.encrypt(u.values(2), true)
	_, err := w.app.Decrypt(t.Context(), u.key, &client.Request{BGV: []*rlwe.Ciphertext{ct}, Flooding: true, Quorum: []int{0, 1}})
	refused(t, err, lodge.Code(rpc.PolicyRefused), "allow_flooding")
	_, err = w.app.Decrypt(t.Context(), lweKey, &client.Request{BGV: []*rlwe.Ciphertext{ct}, Coefficients: 1})
	refused(t, err, lodge.Invalid, "is not a set of BGV")
	c := w.encrypt(lweKey, public, 1)
	_, err = w.app.Decrypt(t.Context(), u.key, ring(c, 1))
	refused(t, err, lodge.Invalid, "is a set of BGV")
	if _, err := w.app.PublicKey(t.Context(), u.key); err == nil {
		t.Error("an LWE key for BGV keys")
	}
	if _, _, err := w.app.BGVKeys(t.Context(), lweKey, nil); err == nil {
		t.Error("BGV keys for LWE keys")
	}
	low := ct.CopyNew()
	low.Resize(1, 1)
	_, err = w.app.Decrypt(t.Context(), u.key, &client.Request{BGV: []*rlwe.Ciphertext{ct, low}, Coefficients: 1})
	refused(t, err, lodge.Invalid, "level")
	_, err = w.app.Decrypt(t.Context(), u.key, &client.Request{BGV: []*rlwe.Ciphertext{ct}, Coefficients: 33})
	refused(t, err, lodge.Invalid, "33 coefficients")
	for what, q := range map[string]*coordinatorv1.JobRequest{
		"a rotation not of the ring":      {Kind: jobv1.Kind_KIND_KEYS, Params: bgvSet, Threshold: 1, Galois: []uint32{65}},
		"rotations of LWE keys":           {Kind: jobv1.Kind_KIND_KEYS, Params: set, Threshold: 1, Galois: []uint32{3}},
		"masks of the paper":              {Kind: jobv1.Kind_KIND_MASKS, Epoch: u.key.Epoch, Count: 3, Group: []uint32{0, 1}, Form: jobv1.MaskForm_MASK_FORM_PAPER},
		"masks for another set":           {Kind: jobv1.Kind_KIND_MASKS, Epoch: u.key.Epoch, Params: set, Count: 3, Group: []uint32{0, 1}, Form: jobv1.MaskForm_MASK_FORM_EXACT},
		"keys without an honest majority": {Kind: jobv1.Kind_KIND_KEYS, Params: bgvSet, Threshold: 2},
	} {
		if j := w.submit(q); j.GetState() != jobv1.JobState_JOB_STATE_FAILED || j.GetFailure().GetOutcome() != "refused" {
			t.Errorf("%s: %v", what, j)
		}
	}
	w.masks(u.key.Epoch, 3, "exact", 0, 1)
	encoded := encodedBGV(t, u, ct)
	for what, x := range map[string]struct {
		change func(*thresholdv1.DecryptHeader)
		bytes  func([]byte) []byte
		code   rpc.Code
		word   string
	}{
		"LWE form":                    {func(h *thresholdv1.DecryptHeader) { h.Form = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_LWE }, nil, rpc.Invalid, "form"},
		"ring form":                   {func(h *thresholdv1.DecryptHeader) { h.Form = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_RING }, nil, rpc.Invalid, "form"},
		"no coefficients":             {func(h *thresholdv1.DecryptHeader) { h.Coefficients = 0 }, nil, rpc.Invalid, "coefficients"},
		"too many":                    {func(h *thresholdv1.DecryptHeader) { h.Coefficients = 33 }, nil, rpc.Invalid, "coefficients"},
		"a level that does not exist": {func(h *thresholdv1.DecryptHeader) { h.Level = 3 }, nil, rpc.Invalid, "level 3"},
		"another level":               {func(h *thresholdv1.DecryptHeader) { h.Level = 1 }, nil, rpc.TooLarge, "bytes"},
		"paper":                       {func(h *thresholdv1.DecryptHeader) { h.Masks = jobv1.MaskForm_MASK_FORM_PAPER }, nil, rpc.Invalid, "paper"},
		"flooding and coefficients":   {func(h *thresholdv1.DecryptHeader) { h.Flooding = true }, nil, rpc.Invalid, "coefficients"},
		"flooded low":                 {func(h *thresholdv1.DecryptHeader) { h.Flooding, h.Coefficients, h.Level = true, 0, 0 }, nil, rpc.Invalid, "level 0"},
		"flooded masks": {
			func(h *thresholdv1.DecryptHeader) {
				h.Flooding, h.Coefficients, h.Masks = true, 0, jobv1.MaskForm_MASK_FORM_EXACT
			}, nil, rpc.Invalid, "no masks",
		},
		"level byte": {nil, func(b []byte) []byte { b[0] = 1; return b }, rpc.BadCiphertext, "level 1"},
		"scale":      {nil, func(b []byte) []byte { clear(b[1:5]); return b }, rpc.BadCiphertext, "scale"},
		"residue": {nil, func(b []byte) []byte {
			for i := range 8 {
				b[5+i] = 0xff
			}
			return b
		}, rpc.BadCiphertext, "not valid under"},
		"short":    {nil, func(b []byte) []byte { return b[:len(b)-1] }, rpc.Invalid, "bytes"},
		"trailing": {nil, func(b []byte) []byte { return append(b, 0) }, rpc.TooLarge, "bytes"},
	} {
		b := slices.Clone(encoded)
		if x.bytes != nil {
			b = x.bytes(b)
		}
		_, err := w.rawOf(t.Context(), 0, u.key, b, func(h *thresholdv1.DecryptHeader) {
			h.Form, h.Level = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_BGV, uint32(u.key.BGV().MaxLevel())
			if x.change != nil {
				x.change(h)
			}
		})
		e := rpc.FromError(err)
		if err == nil || e.Code != x.code {
			t.Errorf("%s: %v, want %s", what, err, x.code)
			continue
		}
		refused(t, err, lodge.Code(x.code), x.word)
	}
	_, err = w.raw(t.Context(), 0, lweKey, c, func(h *thresholdv1.DecryptHeader) { h.Flooding = true })
	refused(t, err, lodge.Invalid, "without flooding")
	_, err = w.raw(t.Context(), 0, lweKey, c, func(h *thresholdv1.DecryptHeader) { h.Form = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_BGV })
	refused(t, err, lodge.Invalid, "form")
}

func encodedBGV(t *testing.T, u *bgvUser, ct *rlwe.Ciphertext) []byte {
	t.Helper()
	x, err := u.key.BGV().FromLattigo(ct)
	if err != nil {
		t.Fatal(err)
	}
	return u.key.BGV().EncodeCiphertext(x)
}

// Parties that receive different requests for BGV ciphertexts do not answer. Two concurrent
// requests for one ciphertext end with the same answer.
func TestFloodingTogether(t *testing.T) {
	w := newWorld(t, 3, floods, bgvSet)
	u := w.user(w.bgvKeys(bgvSet, 1))
	want := u.values(8)
	ct := u.encrypt(want, true)
	encoded := encodedBGV(t, u, ct)
	id := make([]byte, 16)
	id[0] = 1
	errs := make([]error, 2)
	var group sync.WaitGroup
	for party := range errs {
		group.Go(func() {
			_, errs[party] = w.rawOf(context.Background(), party, u.key, encoded, func(h *thresholdv1.DecryptHeader) {
				h.Form, h.Level, h.RequestId = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_BGV, uint32(u.key.BGV().MaxLevel()), id
				if party == 0 {
					h.Flooding, h.Coefficients = true, 0
				}
			})
		})
	}
	group.Wait()
	for party, err := range errs {
		if e := rpc.FromError(err); err == nil || e.Code != rpc.PinMismatch && e.Code != rpc.Unavailable {
			t.Errorf("party %d: %v", party, err)
		}
	}
	results := make([]*client.Result, 4)
	for i := range results {
		group.Go(func() {
			for begun := time.Now(); results[i] == nil && time.Since(begun) < time.Minute; { // another request may run
				r := &client.Request{BGV: []*rlwe.Ciphertext{ct}, Flooding: true, Quorum: []int{0, 1}}
				out, err := w.vouched(u.key, r)
				if e := lodge.FromError(err); err != nil && e.Code != lodge.Busy && e.Code != lodge.Unavailable {
					t.Error(err)
					return
				}
				results[i] = out
			}
		})
	}
	group.Wait()
	if slices.Contains(results, nil) {
		t.Fatal("not all requests have an answer")
	}
	for _, r := range results[1:] {
		if !slices.EqualFunc(r.Answers.Parts, results[0].Answers.Parts, slices.Equal[[]byte]) {
			t.Error("different answers")
		}
	}
}

// Provenance for ciphertexts under masks is not valid for flooding.
func TestFloodingProvenance(t *testing.T) {
	public, private, _ := ed25519.GenerateKey(nil)
	w := newWorld(t, 3, func(i int, f *config.PartyFile) {
		floods(i, f)
		f.Threshold.Attesters = []config.Attester{{Name: "pipeline", Key: hex.EncodeToString(public)}}
		f.Threshold.Rules[0].Provenance = []string{"pipeline"}
	}, bgvSet)
	u := w.user(w.bgvKeys(bgvSet, 1))
	want := u.values(9)
	ct := u.encrypt(want, true)
	masked := &client.Request{BGV: []*rlwe.Ciphertext{ct}, Coefficients: 32}
	if err := masked.Sign(u.key, "pipeline", "add", private); err != nil {
		t.Fatal(err)
	}
	r := &client.Request{BGV: []*rlwe.Ciphertext{ct}, Flooding: true, Quorum: []int{0, 1}, Attester: "pipeline", Circuit: "add", Signature: masked.Signature}
	_, err := w.app.Decrypt(t.Context(), u.key, r)
	refused(t, err, lodge.Code(rpc.PolicyRefused), "has not signed")
	if err := r.Sign(u.key, "pipeline", "add", private); err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.Decrypt(t.Context(), u.key, r); err != nil {
		t.Error(err)
	}
}

// A rule's total counts all coefficients of a ciphertext that is decrypted with flooding, in
// addition to those opened under masks.
func TestFloodingTotal(t *testing.T) {
	w := newWorld(t, 3, func(i int, f *config.PartyFile) {
		floods(i, f)
		f.Threshold.Rules[0].MaxTotal = 70
	}, bgvSet)
	u := w.user(w.bgvKeys(bgvSet, 1))
	w.masks(u.key.Epoch, 10, "exact", 0, 1)
	want := u.values(4)
	for range 2 { // 32 coefficients each
		u.flooded(want, u.encrypt(want, true), 0, 1)
	}
	ct := u.encrypt(want, false)
	_, err := w.vouched(u.key, &client.Request{BGV: []*rlwe.Ciphertext{ct}, Flooding: true, Quorum: []int{0, 1}})
	refused(t, err, lodge.Burnt, "its total is 70")
	w.opens(u.key, &client.Request{BGV: []*rlwe.Ciphertext{ct}, Coefficients: 6, Quorum: []int{0, 1}}, want[:6])
	_, err = w.vouched(u.key, &client.Request{BGV: []*rlwe.Ciphertext{u.encrypt(want, false)}, Coefficients: 1, Quorum: []int{0, 1}})
	refused(t, err, lodge.Burnt, "its total is 70")
}
