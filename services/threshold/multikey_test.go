package threshold_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	client "github.com/lodge-mpc/lodge/clients/go/threshold"
	mk "github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

const multikeySet = "insecure-M8-32"

// owners is a world whose parties have multi-key keys, and a group of all parties.
type owners struct {
	*world
	group  *client.Key
	scheme *mk.Scheme
	ids    []mk.KeyID          // the parties' first keys
	of     map[mk.KeyID]int    // owner of the keys
	dial   []*grpc.ClientConn  // as each party's own client
	whose  map[mk.KeyID]uint64 // versions of the keys
}

func newOwners(t testing.TB, n int, change func(i int, f *config.PartyFile)) *owners {
	t.Helper()
	o := &owners{of: map[mk.KeyID]int{}, whose: map[mk.KeyID]uint64{}}
	o.world = newWorldOf(t, devnet.Options{Parties: n, Params: []string{multikeySet}, Multikey: multikeySet, Dev: true, Insecure: true, MaxMemory: 2 << 30}, change)
	context, err := multikey.ContextOf(&config.Multikey{Set: multikeySet, Seed: config.StandardSeed})
	if err != nil {
		t.Fatal(err)
	}
	o.scheme = context.Scheme
	for p := range n {
		conn := o.connect(devnet.ClientName(p), p)
		t.Cleanup(func() { conn.Close() })
		o.dial = append(o.dial, conn)
		o.ids = append(o.ids, o.make(p))
	}
	epoch := o.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: multikeySet, Threshold: 1}).GetEpoch()
	if o.group, err = o.app.Key(t.Context(), epoch); err != nil {
		t.Fatal(err)
	}
	return o
}

// make makes keys at a party.
func (o *owners) make(p int) mk.KeyID {
	o.Helper()
	id := make([]byte, 16)
	rand.Read(id)
	r, err := multikeyv1.NewKeysServiceClient(o.dial[p]).MakeKeys(o.Context(), &multikeyv1.MakeKeysRequest{RequestId: id}, grpc.WaitForReady(true))
	if err != nil {
		o.Fatal(err)
	}
	key := mk.KeyID(r.GetKeys().GetKey())
	o.of[key], o.whose[key] = p, r.GetKeys().GetVersion()
	return key
}

// destroy destroys keys at a party.
func (o *owners) destroy(id mk.KeyID) {
	o.Helper()
	r := &multikeyv1.DestroyKeysRequest{Version: o.whose[id], Reason: "test"}
	if _, err := multikeyv1.NewKeysServiceClient(o.dial[o.of[id]]).DestroyKeys(o.Context(), r); err != nil {
		o.Fatal(err)
	}
}

// encrypt encrypts a bit under the newest keys of a party.
func (o *owners) encrypt(p int, bit bool) *mk.Ciphertext {
	o.Helper()
	q := &multikeyv1.EncryptRequest{Count: 1, Bits: []byte{0}}
	if bit {
		q.Bits[0] = 1
	}
	r, err := multikeyv1.NewKeysServiceClient(o.dial[p]).Encrypt(o.Context(), q)
	if err != nil {
		o.Fatal(err)
	}
	b, err := o.scheme.DecodeBatch(r.GetBatch())
	if err != nil {
		o.Fatal(err)
	}
	return b.Ciphertext(0)
}

