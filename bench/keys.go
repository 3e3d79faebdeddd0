package bench

import (
	"context"
	"errors"
	"runtime"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// jointKeys are keys of several parties, whose secret shares are all here: for measuring only.
type jointKeys struct {
	public *keygen.PublicKeys
	shares []ring.NTT
}

// secret is the sum of the shares.
func (k *jointKeys) secret(s *gbfv.Scheme) ring.NTT {
	sum := s.Q.NewNTT()
	for _, share := range k.shares {
		s.Q.AddNTT(sum, sum, share)
	}
	return sum
}

// newKeys runs key generation for all parties in this process.
func newKeys(ctx context.Context, s *gbfv.Scheme, parties, dim int) (*jointKeys, error) {
	machines := make([]*round.Machine[keygen.Result], parties)
	for i := range machines {
		session := round.Session{ID: round.Hash("lodge bench keys"), Self: round.Party(i), Parties: parties}
		t, err := keygen.Start(keygen.Config{
			Session: session, Scheme: s, Dim: dim, Source: sample.NewSource(seed).Sub("party", uint64(i)), Workers: runtime.GOMAXPROCS(0),
		})
		if err != nil {
			return nil, err
		}
		if machines[i], err = round.NewMachine(session, t); err != nil {
			return nil, err
		}
	}
	results, err := lockstep(ctx, machines)
	if err != nil {
		return nil, err
	}
	k := &jointKeys{public: results[0].Keys}
	for _, r := range results {
		k.shares = append(k.shares, keygen.Lift(s, r.Secret))
	}
	return k, nil
}

// lockstep runs honest parties to their results: in each round every party sends what it has, and then every party steps.
func lockstep[R any](ctx context.Context, machines []*round.Machine[R]) ([]R, error) {
	for {
		var results []R
		for _, m := range machines {
			if r, done := m.Result(); done {
				results = append(results, r)
			}
		}
		if len(results) == len(machines) {
			return results, nil
		}
		for i, m := range machines {
			if err := deliver(ctx, machines, round.Party(i), m.Outgoing()); err != nil {
				return nil, err
			}
		}
		for _, m := range machines {
			if !m.Ready() {
				return nil, errors.New("bench: the parties of a protocol wait for each other")
			}
			if err := m.Step(ctx); err != nil {
				return nil, err
			}
		}
	}
}

func deliver[R any](ctx context.Context, machines []*round.Machine[R], from round.Party, messages []round.Outgoing) error {
	for _, msg := range messages {
		for i := range msg.Body.Frames() {
			frame, err := msg.Body.Frame(i)
			if err != nil {
				return err
			}
			for to, m := range machines {
				if round.Party(to) == from || msg.To != round.All && msg.To != round.Party(to) {
					continue
				}
				in := round.Incoming{Round: msg.Round, From: from, Name: msg.Name, Index: i, Last: i == msg.Body.Frames()-1, Payload: frame}
				if err := m.Deliver(ctx, in); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
