package threshold_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	client "github.com/lodge-mpc/lodge/clients/go/threshold"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// newShares reshares the keys of an epoch.
func (w *world) newShares(from uint64, threshold uint32, holders ...uint32) uint64 {
	w.Helper()
	return w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_RESHARE, FromEpoch: from, Threshold: threshold, Group: holders}).GetEpoch()
}

// BGV keys move to more holders with a higher threshold, and on to others. The public keys stay the
// same, and every quorum decrypts earlier ciphertexts. Only those who held shares when the keys
// were made can decrypt with flooding.
func TestBGVReshare(t *testing.T) {
	w := newWorld(t, 5, floods, bgvSet)
	first := w.complete(&coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: bgvSet, Threshold: 1, Group: []uint32{0, 1, 2}, Galois: rotations(bgvSet),
	}).GetEpoch()
	u := w.user(first)
	before, old := u.encrypt(u.values(2), true), u.encrypt(u.values(3), false)
	u.flooded(u.values(2), before, 0, 1)
	unopened := u.encrypt(u.values(4), true)

	second := w.newShares(first, 2, 0, 1, 2, 3, 4)
	moved := w.user(second)
	k := moved.key
	if k.Digest != u.key.Digest || k.Threshold != 2 || !slices.Equal(k.Galois, u.key.Galois) || !slices.Equal(k.Flooders, []int{0, 1, 2}) {
		t.Fatalf("%+v", k)
	}
	w.masks(second, 40, "exact", 1, 3, 4)
	w.opens(k, &client.Request{BGV: []*rlwe.Ciphertext{old}, Coefficients: 32, Quorum: []int{1, 3, 4}}, u.values(3))
	moved.flooded(u.values(4), unopened) // the client finds the holders that may
	product, slots := moved.computed(9)
	moved.flooded(slots, product, 0, 1, 2)
	fresh := moved.encrypt(u.values(5), true)
	// Each ciphertext counts twice under new shares.
	now, err := w.app.Key(t.Context(), second)
	if err != nil || now.Flooded != 2 || now.FloodingLimit != (1<<19-1)/2 {
		t.Errorf("%d of %d: %v", now.Flooded, now.FloodingLimit, err)
	}
	if now, err = w.app.Key(t.Context(), first); err != nil || now.Flooded != 1 || now.FloodingLimit != 1<<19-4 {
		t.Errorf("%d of %d: %v", now.Flooded, now.FloodingLimit, err)
	}

	// To fewer holders again. One of them never had the first shares, and one of the old holders
	// does not take part.
	third := w.complete(&coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_RESHARE, FromEpoch: second, Threshold: 1, Group: []uint32{1, 2, 4},
		FromDigest: k.Digest[:], FromThreshold: 2, FromHolders: []uint32{1, 2, 0, 4, 5},
	}).GetEpoch()
	last := w.user(third)
	w.masks(third, 8, "exact", 2, 4)
	w.opens(last.key, &client.Request{BGV: []*rlwe.Ciphertext{old}, Coefficients: 5, Quorum: []int{2, 4}}, u.values(3)[:5])
	last.flooded(u.values(5), fresh)
	if now, err = w.app.Key(t.Context(), third); err != nil || now.Flooded != 1 || !slices.Equal(now.Flooders, []int{1, 2}) || now.FloodingLimit != (1<<19-1-4)/2 {
		t.Errorf("%d of %d by %v: %v", now.Flooded, now.FloodingLimit, now.Flooders, err)
	}

	// Quorums that contain holders without an allowance, that are invalid, and that mix old and new
	// holders. Parties whose peers do not join are busy for a while.
	fresh = moved.encrypt(u.values(7), true)
	for _, quorum := range [][]int{{0, 1, 3}, {2, 3, 4}} {
		_, err := w.vouched(k, &client.Request{BGV: []*rlwe.Ciphertext{fresh}, Flooding: true, Quorum: quorum})
		refused(t, err, lodge.Burnt, "new shares bring none")
	}
	_, err = w.vouched(k, &client.Request{BGV: []*rlwe.Ciphertext{before}, Flooding: true, Quorum: []int{0, 1, 2}})
	refused(t, err, "wrong_quorum", "[0 1]")
	_, err = w.vouched(k, &client.Request{BGV: []*rlwe.Ciphertext{fresh}, Flooding: true, Quorum: []int{0, 1}})
	refused(t, err, "wrong_quorum", "2 parties") // as many as the old shares need
	_, err = w.vouched(u.key, &client.Request{BGV: []*rlwe.Ciphertext{fresh}, Flooding: true, Quorum: []int{0, 3}})
	refused(t, err, "wrong_quorum", "") // only a holder of new shares
}