// joint returns a ciphertext of a bit under the keys of several parties, without a gate: the first
// party's encryption of the bit plus encryptions of true by the others, minus the constant that
// these add.
func (o *owners) joint(bit bool, parties ...int) *mk.Ciphertext {
	o.Helper()
	c := o.encrypt(parties[0], bit)
	for _, p := range parties[1:] {
		x := o.encrypt(p, true)
		c.Parts, c.B = append(c.Parts, x.Parts...), c.B+x.B-1<<29
	}
	slices.SortFunc(c.Parts, func(a, b mk.Part) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	return c
}

func (o *owners) request(list ...*mk.Ciphertext) *client.Request {
	return &client.Request{Multikey: list, Owners: o.of}
}

// fresh returns the current state of the group and its stock.
func (o *owners) fresh() *client.Key {
	o.Helper()
	k, err := o.app.Key(o.Context(), o.group.Epoch)
	if err != nil {
		o.Fatal(err)
	}
	return k
}

func (o *owners) free(quorum ...int) uint64 {
	o.Helper()
	for _, m := range o.fresh().Masks {
		if slices.Equal(m.Quorum, quorum) {
			return m.Free
		}
	}
	return 0
}

// Ciphertexts are decrypted by the owners of the keys in them, for every set of owners, and by
// larger quorums. A repeated request gets the same answers and spends no masks, and other clients
// get no answer.
func TestMultikey(t *testing.T) {
	o := newOwners(t, 4, nil)
	if k := o.group; k.Multikey() == nil || k.Multikey().Name != multikeySet || k.Threshold != 1 || len(k.Holders) != 4 || k.Scheme() != nil || k.BGV() != nil {
		t.Fatalf("%+v", k)
	}
	o.masks(o.group.Epoch, 20, "exact", 0, 2)
	o.masks(o.group.Epoch, 20, "exact", 1, 2, 3)
	bits := []bool{true, false, false, true}
	for _, parties := range [][]int{{0, 2}, {3, 2, 1}, {1, 3}, {2}} {
		var list []*mk.Ciphertext
		var want []uint64
		for _, bit := range bits {
			list, want = append(list, o.joint(bit, parties...)), append(want, map[bool]uint64{true: 1}[bit])
		}
		k := o.fresh()
		out := o.opens(k, o.request(list...), want)
		for _, p := range parties {
			if !slices.Contains(out.Quorum, p) {
				t.Errorf("%v decrypt ciphertexts under the keys of %v", out.Quorum, parties)
			}
		}
		before := o.free(out.Quorum...)
		again := o.opens(o.fresh(), o.request(list...), want)
		if !slices.Equal(again.Quorum, out.Quorum) || !slices.EqualFunc(again.Answers.Parts, out.Answers.Parts, bytes.Equal) {
			t.Errorf("under the keys of %v: different answers to a repeated request", parties)
		}
		if after := o.free(out.Quorum...); after != before {
			t.Errorf("%d masks for the repeated request", before-after)
		}
	}
	if a, b := o.free(0, 2), o.free(1, 2, 3); a+b != 40-4*4 {
		t.Errorf("%d and %d masks are left", a, b)
	}
}

// Results of gates on ciphertexts of different parties, computed with the keys in their stores, are
// decrypted, also after the parties were restarted.
func TestMultikeyGates(t *testing.T) {
	o := newOwners(t, 2, nil)
	o.masks(o.group.Epoch, 50, "exact", 0, 1)
	type inputs struct{ a, b *mk.Ciphertext }
	var in []inputs
	for v := range 4 {
		in = append(in, inputs{o.encrypt(0, v&1 == 1), o.encrypt(1, v&2 == 2)})
	}
	e := mk.NewEvaluator(o.scheme)
	for p := range 2 {
		o.running[p]()
		if _, err := e.Add(o.stored(p), 2); err != nil {
			t.Fatal(err)
		}
		o.start(p, nil)
	}
	var list []*mk.Ciphertext
	var want []uint64
	for v, x := range in {
		for _, g := range mk.Gates() {
			c, err := e.Gate(t.Context(), 2, g, x.a, x.b, x.b)
			if err != nil {
				t.Fatal(err)
			}
			list, want = append(list, c), append(want, map[bool]uint64{true: 1}[g.Bit(v&1 == 1, v&2 == 2, v&2 == 2)])
		}
	}
	o.opens(o.fresh(), o.request(list...), want)
}

// stored reads the public keys of a stopped party.
func (o *owners) stored(p int) *mk.Keys {
	o.Helper()
	f, err := config.LoadParty(o.net.Parties[p])
	if err != nil {
		o.Fatal(err)
	}
	key, err := seal.LoadKey(f.Vault.KeyFile)
	if err != nil {
		o.Fatal(err)
	}
	v, err := vault.Open(f.Vault.Dir, key)
	if err != nil {
		o.Fatal(err)
	}
	defer v.Close()
	public, err := v.OpenMultikeyPublic(1)
	if err != nil {
		o.Fatal(err)
	}
	defer public.Close()
	header := make([]byte, mk.HeaderSize)
	if _, err := io.ReadFull(public, header); err != nil {
		o.Fatal(err)
	}
	in, err := o.scheme.Receive(multikey.OwnerInSeed, header)
	if err == nil {
		_, err = io.CopyN(io.Discard, public, int64(32*o.scheme.Chunks()))
	}
	for i := range o.scheme.Chunks() {
		chunk := make([]byte, o.scheme.ChunkSize(i))
		if err == nil {
			_, err = io.ReadFull(public, chunk)
		}
		if err == nil {
			err = in.Put(i, chunk)
		}
	}
	if err != nil {
		o.Fatal(err)
	}
	k, err := in.Finish(o.ids[p])
	if err != nil {
		o.Fatal(err)
	}
	return k
}

// heard waits until a party knows another party's keys.
func (o *owners) heard(p int, id mk.KeyID) {
	o.Helper()
	for {
		r, err := multikeyv1.NewRegistryServiceClient(o.dial[p]).ListPublished(o.Context(), &multikeyv1.ListPublishedRequest{})
		if err != nil {
			o.Fatal(err)
		}
		if slices.ContainsFunc(r.GetKeys(), func(k *multikeyv1.PublishedKey) bool { return bytes.Equal(k.GetKey(), id[:]) }) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ask sends a request only to party 0 of the quorum 0, 1, with a header that change may modify.
func (o *owners) ask(c *mk.Ciphertext, change func(*thresholdv1.DecryptHeader)) error {
	o.Helper()
	encoded := o.scheme.AppendCiphertext(nil, c)
	_, err := o.rawOf(o.Context(), 0, o.group, encoded, func(h *thresholdv1.DecryptHeader) {
		h.Form, h.Coefficients = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_MULTIKEY, 0
		for _, id := range c.Keys() {
			h.Multikey = append(h.Multikey, &thresholdv1.KeyOwner{Key: id[:], Owner: uint32(o.of[id])})
		}
		if change != nil {
			change(h)
		}
	})
	return err
}

func TestMultikeyRefusals(t *testing.T) {
	o := newOwners(t, 3, nil)
	o.masks(o.group.Epoch, 20, "exact", 0, 1)
	both, one, other := o.joint(true, 0, 1), o.encrypt(0, true), o.joint(true, 0, 2)
	unknown := both.Clone()
	unknown.Parts[1].Key[31] ^= 1
	o.heard(0, o.ids[1])
	place := func(h *thresholdv1.DecryptHeader, p int) *thresholdv1.KeyOwner {
		return h.GetMultikey()[slices.IndexFunc(h.GetMultikey(), func(x *thresholdv1.KeyOwner) bool { return int(x.GetOwner()) == p })]
	}
	for _, x := range []struct {
		name   string
		c      *mk.Ciphertext
		change func(*thresholdv1.DecryptHeader)
		code   lodge.Code
		says   string
	}{
		{"an owner that is not in the quorum", other, nil, "wrong_quorum", "party 2"},
		{"unknown keys", both, func(h *thresholdv1.DecryptHeader) { place(h, 0).Key[31] ^= 1 }, "unknown_key", "party 0 has no multi-key keys"},
		{"this party's keys as another's", both, func(h *thresholdv1.DecryptHeader) { place(h, 0).Owner = 1 }, "wrong_owner", "those of party 0"},
		{"another's keys as this party's", both, func(h *thresholdv1.DecryptHeader) { place(h, 1).Owner = 0 }, "wrong_owner", "those of party 1"},
		{"no keys", both, func(h *thresholdv1.DecryptHeader) { h.Multikey = nil }, lodge.Invalid, "0 keys"},
		{"keys out of order", both, func(h *thresholdv1.DecryptHeader) { slices.Reverse(h.Multikey) }, lodge.Invalid, "not in order"},
		{"a key given twice", both, func(h *thresholdv1.DecryptHeader) { h.Multikey[1] = h.GetMultikey()[0] }, lodge.Invalid, "not in order"},
		{"a malformed key identifier", both, func(h *thresholdv1.DecryptHeader) { h.Multikey[0].Key = h.GetMultikey()[0].GetKey()[1:] }, lodge.Invalid, "key 0"},
		{"too many keys", both, func(h *thresholdv1.DecryptHeader) {
			for range 33 {
				h.Multikey = append(h.Multikey, h.GetMultikey()[0])
			}
		}, lodge.Invalid, "35 keys"},
		{"fewer keys than in the ciphertext", both, func(h *thresholdv1.DecryptHeader) { h.Multikey = h.GetMultikey()[:1] }, "too_large", "1 ciphertexts"},
		{"more keys than in the ciphertext", one, func(h *thresholdv1.DecryptHeader) {
			h.Multikey = append(h.Multikey, &thresholdv1.KeyOwner{Key: bytes.Repeat([]byte{0xff}, 32), Owner: 1})
		}, lodge.Invalid, "bytes"},
		{"a ciphertext under other keys", unknown, func(h *thresholdv1.DecryptHeader) {
			for i, id := range both.Keys() {
				h.Multikey[i] = &thresholdv1.KeyOwner{Key: id[:], Owner: uint32(o.of[id])}
			}
		}, "malformed_ciphertext", "other keys"},
		{"another form", both, func(h *thresholdv1.DecryptHeader) { h.Form = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_LWE }, lodge.Invalid, "form"},
		{"flooding", both, func(h *thresholdv1.DecryptHeader) { h.Flooding = true }, lodge.Invalid, "flooding"},
		{"coefficients", both, func(h *thresholdv1.DecryptHeader) { h.Coefficients = 1 }, lodge.Invalid, "coefficients"},
		{"a level", both, func(h *thresholdv1.DecryptHeader) { h.Level = 1 }, lodge.Invalid, "levels"},
		{"the paper's form", both, func(h *thresholdv1.DecryptHeader) { h.Masks = jobv1.MaskForm_MASK_FORM_PAPER }, lodge.Invalid, "paper's form"},
		{"a quorum of one", one, func(h *thresholdv1.DecryptHeader) { h.Quorum = []uint32{0} }, "wrong_quorum", "1 parties"},
		{"another group", both, func(h *thresholdv1.DecryptHeader) { h.KeysDigest[0] ^= 1 }, "foreign_ciphertext", "the request names keys"},
	} {
		t.Run(x.name, func(t *testing.T) {
			digest := o.group.Digest
			refused(t, o.ask(x.c, x.change), x.code, x.says)
			o.group.Digest = digest
		})
	}
	o.destroy(o.ids[1])
	_, err := o.app.Decrypt(t.Context(), o.fresh(), o.request(both))
	refused(t, err, "retired_key", "version 1 of the multi-key keys of party 1")
	o.make(1)
	if _, err = o.app.Decrypt(t.Context(), o.fresh(), o.request(both)); err == nil {
		t.Error("decrypted under other keys")
	}
	j := o.submit(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_RESHARE, FromEpoch: o.group.Epoch, Threshold: 1})
	if f := j.GetFailure(); !strings.Contains(f.GetReason(), "has no shares") && !strings.Contains(f.GetReason(), "no honest majority") {
		t.Errorf("new shares of a group: %v", j)
	}
	if f := o.submit(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: multikeySet, Threshold: 2}).GetFailure(); !strings.Contains(f.GetReason(), "threshold of 2") {
		t.Errorf("a group with a threshold of 2: %v", f)
	}
	if f := o.submit(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: multikeySet, Threshold: 1, Galois: []uint32{3}}).GetFailure(); !strings.Contains(f.GetReason(), "automorphisms") {
		t.Errorf("a group with automorphisms: %v", f)
	}
	if f := o.submit(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_MASKS, Epoch: o.group.Epoch, Count: 1, Group: []uint32{0, 1}, Form: jobv1.MaskForm_MASK_FORM_PAPER}).GetFailure(); !strings.Contains(f.GetReason(), "paper's form") {
		t.Errorf("masks of the paper's form: %v", f)
	}
}

