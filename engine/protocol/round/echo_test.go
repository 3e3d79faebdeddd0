package round

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"
)

// signers are the Signatures of one party among those that have these keys.
type signers struct {
	self Party
	keys []ed25519.PrivateKey
}

func (s signers) message(b Signed) []byte {
	h := Hash("test", Uint(uint64(b.From)), Uint(uint64(b.Round)), []byte(b.Name), b.Transcript[:], b.Digest[:])
	return h[:]
}

func (s signers) Size() int            { return ed25519.SignatureSize }
func (s signers) Sign(b Signed) []byte { return ed25519.Sign(s.keys[b.From], s.message(b)) }
func (s signers) Verify(b Signed, signature []byte) bool {
	return ed25519.Verify(s.keys[b.From].Public().(ed25519.PublicKey), s.message(b), signature)
}

// echoes are the checks of n parties of a round in which each has sent a broadcast.
func echoes(n int) []echo {
	keys := make([]ed25519.PrivateKey, n)
	for p := range keys {
		keys[p] = ed25519.NewKeyFromSeed(append(make([]byte, 31), byte(p)))
	}
	all := make([]echo, n)
	for p := range all {
		s := Session{ID: Hash("session"), Self: Party(p), Parties: n, Signatures: signers{Party(p), keys}, Nonces: make([]Digest, n)}
		e := echo{session: s, broadcasts: broadcasts{}, round: 3, transcript: NewTranscript(s.ID, n)}
		for from := range Party(n) {
			d := Hash("broadcast", Uint(uint64(from)))
			e.broadcasts.set(n, "name", from, d, nil)
			if from != Party(p) {
				e.broadcasts.set(n, "name", from, d, s.Signatures.Sign(e.signed(from, "name", d)))
			}
		}
		all[p] = e
	}
	return all
}

// Signed reports name who cheats, whatever is reported.
func TestEchoNamesWithSignatures(t *testing.T) {
	other := Hash("another version")
	const digest = len(Digest{})
	type verdict struct {
		blamed Party
		proof  bool // the conflict has two signatures of the blamed party
	}
	for name, test := range map[string]struct {
		send   func(all []echo)
		report func(all []echo, reports [][]byte)
		want   map[Party]verdict // at the others
	}{
		"two versions": {
			send: func(all []echo) {
				all[1].broadcasts.set(4, "name", 3, other, all[3].session.Signatures.Sign(all[3].signed(3, "name", other)))
			},
			want: map[Party]verdict{0: {3, true}, 1: {3, true}, 2: {3, true}},
		},
		"an invented report": {
			report: func(_ []echo, reports [][]byte) { copy(reports[3][2*(digest+ed25519.SignatureSize):], other[:]) },
			want:   map[Party]verdict{0: {3, false}, 1: {3, false}, 2: {3, false}},
		},
		"a report of no broadcast": {
			report: func(_ []echo, reports [][]byte) {
				clear(reports[3][digest+ed25519.SignatureSize:][:digest+ed25519.SignatureSize])
			},
			want: map[Party]verdict{0: {3, false}, 1: {3, false}, 2: {3, false}},
		},
		"another version of the reporter's broadcast": {
			report: func(all []echo, reports [][]byte) {
				at := 3 * (digest + ed25519.SignatureSize)
				copy(reports[3][at:], other[:])
				copy(reports[3][at+digest:], all[3].session.Signatures.Sign(all[3].signed(3, "name", other)))
			},
			want: map[Party]verdict{0: {3, true}, 1: {3, true}, 2: {3, true}},
		},
		"a signature of another round": {
			report: func(all []echo, reports [][]byte) {
				s := all[0].signed(0, "name", other)
				s.Round++
				at := digest + ed25519.SignatureSize
				copy(reports[3], other[:])
				copy(reports[3][digest:at], all[0].session.Signatures.Sign(s))
			},
			want: map[Party]verdict{0: {3, false}, 1: {3, false}, 2: {3, false}},
		},
		"a signature after another transcript": {
			report: func(all []echo, reports [][]byte) {
				s := all[0].signed(0, "name", other)
				s.Transcript = Hash("another")
				copy(reports[3], other[:])
				copy(reports[3][digest:], all[0].session.Signatures.Sign(s))
			},
			want: map[Party]verdict{0: {3, false}, 1: {3, false}, 2: {3, false}},
		},
		"a report without the last byte": {
			report: func(_ []echo, reports [][]byte) { reports[3] = reports[3][:len(reports[3])-1] },
			want:   map[Party]verdict{0: {3, false}, 1: {3, false}, 2: {3, false}},
		},
		"nothing": {},
	} {
		all := echoes(4)
		if test.send != nil {
			test.send(all)
		}
		reports := make([][]byte, len(all))
		for p := range all {
			reports[p] = all[p].report()
		}
		if test.report != nil {
			test.report(all, reports)
		}
		for p := range Party(3) {
			err := all[p].compare(func(from Party) []byte { return reports[from] })
			want, cheated := test.want[p]
			if !cheated {
				if err != nil {
					t.Errorf("%s: party %d: %v", name, p, err)
				}
				continue
			}
			var blame *Blame
			if !errors.As(err, &blame) || blame.Party != want.blamed {
				t.Errorf("%s: party %d: got %v, want blame of party %d", name, p, err, want.blamed)
				continue
			}
			var abort *Abort
			if proof := errors.As(err, &abort) && proves(all[p].session.Signatures, abort.Conflicts[0], want.blamed); proof != want.proof {
				t.Errorf("%s: party %d: proof %v, want %v", name, p, proof, want.proof)
			}
		}
	}
}

