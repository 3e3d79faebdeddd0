package tuples

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
)

// known waits until a party is acknowledged by a peer.
func (n *net3) known(by, party int) {
	n.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !n.nodes[party].service.Peers.knows(by); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			n.t.Fatalf("party %d does not acknowledge party %d", by, party)
		}
	}
}

// version returns a party's signed statement about its store for a peer.
func (n *net3) version(party, peer int) *tuplesv1.StoreVersion {
	n.t.Helper()
	v, err := n.nodes[party].service.Peers.version(peer)
	must(n.t, err)
	return v
}

// A version of a store is rejected unless its own party has signed it, unchanged, for this peer.
func TestForgedVersions(t *testing.T) {
	n := newNet(t)
	ctx := n.context(20 * time.Second)
	n.known(0, 1)
	n.known(0, 2)
	c := n.as("p1", 0)
	before := n.version(1, 0)
	_, foreign, err := ed25519.GenerateKey(nil)
	must(t, err)
	resigned := func(v *tuplesv1.StoreVersion, key ed25519.PrivateKey) *tuplesv1.StoreVersion {
		p := n.nodes[1].service.Peers
		x := peers.Version{ID: v.GetStoreId(), Incarnation: v.GetIncarnation(), Started: v.GetStarted().AsTime(), First: v.GetFirst(), Generation: v.GetGeneration()}
		v.Signature = ed25519.Sign(key, p.statement(1, 0, x))
		return v
	}
	change := func(f func(v *tuplesv1.StoreVersion)) *tuplesv1.StoreVersion {
		v := proto.Clone(before).(*tuplesv1.StoreVersion)
		f(v)
		return v
	}
	for name, v := range map[string]*tuplesv1.StoreVersion{
		"none":        nil,
		"empty":       {},
		"of party 2":  n.version(2, 0),
		"for party 2": n.version(1, 2),
		"other key":   resigned(change(func(*tuplesv1.StoreVersion) {}), foreign),
		"unsigned":    change(func(v *tuplesv1.StoreVersion) { v.Signature = nil }),
		"short":       change(func(v *tuplesv1.StoreVersion) { v.Signature = v.Signature[1:] }),
		"generation":  change(func(v *tuplesv1.StoreVersion) { v.Generation++ }),
		"first":       change(func(v *tuplesv1.StoreVersion) { v.First-- }),
		"time":        change(func(v *tuplesv1.StoreVersion) { v.Started = timestamppb.Now() }),
		"no time":     change(func(v *tuplesv1.StoreVersion) { v.Started = nil }),
		"not a time":  change(func(v *tuplesv1.StoreVersion) { v.Started.Nanos = -1 }),
		"store":       change(func(v *tuplesv1.StoreVersion) { v.StoreId[0]++ }),
		"incarnation": change(func(v *tuplesv1.StoreVersion) { v.Incarnation[0]++ }),
		"shifted fields": change(func(v *tuplesv1.StoreVersion) {
			v.StoreId = append(v.StoreId, v.Incarnation[0])
			v.Incarnation = v.Incarnation[1:]
		}),
		"long":      resigned(change(func(v *tuplesv1.StoreVersion) { v.StoreId = make([]byte, 17) }), n.nodes[1].signer),
		"backwards": resigned(change(func(v *tuplesv1.StoreVersion) { v.First = v.Generation + 1 }), n.nodes[1].signer),
	} {
		_, err := c.Acknowledge(ctx, &tuplesv1.AcknowledgeRequest{Store: v})
		if e := rpc.FromError(err); e == nil || e.Code != rpc.Invalid {
			t.Errorf("acknowledge, %s: %v", name, err)
		}
		if name == "backwards" {
			continue
		}
		_, err = c.Confirm(ctx, &tuplesv1.ConfirmRequest{Store: v})
		if e := rpc.FromError(err); e == nil || e.Code != rpc.Invalid {
			t.Errorf("confirm, %s: %v", name, err)
		}
	}
	// Repeating an earlier statement has no effect.
	n.nodes[1].fill(t, "later", 5, 32)
	for _, v := range []*tuplesv1.StoreVersion{n.version(1, 0), before, n.version(1, 0)} {
		r, err := c.Acknowledge(ctx, &tuplesv1.AcknowledgeRequest{Store: v})
		if err != nil || !r.GetAccepted() {
			t.Errorf("%v, %v", r, err)
		}
	}
}

