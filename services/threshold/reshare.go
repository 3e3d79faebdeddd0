package threshold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	protocol "github.com/lodge-mpc/lodge/engine/protocol/threshold/reshare"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
)

// reshareRun is a session that reshares the secrets of an epoch, as another epoch.
type reshareRun struct {
	*Service
	spec     *jobv1.SessionSpec
	scheme   scheme
	from     vaultkeys.Epoch // the old epoch, if this party holds a share of it
	old, new protocol.Group
	dealer   bool
	heir     bool
}

// Memory implements session.Protocol.
func (r *reshareRun) Memory() (uint64, error) {
	var err error
	if r.scheme, err = r.schemeOf(r.spec.GetParams()); err != nil {
		return 0, err
	}
	if r.scheme.own() {
		return 0, rpc.Errorf(rpc.Invalid, "make another group with `lodge keys generate`", "a group for %s has no shares: each of its parties has its own keys", r.scheme.name())
	}
	if err := r.newEpoch(r.spec, r.scheme); err != nil {
		return 0, err
	}
	if err := r.scheme.check(len(r.spec.GetGroup()), r.spec.GetGalois()); err != nil {
		return 0, err
	}
	if err := r.groups(); err != nil {
		return 0, err
	}
	if r.dealer {
		if err := r.checkFrom(); err != nil {
			return 0, err
		}
	}
	var words uint64
	for _, p := range r.scheme.parts() {
		words += uint64(p.n + 1)
	}
	return 2*r.layout().size() + 8*words*uint64(4*(len(r.old.Parties)+len(r.new.Parties))), nil
}

// layout returns the layout of the public keys.
func (r *reshareRun) layout() layout { return r.scheme.layout(len(r.spec.GetGalois())) }

// groups numbers the old and the new holders as the session does.
func (r *reshareRun) groups() error {
	place := map[uint32]round.Party{}
	for i, p := range job.Participants(r.spec) {
		place[p] = round.Party(i)
	}
	self := uint32(r.Sessions.Self)
	r.old, r.new = protocol.Group{Threshold: int(r.spec.GetFromThreshold())}, protocol.Group{Threshold: int(r.spec.GetThreshold())}
	for _, p := range r.spec.GetFromHolders() {
		at := protocol.Absent
		if p > 0 {
			at = place[p-1]
			r.dealer = r.dealer || p-1 == self
		}
		r.old.Parties = append(r.old.Parties, at)
	}
	for _, p := range r.spec.GetGroup() {
		r.new.Parties = append(r.new.Parties, place[p])
		r.heir = r.heir || p == self
	}
	if !r.dealer && !r.heir {
		return rpc.Errorf(rpc.Invalid, "", "this party, %d, neither holds a share nor receives one", self)
	}
	if n, t := len(r.old.Parties), r.old.Threshold; n < 2*t+1 {
		return rpc.Errorf(rpc.Invalid, "", "this service does not support keys of %d holders with threshold %d (the threshold must be below half)", n, t)
	}
	return nil
}

// checkFrom compares the spec's description of the old epoch with this party's record.
func (r *reshareRun) checkFrom() error {
	var err error
	if r.from, err = r.Service.held(r.spec.GetFromEpoch(), false); err != nil {
		return err
	}
	differs := func(format string, args ...any) error {
		return rpc.Errorf(rpc.PinMismatch, "compare `lodge keys list` of the parties", "epoch %d: "+format, append([]any{r.from.ID}, args...)...)
	}
	places := r.Vault.Places(&r.from)
	switch {
	case r.from.Params != r.spec.GetParams():
		return differs("made with %s, not with %s", r.from.Params, r.spec.GetParams())
	//lodge:check threshold/reshare/from [run=TestReshareOfSomethingElse] holders reshare different
	//  keys
	case [32]byte(r.spec.GetFromDigest()) != r.from.Digest:
		return differs("its keys have another digest at this party")
	//lodge:check threshold/reshare/galois [run=TestBGVReshareRefusals] public keys change when keys
	//  are reshared
	case !slices.Equal(r.from.Galois, r.spec.GetGalois()):
		return differs("its keys are for the automorphisms %v at this party, but for %v in the spec", r.from.Galois, r.spec.GetGalois())
	case r.spec.GetFromThreshold() != r.from.Threshold || len(places) != len(r.spec.GetFromHolders()):
		return differs("%d of %d holders at this party, but %d of %d in the spec", r.from.Threshold+1, len(places), r.spec.GetFromThreshold()+1, len(r.spec.GetFromHolders()))
	}
	for i, p := range r.spec.GetFromHolders() {
		//lodge:check threshold/reshare/holders [run=TestReshareOfSomethingElse] holders disagree on
		//  who holds which share
		if p > 0 && places[i] != int(p)-1 {
			return differs("share %d is held by party %d here, but by party %d in the spec", i, places[i], p-1)
		}
	}
	return r.allowed(places)
}