// Old shares decrypt nothing when their epoch is retired. New shares still decrypt, but do not
// bring another allowance for flooding.
func TestBGVReshareRetired(t *testing.T) {
	w := newWorld(t, 3, func(i int, f *config.PartyFile) {
		floods(i, f)
		f.Clients[2].Permissions = append(f.Clients[2].Permissions, config.PermRetire)
	}, bgvSet)
	first := w.bgvKeys(bgvSet, 1)
	u := w.user(first)
	second := w.newShares(first, 1, 0, 1, 2)
	ct := u.encrypt(u.values(6), true)
	encoded := encodedBGV(t, u, ct)
	errs := make([]error, 2)
	var group sync.WaitGroup
	for party, epoch := range []uint64{first, second} { // old and new shares do not mix
		group.Go(func() {
			_, errs[party] = w.rawOf(context.Background(), party, u.key, encoded, func(h *thresholdv1.DecryptHeader) {
				h.Form, h.Level = thresholdv1.CiphertextForm_CIPHERTEXT_FORM_BGV, uint32(u.key.BGV().MaxLevel())
				h.RequestId, h.Epoch, h.Flooding, h.Coefficients = bytes.Repeat([]byte{1}, 16), epoch, true, 0
			})
		})
	}
	group.Wait()
	for party, err := range errs {
		if e := rpc.FromError(err); err == nil || e.Code != rpc.PinMismatch && e.Code != rpc.Unavailable {
			t.Errorf("party %d: %v", party, err)
		}
	}
	for party := range 3 {
		conn := w.connect(devnet.Operator, party)
		_, err := keygenv1.NewKeygenServiceClient(conn).RetireEpoch(t.Context(), &keygenv1.RetireEpochRequest{Epoch: first, Reason: "reshared"})
		if err := errors.Join(err, conn.Close()); err != nil {
			t.Fatal(err)
		}
	}
	r := &client.Request{BGV: []*rlwe.Ciphertext{ct}, Flooding: true, Quorum: []int{0, 1}}
	_, err := w.vouched(u.key, r)
	refused(t, err, lodge.Burnt, "retired")
	moved := w.user(second)
	moved.flooded(u.values(6), ct, 0, 1)
	if moved.key.FloodingLimit != 1<<18 {
		t.Errorf("a limit of %d", moved.key.FloodingLimit)
	}
}

// New shares of BGV keys are rejected if a spec does not match the keys, and if such holders are
// not possible.
func TestBGVReshareRefusals(t *testing.T) {
	w := newWorld(t, 3, floods, bgvSet, noRoom)
	first := w.bgvKeys(bgvSet, 1, rotations(bgvSet)...)
	k := w.user(first).key
	for what, change := range map[string]func(*coordinatorv1.JobRequest){
		"another set": func(q *coordinatorv1.JobRequest) { q.Params = noRoom },
		"LWE":         func(q *coordinatorv1.JobRequest) { q.Params = set },
		"other keys":  func(q *coordinatorv1.JobRequest) { q.FromDigest = make([]byte, 32) },
		"no majority": func(q *coordinatorv1.JobRequest) { q.Threshold = 2 },
	} {
		q := &coordinatorv1.JobRequest{
			Kind: jobv1.Kind_KIND_RESHARE, Params: bgvSet, FromEpoch: first, Threshold: 1, Group: []uint32{0, 1, 2},
			FromDigest: k.Digest[:], FromThreshold: 1, FromHolders: []uint32{1, 2, 3},
		}
		change(q)
		if j := w.submit(q); j.GetState() != jobv1.JobState_JOB_STATE_FAILED || j.GetFailure().GetOutcome() != "refused" {
			t.Errorf("%s: %v", what, j)
		}
	}
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
	hash, roster := k.BGV().Hash(), w.net.Roster.Hash()
	for what, galois := range map[string][]uint32{"no automorphisms": nil, "others": {3, 7}, "not of the ring": {5, 129}} {
		s := &jobv1.SessionSpec{
			Ref: &jobv1.SessionRef{JobId: "galois", Ordinal: 1}, Protocol: jobv1.Protocol_PROTOCOL_THRESHOLD, ProtocolVersion: job.ProtocolVersion,
			Params: bgvSet, ParamsHash: hash[:], RosterHash: roster[:], Kind: jobv1.Kind_KIND_RESHARE, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Epoch: 9,
			FromEpoch: first, FromDigest: k.Digest[:], FromThreshold: 1, FromHolders: []uint32{1, 2, 3}, Threshold: 1, Group: []uint32{0, 1, 2},
			Galois: galois, Deadline: timestamppb.New(time.Now().Add(time.Minute)),
		}
		_, err := thresholdv1.NewThresholdServiceClient(conn).Start(t.Context(), &jobv1.StartRequest{Spec: s}, grpc.WaitForReady(true))
		code := lodge.Code(rpc.PinMismatch)
		if what == "not of the ring" {
			code = lodge.Invalid
		}
		refused(t, err, code, "automorphisms")
	}
}