// The signature of a store's version binds both parties' signing keys and every field of the
// version. It does not depend on other properties of the roster.
func TestStatementsBindEverything(t *testing.T) {
	v := peers.Version{ID: make([]byte, 16), Incarnation: make([]byte, 16), Started: time.Unix(1, 0), First: 3, Generation: 5}
	base := Peers{Keys: []ed25519.PublicKey{bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{3}, 32)}}
	seen := map[string]string{string(base.statement(0, 1, v)): "nothing"}
	for name, change := range map[string]func(party, peer *int, v *peers.Version){
		"party":       func(party, _ *int, _ *peers.Version) { *party = 2 },
		"peer":        func(_, peer *int, _ *peers.Version) { *peer = 2 },
		"both":        func(party, peer *int, _ *peers.Version) { *party, *peer = 1, 0 },
		"first":       func(_, _ *int, v *peers.Version) { v.First++ },
		"generation":  func(_, _ *int, v *peers.Version) { v.Generation++ },
		"started":     func(_, _ *int, v *peers.Version) { v.Started = v.Started.Add(1) },
		"store":       func(_, _ *int, v *peers.Version) { v.ID = append(make([]byte, 15), 1) },
		"incarnation": func(_, _ *int, v *peers.Version) { v.Incarnation = append(make([]byte, 15), 1) },
	} {
		party, peer, x := 0, 1, v
		change(&party, &peer, &x)
		s := string(base.statement(party, peer, x))
		if other, ok := seen[s]; ok {
			t.Errorf("another %s is signed as another %s", name, other)
		}
		seen[s] = name
	}
	moved := Peers{Keys: []ed25519.PublicKey{base.Keys[1], base.Keys[2], base.Keys[0]}}
	if !bytes.Equal(moved.statement(2, 0, v), base.statement(0, 1, v)) {
		t.Error("in another order it is another")
	}
}

// The confirmations of one reservation do not count for another one under the same id.
func TestAnAnswerIsOfItsDigest(t *testing.T) {
	p := &Peers{List: make([]rpc.PeerConn, 2)}
	p.start()
	said := &question{id: "r", digest: [32]byte{1}, done: make(chan struct{})}
	close(said.done)
	p.asked["r"] = said
	if err := p.confirmed(t.Context(), "r", [32]byte{1}); err != nil {
		t.Error(err)
	}
	refusal(t, p.confirmed(t.Context(), "r", [32]byte{2}), rpc.Conflict)
}

// Confirm reports the recorded reservations, but not to a store that has not been acknowledged.
func TestConfirm(t *testing.T) {
	n := newNet(t)
	ctx := n.context(20 * time.Second)
	n.known(0, 1)
	for i, id := range []string{"same", "withdrawn", "consumed", "erased"} {
		n.propose(reservation(id, uint64(10*i), 5), 0, 1, 2)
	}
	_, err := fetch(ctx, n.as("alice", 0), "consumed", 0)
	must(t, err)
	_, err = n.as("coordinator", 0).Withdraw(ctx, &tuplesv1.WithdrawRequest{Ids: []string{"withdrawn"}})
	must(t, err)
	_, err = n.as("coordinator", 0).Release(ctx, &tuplesv1.ReleaseRequest{Ids: []string{"erased"}, Discard: true})
	must(t, err)
	req := &tuplesv1.ConfirmRequest{Store: n.version(1, 0)}
	want := []tuplesv1.Answer{tuplesv1.Answer_ANSWER_SAME, tuplesv1.Answer_ANSWER_ENDED, tuplesv1.Answer_ANSWER_SAME, tuplesv1.Answer_ANSWER_ENDED,
		tuplesv1.Answer_ANSWER_UNKNOWN, tuplesv1.Answer_ANSWER_OTHER, tuplesv1.Answer_ANSWER_OTHER}
	for _, id := range []string{"same", "withdrawn", "consumed", "erased", "unknown", "same", "consumed"} {
		x, _ := n.nodes[1].vault.Reservation(id)
		digest := x.Digest[:]
		if len(req.Items) >= 5 {
			digest = nil
		}
		req.Items = append(req.Items, &tuplesv1.ConfirmRequest_Item{Id: id, Digest: digest})
	}
	r, err := n.as("p1", 0).Confirm(ctx, req)
	if err != nil || !r.GetAcknowledged() || len(r.GetAnswers()) != len(want) {
		t.Fatalf("%v, %v", r, err)
	}
	for i, a := range r.GetAnswers() {
		if a != want[i] {
			t.Errorf("%s: %s, want %s", req.GetItems()[i].GetId(), a, want[i])
		}
	}
	n.nodes[0].stop()
	n.start(n.nodes[0], nil)
	r, err = n.as("p1", 0).Confirm(ctx, req)
	if err == nil && r.GetAcknowledged() && len(r.GetAnswers()) == 0 || err != nil || !r.GetAcknowledged() && len(r.GetAnswers()) > 0 {
		t.Errorf("after a start: %v, %v", r, err)
	}
}