// allowed checks the new holders and threshold against this party's policy, which alone decides
// which parties may receive shares.
func (r *reshareRun) allowed(holders []int) error {
	policy := r.Policy.Reshare
	least := r.from.Threshold
	if policy.MinThreshold > 0 {
		least = min(least, policy.MinThreshold)
	}
	if t := r.spec.GetThreshold(); t < least {
		return rpc.Errorf(rpc.PolicyRefused, "the party's operator can change threshold.reshare.min_threshold", "a threshold of %d; for epoch %d this party allows no lower than %d", t, r.from.ID, least)
	}
	for _, p := range r.spec.GetGroup() {
		if name := r.Sessions.Names[p]; !slices.Contains(holders, int(p)) && !slices.Contains(policy.Holders, name) {
			return rpc.Errorf(rpc.PolicyRefused, "the party's operator can change threshold.reshare.holders", "party %s holds no share of epoch %d, and this party does not allow it to receive one", name, r.from.ID)
		}
	}
	return nil
}

// Run implements session.Protocol.
func (r *reshareRun) Run(ctx context.Context, s *session.Entry) (*session.Stored, error) {
	c := protocol.Config{Old: r.old, New: r.new}
	parts := r.scheme.parts()
	for _, p := range parts {
		c.Parts = append(c.Parts, protocol.Part{Q: p.q, N: p.n})
	}
	if r.dealer {
		list, err := r.readShares(r.from.ID, parts)
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			c.Share = append(c.Share, secret.NewBox(v))
		}
		defer (&protocol.Result{Share: c.Share}).Wipe()
	}
	var keys *publicKeys
	if r.heir {
		var err error
		if keys, err = r.publicKeys(ctx); err != nil {
			return nil, err
		}
	}
	var id round.Digest
	result, err := session.Drive(ctx, s, plan.Threshold, terms("reshare", r.scheme, [32]byte(r.spec.GetFromDigest())),
		func(rs round.Session, source *sample.Source) (round.Transition[protocol.Result], error) {
			id = rs.ID
			c.Session, c.Source = rs, source
			return protocol.Start(c)
		})
	if err != nil {
		return nil, err
	}
	defer result.Wipe()
	if !r.heir {
		return &session.Stored{Digest: [32]byte(r.spec.GetFromDigest()), Epoch: r.spec.GetEpoch(), Security: Security}, nil
	}
	s.Enter(jobv1.JobState_JOB_STATE_STORING)
	return r.store(r.spec, r.scheme, id, result.Share, keys)
}

// publicKeys returns the public keys of the old epoch. A party without them downloads them from a
// holder and checks their digest, on which all parties have agreed.
func (r *reshareRun) publicKeys(ctx context.Context) (*publicKeys, error) {
	digest := [32]byte(r.spec.GetFromDigest())
	if r.dealer {
		var in receiver
		l := r.layout()
		err := r.chunks(&r.from, l, 0, l.chunks, func(h keyset.Head) (err error) {
			in, err = r.scheme.receive(h.Header, r.spec.GetGalois())
			return err
		}, func(i int, chunk []byte) error { return in.Put(i, chunk) })
		if err != nil {
			return nil, err
		}
		return in.finish(digest)
	}
	var last error
	for _, p := range r.spec.GetFromHolders() {
		if p == 0 || r.Peers[p-1].Conn == nil {
			continue
		}
		keys, err := r.ask(ctx, r.Peers[p-1], digest)
		if err == nil {
			return keys, nil
		}
		last = fmt.Errorf("threshold: keys of epoch %d from %s: %w", r.spec.GetFromEpoch(), r.Peers[p-1].Name, err)
	}
	return nil, errors.Join(errors.New("threshold: no holder sent the public keys"), last)
}

// askTime limits how long a holder may take to send the public keys before the next holder is
// asked. The other parties wait meanwhile.
const askTime = time.Minute

// ask downloads the public keys from a holder.
func (r *reshareRun) ask(ctx context.Context, p rpc.PeerConn, digest [32]byte) (*publicKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	stream, err := thresholdv1.NewThresholdServiceClient(p.Conn).GetKeys(ctx, &thresholdv1.GetKeysRequest{Epoch: r.spec.GetFromEpoch()})
	if err != nil {
		return nil, err
	}
	m, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	in, err := r.scheme.receive(m.GetHeader(), r.spec.GetGalois())
	if err != nil {
		return nil, err
	}
	for range r.layout().chunks {
		if m, err = stream.Recv(); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return nil, err
		}
		if err := in.Put(int(m.GetIndex()), m.GetChunk()); err != nil {
			return nil, err
		}
	}
	return in.finish(digest)
}
