package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

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

// newKeys runs key generation for all parties in this process. It omits the proofs, which do not
// affect the measurements.
func newKeys(ctx context.Context, s *gbfv.Scheme, parties, dim int) (*jointKeys, error) {
	results, err := runKeygen(ctx, s, parties, dim, keygen.Passive, runtime.GOMAXPROCS(0), &stopwatch{})
	if err != nil {
		return nil, err
	}
	k := &jointKeys{public: results[0].Keys}
	for _, r := range results {
		k.shares = append(k.shares, keygen.Lift(s, r.Secret))
	}
	return k, nil
}

func runKeygen(ctx context.Context, s *gbfv.Scheme, parties, dim int, security string, workers int, w *stopwatch) ([]keygen.Result, error) {
	machines := make([]*round.Machine[keygen.Result], parties)
	for i := range machines {
		session := round.Session{ID: round.Hash("lodge bench keys"), Self: round.Party(i), Parties: parties}
		t, err := keygen.Start(keygen.Config{
			Session: session, Scheme: s, Dim: dim, Security: security, Source: sample.NewSource(seed).Sub("party", uint64(i)), Workers: workers,
		})
		if err != nil {
			return nil, err
		}
		if machines[i], err = round.NewMachine(session, t); err != nil {
			return nil, err
		}
	}
	return lockstep(ctx, machines, w)
}

// stopwatch is the CPU time that parties take to step, and to take the frames of others as they
// come.
type stopwatch struct{ steps, frames float64 }

// keyProofs measures the proofs of proved key generation: a party's own work, including sampling
// and encryption, and the verification of one peer's proofs. It uses few rotation keys, because
// both costs are proportional to their number.
func (f *fixture) keyProofs() Row {
	const dim = 8
	names := []string{"keygen_prove_" + f.options.slug(f.set), "keygen_verify_" + f.options.slug(f.set)}
	return Row{Names: names, Run: func(ctx context.Context) ([]Result, error) {
		if err := f.prepare(ctx, 1); err != nil {
			return nil, err
		}
		d := min(dim, f.options.Dim(f.set))
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		var times [2][]float64
		began := time.Now()
		for turn := 0; turn < 3 || turn < turns && time.Since(began) < f.options.Duration; turn++ {
			w := &stopwatch{}
			if _, err := runKeygen(ctx, f.scheme, 2, d, keygen.Proved, 1, w); err != nil {
				return nil, err
			}
			times[0], times[1] = append(times[0], w.steps/2), append(times[1], w.frames/2)
		}
		of := fmt.Sprintf(" for the public, relinearisation and %d rotation keys, one thread", d-1)
		return []Result{
			{Name: names[0], Unit: "s", Value: Median(times[0]), What: "a party's shares and their proof" + of},
			{Name: names[1], Unit: "s", Value: Median(times[1]), What: "check of one other party's" + of},
		}, nil
	}}
}

// lockstep runs honest parties to their results: in each round every party sends its messages, and
// then every party steps.
func lockstep[R any](ctx context.Context, machines []*round.Machine[R], w *stopwatch) ([]R, error) {
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
			if err := deliver(ctx, machines, round.Party(i), m.Outgoing(), w); err != nil {
				return nil, err
			}
		}
		used := cpuSeconds()
		for _, m := range machines {
			if !m.Ready() {
				return nil, errors.New("bench: the parties of a protocol wait for each other")
			}
			if err := m.Step(ctx); err != nil {
				return nil, err
			}
		}
		w.steps += cpuSeconds() - used
	}
}

func deliver[R any](ctx context.Context, machines []*round.Machine[R], from round.Party, messages []round.Outgoing, w *stopwatch) error {
	for _, msg := range messages {
		for i := range msg.Body.Frames() {
			used := cpuSeconds()
			frame, err := msg.Body.Frame(i)
			if err != nil {
				return err
			}
			w.steps += cpuSeconds() - used
			used = cpuSeconds()
			for to, m := range machines {
				if round.Party(to) == from || msg.To != round.All && msg.To != round.Party(to) {
					continue
				}
				in := round.Incoming{Round: msg.Round, From: from, Name: msg.Name, Index: i, Last: i == msg.Body.Frames()-1, Payload: frame}
				if err := m.Deliver(ctx, in); err != nil {
					return err
				}
			}
			w.frames += cpuSeconds() - used
		}
	}
	return nil
}