// quarantined says why a party is in quarantine.
func (n *net3) quarantined(party int) string {
	n.t.Helper()
	reason, err := n.nodes[party].vault.Quarantined()
	must(n.t, err)
	return reason
}

// A peer that lies about the versions it has seen cannot put a party into quarantine; it only keeps
// clients waiting. The honest ones are not in each other's way.
func TestALyingPeerCausesNoQuarantine(t *testing.T) {
	n := newNet(t)
	var mu sync.Mutex
	var heard []*tuplesv1.StoreVersion // of party 0, by party 2
	keep := func(v *tuplesv1.StoreVersion) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, v)
	}
	n.nodes[2].lie(func(r *tuplesv1.AcknowledgeRequest) (*tuplesv1.AcknowledgeResponse, error) {
		keep(r.GetStore())
		return &tuplesv1.AcknowledgeResponse{Accepted: true}, nil
	}, func(r *tuplesv1.ConfirmRequest) (*tuplesv1.ConfirmResponse, error) {
		keep(r.GetStore())
		out := &tuplesv1.ConfirmResponse{Acknowledged: true}
		for range r.GetItems() {
			out.Answers = append(out.Answers, tuplesv1.Answer_ANSWER_SAME)
		}
		return out, nil
	})
	n.propose(reservation("r", 0, 5), 0, 1, 2)
	for range 2 { // a long life of party 0, with a start in it
		_, err := fetch(n.context(15*time.Second), n.as("alice", 0), "r", 0)
		must(t, err)
		n.nodes[0].stop()
		n.start(n.nodes[0], nil)
	}
	n.known(1, 0)
	mu.Lock()
	lies := []*tuplesv1.StoreVersion{nil, {}, n.version(1, 2), n.version(2, 0), n.version(0, 1), n.version(0, 2)}
	for _, v := range heard {
		forged := proto.Clone(v).(*tuplesv1.StoreVersion)
		forged.Generation += 1000
		lies = append(lies, v, forged)
	}
	mu.Unlock()
	next := 0
	n.nodes[2].lie(func(*tuplesv1.AcknowledgeRequest) (*tuplesv1.AcknowledgeResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return &tuplesv1.AcknowledgeResponse{Reason: "you were put back", Seen: lies[next%len(lies)]}, nil
	}, func(*tuplesv1.ConfirmRequest) (*tuplesv1.ConfirmResponse, error) {
		return &tuplesv1.ConfirmResponse{}, nil
	})
	n.nodes[0].stop()
	n.start(n.nodes[0], nil)
	for range 3 * len(lies) {
		_ = n.nodes[0].service.Peers.introduce(n.context(5*time.Second), 2) // the result is checked below
	}
	if next < 3*len(lies) {
		t.Errorf("%d lies of %d were heard", next, 3*len(lies))
	}
	if why := n.quarantined(0); why != "" {
		t.Errorf("a lie got party 0 into quarantine: %s", why)
	}
	_, err := fetch(n.context(time.Second), n.as("alice", 0), "r", 0)
	refusal(t, err, rpc.TimedOut)
}

