package keygen

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
)

//lodge:tests passive TestCheatsAtEvery|TestReplayed|TestMalformedKey|TestARogueKey|TestARushing|FuzzShare

// The steps of a run.
const (
	stepSeed   = "keygen/seed"
	stepFirst  = "keygen/first"
	stepSecond = "keygen/second"
	nameAgree  = "keygen/agree"
)

// Start begins a run. The parties first toss the reference string. In passive key generation they
// then commit to and open the public key, the rotation keys and the first part of the
// relinearisation key, and afterwards its second part. In proved key generation the rounds relin,
// statement and proofs follow. At the end all parties compare the hash of the keys.
//
// Hooks of tests: keygen/secret and keygen/secret/relin receive s and u ([]int64), and keygen/party
// the *party after them. keygen/error/public, .../rotation, .../relin h0, .../relin h1 and
// .../relin second receive each error ([]int64), several concurrently. keygen/first/commit,
// .../open and so on receive the bodies. With proofs, errors are sampled twice. keygen/share then
// receives each share (*sharing), keygen/prover the *prover, keygen/mask/secret,
// .../relinearisation secret, .../public and so on each mask ([]int64), keygen/challenge the
// values that the challenge hashes ([][]byte), and keygen/proofs the frames ([][]byte).
func Start(c Config) (round.Transition[Result], error) {
	if c.Security == "" && c.Scheme != nil {
		//lodge:check keygen/default-is-proved [swap=c.Scheme.Set.KeygenSecurity()=>Passive]
		//  [run=@starts] keys are not proved although the parameter set supports proofs
		c.Security = c.Scheme.Set.KeygenSecurity()
	}
	if err := c.check(); err != nil {
		return round.Transition[Result]{}, err
	}
	t, err := round.CoinToss(c.Session, stepSeed, c.Source.Stream("reference string"))
	if err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Then(t, func(ctx context.Context, seed round.Digest) (round.Transition[Result], error) {
		p, err := newParty(&c, seed)
		if err != nil {
			return round.Transition[Result]{}, err
		}
		if c.Security == Proved {
			return relin(ctx, p)
		}
		return first(ctx, p)
	}), nil
}

// exchange commits to and opens one list of polynomials, and returns their sums.
func exchange(ctx context.Context, p *party, step string, n int, make1 func(i int) ring.Poly) (round.Transition[[]ring.NTT], error) {
	f, frames, err := p.fold(ctx, n, make1)
	if err != nil {
		return round.Transition[[]ring.NTT]{}, err
	}
	t, err := round.CommitOpenStream(p.Session, round.Streamed{
		Step:  step,
		Body:  round.FrameList(frames),
		Limit: func(round.Party) round.Limit { return p.limit(n) },
		Sink:  f,
	}, p.Source.Stream("nonce "+step))
	if err != nil {
		return round.Transition[[]ring.NTT]{}, err
	}
	return round.Map(t, func(round.Opened) ([]ring.NTT, error) { return f.evaluations(p.Workers), nil }), nil
}

// first runs the first round for all keys.
func first(ctx context.Context, p *party) (round.Transition[Result], error) {
	list := p.slots()
	t, err := exchange(ctx, p, stepFirst, len(list), func(i int) ring.Poly { return p.share(list[i]) })
	if err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Then(t, func(ctx context.Context, sum []ring.NTT) (round.Transition[Result], error) {
		keys := &PublicKeys{Seed: p.seed, Dim: p.Dim, K0: map[int][]ring.NTT{}}
		var h0 []ring.NTT
		relin := &gbfv.SwitchKey{}
		for i, at := range list {
			switch at.kind {
			case publicKey:
				keys.Public = &gbfv.PublicKey{P0: sum[i], P1: uniform(p.Scheme, p.seed, labelPublic)}
			case rotation:
				keys.K0[at.g] = append(keys.K0[at.g], sum[i])
			case relinH0:
				h0 = append(h0, sum[i])
			case relinH1:
				relin.K1 = append(relin.K1, sum[i])
			}
		}
		keys.Relin = relin
		return second(ctx, p, keys, h0)
	}), nil
}

// second completes the relinearisation key.
func second(ctx context.Context, p *party, keys *PublicKeys, h0 []ring.NTT) (round.Transition[Result], error) {
	t, err := exchange(ctx, p, stepSecond, len(h0), func(j int) ring.Poly { return p.second(h0[j], keys.Relin.K1[j], j) })
	if err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Then(t, func(_ context.Context, sum []ring.NTT) (round.Transition[Result], error) {
		keys.Relin.K0 = sum
		return conclude(p, keys), nil
	}), nil
}

// agree compares the hash of the keys.
type agree struct {
	round.Session
	party  *party
	keys   *PublicKeys
	digest round.Digest
}

func (r agree) Wants() []round.Want {
	return r.Each(round.Want{Name: nameAgree, MaxBytes: int64(len(r.digest)), Broadcast: true})
}

func (r agree) Step(_ context.Context, in round.Inbox) (round.Transition[Result], error) {
	//lodge:check keygen/agree [run=@passive|TestCheats] parties continue with different keys
	if err := round.Compare(r.Session, in, nameAgree, CheckAgree, r.digest); err != nil {
		return round.Transition[Result]{}, err
	}
	result := Result{Keys: r.keys, Secret: r.party.secret, Security: r.party.Security}
	r.party.secret = nil // the caller owns it now
	return round.Done(result), nil
}
