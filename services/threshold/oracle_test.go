package threshold_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	client "github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/lwe"
	mk "github.com/lodge-mpc/lodge/engine/multikey"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// A client that can have ciphertexts of its own choice decrypted can read the key. The attacks
// below run against real parties over TLS. They succeed under any_ciphertexts, which documents the
// meaning of the permission, and fail under every other rule.

// probe returns the ring ciphertext (a = -Q/4, b = 0). The phase of its coefficient k is Q/4 z_k,
// so message k is 4 z_k modulo 16.
func probe(s *lwe.Scheme) *lwe.Ring {
	c := s.NewRing()
	c.A[0] = s.Q - s.Q/4
	return c
}

// secretOf computes z, modulo Q, from the messages of probe.
func secretOf(s *lwe.Scheme, messages []uint64) ([]uint64, bool) {
	z := make([]uint64, len(messages))
	for i, m := range messages {
		switch m {
		case 0:
		case 4:
			z[i] = 1
		case 12:
			z[i] = s.Q - 1
		default:
			return nil, false
		}
	}
	return z, true
}

// decryptAlone decrypts the first messages of a ring ciphertext with the secret z, without any
// party.
func decryptAlone(s *lwe.Scheme, z []uint64, c *lwe.Ring, n int) (out []uint64) {
	mod, x := s.Modulus(), s.NewLWE()
	for k := range n {
		s.Extract(x, c, k)
		out = append(out, s.Decode(mod.Sub(x.B, s.Dot(x.A, z)), lwe.Plain))
	}
	return out
}

// attested replaces the rules of App by one that requires provenance signed by an attester.
func attested(public ed25519.PublicKey) func(int, *config.PartyFile) {
	return func(_ int, f *config.PartyFile) {
		f.Threshold.Attesters = []config.Attester{{Name: "evaluator", Key: hex.EncodeToString(public)}}
		f.Threshold.Rules = []config.DecryptRule{
			{Client: devnet.App, Provenance: []string{"evaluator"}, MessagesPerHour: 1 << 20, MaxMessages: 1 << 16, AllowMultikey: true},
		}
	}
}

// Under any_ciphertexts, one request that opens one ring ciphertext reveals the whole secret of
// threshold keys. The attacker can then decrypt every ciphertext under the keys. The audit log, the
// total and the rules show this.
func TestReadTheKeyInOneRequest(t *testing.T) {
	const total = 300
	w := newWorld(t, 3, func(_ int, f *config.PartyFile) { f.Threshold.Rules[0].MaxTotal = total })
	epoch := w.keys(1)
	w.masks(epoch, 600, "exact", 0, 1)
	k, public := w.key(epoch)
	s := k.Scheme()
	opened := w.readTheKey(k, public)

	// The client gets at most its total, also after a restart.
	_, err := w.app.Decrypt(t.Context(), k, ring(w.encrypt(k, public, want...), total-s.N()+1, 0, 1))
	refused(t, err, lodge.Burnt, "its total is 300")
	w.opens(k, ring(probe(s), s.N(), 0, 1), opened) // a repeat is not counted
	for i := range 2 {
		w.running[i]()
		w.start(i, func(_ int, f *config.PartyFile) { f.Threshold.Rules[0].MaxTotal = total })
	}
	_, err = w.app.Decrypt(t.Context(), k, ring(w.encrypt(k, public, want...), total-s.N()+1, 0, 1))
	refused(t, err, lodge.Burnt, "its total is 300")
	w.opens(k, ring(w.encrypt(k, public, want...), len(want), 0, 1), want)
	w.notes(0, "any_ciphertexts: this client can read the key", "256 of 300 messages of its total", "265 of 300 messages")
}

// readTheKey reads the secret with one request, and checks that it decrypts other parties'
// ciphertexts. It returns the opened messages.
func (w *world) readTheKey(k *client.Key, public *lwe.PublicKey) []uint64 {
	w.Helper()
	s := k.Scheme()
	out, err := w.app.Decrypt(w.Context(), k, ring(probe(s), s.N(), 0, 1))
	if err != nil {
		w.Fatal(err)
	}
	z, ok := secretOf(s, out.Messages)
	if !ok {
		w.Fatalf("the messages do not encode a secret: %v", out.Messages)
	}
	for range 5 {
		messages := make([]uint64, s.N())
		for i := range messages {
			messages[i] = uint64(i*i+i/7) % s.P
		}
		if got := decryptAlone(s, z, w.encrypt(k, public, messages...), len(messages)); !slices.Equal(got, messages) {
			w.Fatal("the recovered secret does not decrypt")
		}
	}
	return out.Messages
}