// A peer whose response about a reservation is empty, too long or invalid prevents the delivery.
func TestNonsenseIsNoConfirmation(t *testing.T) {
	n := newNet(t)
	for name, answer := range map[string]func(*tuplesv1.ConfirmRequest) *tuplesv1.ConfirmResponse{
		"none": func(*tuplesv1.ConfirmRequest) *tuplesv1.ConfirmResponse {
			return &tuplesv1.ConfirmResponse{Acknowledged: true}
		},
		"too many": func(r *tuplesv1.ConfirmRequest) *tuplesv1.ConfirmResponse {
			same := tuplesv1.Answer_ANSWER_SAME
			out := &tuplesv1.ConfirmResponse{Acknowledged: true, Answers: []tuplesv1.Answer{same}}
			for range r.GetItems() {
				out.Answers = append(out.Answers, same)
			}
			return out
		},
		"unspecified": func(r *tuplesv1.ConfirmRequest) *tuplesv1.ConfirmResponse {
			return &tuplesv1.ConfirmResponse{Acknowledged: true, Answers: make([]tuplesv1.Answer, len(r.GetItems()))}
		},
		"not in the list": func(r *tuplesv1.ConfirmRequest) *tuplesv1.ConfirmResponse {
			out := &tuplesv1.ConfirmResponse{Acknowledged: true}
			for range r.GetItems() {
				out.Answers = append(out.Answers, 77)
			}
			return out
		},
		"not acknowledged": func(r *tuplesv1.ConfirmRequest) *tuplesv1.ConfirmResponse {
			out := &tuplesv1.ConfirmResponse{}
			for range r.GetItems() {
				out.Answers = append(out.Answers, tuplesv1.Answer_ANSWER_SAME)
			}
			return out
		},
	} {
		n.nodes[2].lie(nil, func(r *tuplesv1.ConfirmRequest) (*tuplesv1.ConfirmResponse, error) { return answer(r), nil })
		id := "r-" + string(name[0]) + name[len(name)-1:]
		n.propose(reservation(id, uint64(len(name)*5), 5), 0, 1)
		got, err := fetch(n.context(300*time.Millisecond), n.as("alice", 0), id, 0)
		if e := rpc.FromError(err); e == nil || e.Code != rpc.TimedOut || len(got) > 0 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// An older copy of a store that is put back is found by the peers before anything leaves it.
func TestPutBack(t *testing.T) {
	n := newNet(t)
	ctx := n.context(30 * time.Second)
	x := n.nodes[0]
	n.propose(reservation("before", 0, 5), 0, 1, 2)
	first, err := fetch(ctx, n.as("alice", 0), "before", 0)
	must(t, err)
	x.stop()
	old := filepath.Join(n.dir, "old")
	must(t, os.CopyFS(old, os.DirFS(x.dir)))
	n.start(x, nil)
	n.propose(reservation("after", 5, 5), 0, 1, 2)
	_, err = fetch(ctx, n.as("alice", 0), "after", 0)
	must(t, err)
	x.stop()
	must(t, os.RemoveAll(x.dir))
	must(t, os.Rename(old, x.dir))
	n.start(x, nil)
	// Until it has heard from its peers, it repeats only deliveries from before the copy was made.
	for n.quarantined(0) == "" {
		if got, err := fetch(ctx, n.as("alice", 0), "before", 0); err == nil && !bytes.Equal(got, first) || ctx.Err() != nil {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	got, err := fetch(ctx, n.as("alice", 0), "before", 0)
	if code := rpc.FromError(err); len(got) > 0 || code == nil || code.Code != rpc.Quarantined && code.Code != rpc.Burnt {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	out, err := n.as("coordinator", 0).Propose(ctx, &tuplesv1.ProposeRequest{Reservations: []*tuplesv1.Reservation{reservation("new", 20, 5)}})
	if err != nil || out.GetOutcomes()[0].GetCode() != string(rpc.Quarantined) && out.GetOutcomes()[0].GetCode() != string(rpc.Burnt) {
		t.Errorf("%v, %v", out, err)
	}
	_, err = n.as("alice", 0).DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: "mac", Purpose: online})
	refusal(t, err, rpc.Burnt)
	for _, i := range []int{1, 2} {
		if why := n.quarantined(i); why != "" {
			t.Errorf("party %d is in quarantine: %s", i, why)
		}
	}
}

// Peers hear how far a store is although nothing waits for that, those that are there if one is
// not, and know an older copy.
func TestPeersAreTold(t *testing.T) {
	n := newNet(t)
	x := n.nodes[0]
	x.stop()
	old := filepath.Join(n.dir, "old")
	must(t, os.CopyFS(old, os.DirFS(x.dir)))
	n.nodes[2].stop()
	n.start(x, nil)
	x.fill(t, "more", 10, 32)
	now, err := x.vault.Generation()
	must(t, err)
	told := func() uint64 {
		x.service.Peers.mu.Lock()
		defer x.service.Peers.mu.Unlock()
		x.service.Peers.start()
		return x.service.Peers.told[1]
	}
	for ctx := n.context(time.Minute); told() < now; time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("party 1 knows of generation %d, and it is %d", told(), now)
		}
	}
	x.stop()
	must(t, os.RemoveAll(x.dir))
	must(t, os.Rename(old, x.dir))
	n.start(x, nil)
	for ctx := n.context(time.Minute); n.quarantined(0) == ""; time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("the older copy is not found")
		}
	}
}