// proves reports whether a conflict has two versions that p has signed.
func proves(s Signatures, c Conflict, p Party) bool {
	signed := Signed{From: p, Round: c.Round, Name: c.Name, Transcript: c.Transcript, Digest: c.Seen}
	if c.About != p || c.Seen == c.Reported || !s.Verify(signed, c.SeenSignature) {
		return false
	}
	signed.Digest = c.Reported
	return s.Verify(signed, c.ReportedSignature)
}

// A report that omits a broadcast or covers other broadcasts is malformed.
func TestReportsMustCoverTheirNames(t *testing.T) {
	names := []string{"a", "b"}
	about := Hash("lodge echo names", []byte("a"), []byte("b"))
	sent := append(make([]byte, 2*3*(32+64)), about[:]...)
	if list, err := Reports(sent, names, 3, 64); err != nil || len(list) != 6 || list[4].Name != "b" || list[4].About != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	other := Hash("lodge echo names", []byte("a"), []byte("c"))
	for what, b := range map[string][]byte{
		"nothing":     nil,
		"names alone": about[:],
		"one less":    append(make([]byte, 5*(32+64)), about[:]...),
		"one more":    append(make([]byte, 7*(32+64)), about[:]...),
		"other names": append(make([]byte, 6*(32+64)), other[:]...),
		"no names":    make([]byte, len(sent)),
	} {
		if _, err := Reports(b, names, 3, 64); err == nil {
			t.Errorf("%s is a report", what)
		}
	}
}

// Before the session has its final ID, an honest party may have signed two versions: one before and
// one after a restart.
func TestEchoOfNoncesSuspects(t *testing.T) {
	all := echoes(3)
	other := Hash("another nonce")
	for p := range all {
		all[p].session.Nonces = nil
	}
	all[1].broadcasts.set(3, "name", 2, other, all[2].session.Signatures.Sign(all[2].signed(2, "name", other)))
	err := all[0].compare(func(from Party) []byte { return all[from].report() })
	var abort *Abort
	if !errors.As(err, &abort) || errors.As(err, new(*Blame)) || !slices.Equal(abort.Suspects, []Party{1, 2}) {
		t.Errorf("got %v", err)
	}
}

// In its echo every party reports each broadcast with the signature that its sender gave it, its
// own included.
func TestEchoReportsSignatures(t *testing.T) {
	const n = 3
	keys := echoes(n)[0].session.Signatures.(signers).keys
	machines := make([]*Machine[string], n)
	for p := range machines {
		s := Session{ID: Hash("session"), Self: Party(p), Parties: n, Signatures: signers{Party(p), keys}, Nonces: make([]Digest, n)}
		machines[p] = machine(t, s, two{s}, Broadcast("first", []byte{byte(p)}))
	}
	for chain := range 2 { // two rounds of broadcasts, so that round numbers are not those of a new chain
		signed := make([]Signed, n)
		for p, m := range machines {
			out := m.Outgoing()[0]
			signed[p] = Signed{From: Party(p), Round: out.Round, Name: out.Name, Transcript: m.Transcript(), Digest: out.Body.(Hashed).Digest()}
			pass(t, machines, Party(p), out, signers{Party(p), keys}.Sign(signed[p]))
		}
		for _, m := range machines {
			if err := m.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for p, m := range machines {
			out := m.Outgoing()[0]
			frame, err := out.Body.Frame(0)
			if err != nil || out.Name != EchoName {
				t.Fatalf("%s, %v", out.Name, err)
			}
			list, err := Reports(frame, []string{signed[0].Name}, n, ed25519.SignatureSize)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				if want := signed[r.About]; r.Digest != want.Digest || !(signers{0, keys}).Verify(want, r.Signature) {
					t.Errorf("round %d: the echo of party %d has another digest or signature of party %d", chain, p, r.About)
				}
			}
			pass(t, machines, Party(p), out, nil)
		}
		for _, m := range machines {
			if err := m.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// two is a round that sends a second broadcast when all first broadcasts have arrived.
type two struct{ Session }

func (r two) Wants() []Want { return r.Each(Want{Name: "first", MaxBytes: 1, Broadcast: true}) }
func (r two) Step(context.Context, Inbox) (Transition[string], error) {
	return Next(Round[string](last(r)), Broadcast("second", []byte{byte(r.Self)})), nil
}

type last struct{ Session }

func (r last) Wants() []Want                                           { return r.Each(Want{Name: "second", MaxBytes: 1, Broadcast: true}) }
func (r last) Step(context.Context, Inbox) (Transition[string], error) { return Done("done"), nil }

// pass delivers a message of one frame to all others.
func pass(t *testing.T, machines []*Machine[string], from Party, out Outgoing, signature []byte) {
	t.Helper()
	frame, err := out.Body.Frame(0)
	if err != nil {
		t.Fatal(err)
	}
	for p, m := range machines {
		if Party(p) == from {
			continue
		}
		in := Incoming{Round: out.Round, From: from, Name: out.Name, Last: true, Payload: frame, Signature: signature}
		if err := m.Deliver(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
}