// The same attack with the default set: one request with 2,048 messages.
func TestReadTheKeyOfTheDefaultSet(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes keys of the default set")
	}
	w := newWorld(t, 3, nil, lwe.Default)
	epoch := w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: lwe.Default, Threshold: 1}).GetEpoch()
	w.masks(epoch, 2048, "exact", 0, 1)
	k, public := w.key(epoch)
	if n := len(w.readTheKey(k, public)); n != 2048 {
		t.Errorf("%d messages", n)
	}
}

// notes checks that the audit log of a party contains entries of decryptions with these texts.
func (w *world) notes(party int, says ...string) {
	w.Helper()
	f, err := config.LoadParty(w.net.Parties[party])
	if err != nil {
		w.Fatal(err)
	}
	entries, err := audit.Tail(f.AuditDir, 100)
	if err != nil {
		w.Fatal(err)
	}
	var notes []string
	for _, e := range entries {
		if e.Event == audit.Decrypted {
			notes = append(notes, e.Note)
		}
	}
	for _, want := range says {
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, want) }) {
			w.Errorf("party %d: no decryption is noted with %q: %q", party, want, notes)
		}
	}
}

// The attack needs provenance signed by the attester, which it does not get, and an approval is for
// one request only.
func TestReadTheKeyNeedsAWord(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 3, func(i int, f *config.PartyFile) {
		attested(public)(i, f)
		f.Threshold.Rules = append(f.Threshold.Rules, config.DecryptRule{Client: devnet.Operator, Approvals: 1, MessagesPerHour: 1000, MaxMessages: 1000})
		f.Clients[2].Permissions = append(f.Clients[2].Permissions, config.PermDecrypt)
		f.Clients[1].Permissions = append(f.Clients[1].Permissions, config.PermApprove)
	})
	epoch := w.keys(1)
	w.masks(epoch, 600, "exact", 0, 1)
	k, pk := w.key(epoch)
	s := k.Scheme()
	attack := ring(probe(s), s.N(), 0, 1)
	_, err = w.app.Decrypt(t.Context(), k, attack)
	refused(t, err, lodge.PolicyRefused, "must be signed")
	honest := ring(w.encrypt(k, pk, want...), len(want), 0, 1)
	if err := honest.Sign(k, "evaluator", "none", private); err != nil {
		t.Fatal(err)
	}
	w.opens(k, honest, want)
	attack.Attester, attack.Circuit, attack.Signature = honest.Attester, honest.Circuit, honest.Signature
	_, err = w.app.Decrypt(t.Context(), k, attack)
	refused(t, err, lodge.PolicyRefused, "has not signed")
	_, err = w.as(devnet.Operator).Decrypt(t.Context(), k, ring(probe(s), s.N(), 0, 1))
	refused(t, err, "approval_needed", "1 other clients must approve")
}

// A rule without provenance, approvals and any_ciphertexts allows no decryption, even in a
// configuration that was not loaded from a file and therefore not validated.
func TestUnguardedRuleDecryptsNothing(t *testing.T) {
	w := newWorld(t, 3, func(_ int, f *config.PartyFile) {
		f.Threshold.Rules = []config.DecryptRule{{Client: devnet.App, MessagesPerHour: 1000, MaxMessages: 1000}}
	})
	epoch := w.keys(1)
	w.masks(epoch, 600, "exact", 0, 1)
	k, _ := w.key(epoch)
	_, err := w.app.Decrypt(t.Context(), k, ring(probe(k.Scheme()), k.Scheme().N(), 0, 1))
	refused(t, err, lodge.PolicyRefused, "not valid: provenance: missing")
}