// A party that is down does not prevent decryption of ciphertexts that are not under its keys.
func TestMultikeyPartyDown(t *testing.T) {
	o := newOwners(t, 3, nil)
	o.masks(o.group.Epoch, 10, "exact", 0, 1)
	o.masks(o.group.Epoch, 10, "exact", 0, 1, 2)
	without, with := o.joint(true, 0, 1), o.joint(true, 1, 2)
	o.running[2]()
	o.app.Patience = 0
	o.opens(o.fresh(), o.request(without), []uint64{1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := o.app.Decrypt(ctx, o.fresh(), o.request(with))
	refused(t, err, lodge.Unavailable, "party 2, an owner of the ciphertexts")
}

// A party's rules apply to multi-key ciphertexts too, and must explicitly allow them.
func TestMultikeyPolicy(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	o := newOwners(t, 2, func(i int, f *config.PartyFile) {
		f.Threshold.Attesters = []config.Attester{{Name: "evaluator", Key: hex.EncodeToString(public)}}
		f.Threshold.Rules = []config.DecryptRule{
			{Client: devnet.App, MessagesPerHour: 3, MaxMessages: 2, AllowMultikey: true, Provenance: []string{"evaluator"}},
			{Client: devnet.ClientName(0), AnyCiphertexts: true, MessagesPerHour: 10, MaxMessages: 2},
		}
		for j := range f.Clients {
			f.Clients[j].Permissions = append(f.Clients[j].Permissions, config.PermDecrypt)
		}
	})
	o.masks(o.group.Epoch, 10, "exact", 0, 1)
	c := o.joint(true, 0, 1)
	signed := func(list ...*mk.Ciphertext) *client.Request {
		r := o.request(list...)
		if err := r.Sign(o.group, "evaluator", "and", private); err != nil {
			t.Fatal(err)
		}
		return r
	}
	_, err = o.app.Decrypt(t.Context(), o.fresh(), o.request(c))
	refused(t, err, "policy_refused", "must be signed")
	stolen := o.request(o.joint(false, 0, 1))
	r := signed(c)
	stolen.Attester, stolen.Circuit, stolen.Signature = r.Attester, r.Circuit, r.Signature
	_, err = o.app.Decrypt(t.Context(), o.fresh(), stolen)
	refused(t, err, "policy_refused", "has not signed")
	o.opens(o.fresh(), r, []uint64{1})
	_, err = o.app.Decrypt(t.Context(), o.fresh(), signed(c, o.joint(true, 0, 1), o.joint(true, 0, 1)))
	refused(t, err, "policy_refused", "3 messages")
	o.opens(o.fresh(), signed(o.joint(true, 0, 1), o.joint(false, 0, 1)), []uint64{1, 0})
	_, err = o.app.Decrypt(t.Context(), o.fresh(), signed(o.joint(true, 0, 1)))
	refused(t, err, lodge.RateLimited, "within the hour")

	private0 := o.connect(devnet.ClientName(0), 0)
	defer private0.Close()
	err = o.askAs(private0, c)
	refused(t, err, "policy_refused", "allow_multikey")
}

// askAs sends a request to a party as another client.
func (o *owners) askAs(conn *grpc.ClientConn, c *mk.Ciphertext) error {
	o.Helper()
	encoded := o.scheme.AppendCiphertext(nil, c)
	sum := decrypt.CiphertextsDigest(encoded, len(encoded))
	h := &thresholdv1.DecryptHeader{
		RequestId: bytes.Repeat([]byte{1}, 16), Epoch: o.group.Epoch, KeysDigest: o.group.Digest[:], Quorum: []uint32{0, 1}, Count: 1,
		Form: thresholdv1.CiphertextForm_CIPHERTEXT_FORM_MULTIKEY, CiphertextsDigest: sum[:],
	}
	for _, id := range c.Keys() {
		h.Multikey = append(h.Multikey, &thresholdv1.KeyOwner{Key: id[:], Owner: uint32(o.of[id])})
	}
	stream, err := thresholdv1.NewThresholdServiceClient(conn).Decrypt(o.Context(), grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	_ = stream.Send(&thresholdv1.DecryptRequest{Header: h}) // Recv returns the error
	_, err = stream.Recv()
	return err
}

// Answers can be encrypted to a recipient, who combines them.
func TestMultikeyRecipient(t *testing.T) {
	o := newOwners(t, 2, nil)
	o.masks(o.group.Epoch, 10, "exact", 0, 1)
	key, err := client.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	c := o.joint(true, 0, 1)
	r := o.request(c)
	r.Recipient = key.Public()
	out, err := o.app.Decrypt(t.Context(), o.fresh(), r)
	if err != nil || out.Messages != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	got, err := key.Open(out.Answers)
	if err != nil || !slices.Equal(got, []uint64{1}) {
		t.Errorf("%v, %v", got, err)
	}
	_, err = o.app.Decrypt(t.Context(), o.fresh(), o.request(c))
	refused(t, err, "already_delivered", "another client or recipient")
}