// probes returns ciphertexts under one party's keys, each with one word of a quarter of the torus:
// the phase of ciphertext i is -1/8 + z_i/4, so bit i is z_i.
func probes(s *mk.Scheme, key mk.KeyID) (list []*mk.Ciphertext) {
	for i := range s.Dim {
		c := &mk.Ciphertext{Parts: []mk.Part{{Key: key, A: make([]uint32, s.Dim)}}, B: 1<<32 - 1<<29}
		c.Parts[0].A[i] = 1 << 30
		list = append(list, c)
	}
	return list
}

// Under any_ciphertexts, decrypting n ciphertexts of one word each reveals the secret of a party's
// own multi-key keys. Under other rules they need provenance signed by an attester. The total
// counts under the party's own keys.
func TestReadAKeyByOneWord(t *testing.T) {
	o := newOwners(t, 2, func(_ int, f *config.PartyFile) { f.Threshold.Rules[0].MaxTotal = 300 })
	dim := o.scheme.Dim
	o.masks(o.group.Epoch, 700, "exact", 0, 1)
	out, err := o.app.Decrypt(t.Context(), o.fresh(), o.request(probes(o.scheme, o.ids[0])...))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 { // the client alone reads ciphertexts that the party encrypts for others
		bit := i*i%7 < 3
		c := o.encrypt(0, bit)
		phase := c.B
		for j, z := range out.Messages {
			phase += c.Parts[0].A[j] * uint32(z)
		}
		if (int32(phase) > 0) != bit {
			t.Fatalf("the recovered secret does not decrypt bit %d", i)
		}
	}
	o.notes(0, "any_ciphertexts: this client can read the key")
	var more []*mk.Ciphertext
	for range 300 - dim + 1 {
		more = append(more, o.encrypt(0, true))
	}
	_, err = o.app.Decrypt(t.Context(), o.fresh(), o.request(more...))
	refused(t, err, lodge.Burnt, "its total is 300")
	o.opens(o.fresh(), o.request(o.encrypt(1, true)), []uint64{1}) // another party's keys have a separate total
}

// The same attack under a rule with an attester is refused.
func TestReadAKeyByOneWordNeedsAWord(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	o := newOwners(t, 2, attested(public))
	o.masks(o.group.Epoch, uint64(o.scheme.Dim), "exact", 0, 1)
	_, err = o.app.Decrypt(t.Context(), o.fresh(), o.request(probes(o.scheme, o.ids[0])...))
	refused(t, err, lodge.PolicyRefused, "must be signed")
}

// A total belongs to the keys: new shares do not start another total.
func TestTotalAcrossReshare(t *testing.T) {
	w := newWorld(t, 3, func(_ int, f *config.PartyFile) { f.Threshold.Rules[0].MaxTotal = 10 })
	first := w.keys(1)
	w.masks(first, 20, "exact", 0, 1)
	k, public := w.key(first)
	w.opens(k, ring(w.encrypt(k, public, want...), 9, 0, 1), want)
	second := w.newShares(first, 1, 0, 1, 2)
	w.masks(second, 20, "exact", 0, 1)
	moved, err := w.app.Key(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.app.Decrypt(t.Context(), moved, ring(w.encrypt(moved, public, 1, 2), 2, 0, 1))
	refused(t, err, lodge.Burnt, "its total is 10")
	w.opens(moved, ring(w.encrypt(moved, public, 5), 1, 0, 1), []uint64{5})
}

// A party whose store was restored from a backup counts the total as used up, because it does not
// know which messages were decrypted since the backup.
func TestTotalAfterRestore(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch := w.keys(1)
	w.masks(epoch, 20, "exact", 0, 2)
	w.masks(epoch, 20, "exact", 0, 1)
	k, public := w.key(epoch)
	w.opens(k, ring(w.encrypt(k, public, 3), 1, 0, 2), []uint64{3})
	w.running[2]()
	restored := w.restored(2)
	w.start(2, func(_ int, f *config.PartyFile) { f.Vault.Dir = restored })
	w.opens(k, ring(w.encrypt(k, public, 4), 1, 0, 1), []uint64{4}) // by the other parties
	second := w.newShares(epoch, 1, 0, 1, 2)                        // because a restored store has no masks, and makes none under the old shares
	w.masks(second, 20, "exact", 0, 2)
	moved, err := w.app.Key(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.app.Decrypt(t.Context(), moved, ring(w.encrypt(moved, public, 3), 1, 0, 2))
	refused(t, err, lodge.Burnt, "restored from a backup")
}
