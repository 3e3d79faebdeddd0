// Package maccheck is the linear MAC check: before anything is released, all parties check that all values
// of a batch and their MACs agree, by opening one random combination of them.
//
// With shares [v_k] of values, shares gamma_l(v_k) of alpha v_k, and one authenticated random [rho] that is
// used for nothing else:
//
//  1. coin: all parties toss a coin after every share is fixed; it gives weights chi_k in Z_p;
//  2. open: every party broadcasts y_l = rho_l + sum_k chi_k v_k,l, and the echo check runs;
//  3. sigma: every party commits to sigma_l = gamma_l(y) - alpha_l y and opens it, and the openings are
//     echoed too, as a cheat may open differently to different parties;
//  4. accept if and only if the sigma_l sum to zero.
//
// A batch in which some value and its MAC differ passes with probability at most 2/p. Success leaks nothing
// about alpha. After a failure alpha is burnt: the opened sigma_l say too much about it. Nobody can be named,
// as what was wrong is a share that only its owner knows.
//
// Alpha is burnt as well when this party has opened its sigma and the check then has no verdict. A peer that
// adds a known eps to one value makes the sigma_l sum to -chi eps alpha; if it waits for the others' sigma_l it
// knows alpha, and can end the session in any way but by opening its own: by silence, by an opening that does
// not match, by an echo that does not. Config.Exposed tells the owner of alpha when this begins.
//
// Values that must be zero, the padding of matrices that fill no whole number of blocks, the difference between a
// value and what was opened as it, or that between entries that hold the same of an image, are checked in the same rounds: a combination of them with weights of its own is
// opened without a mask, must be zero, and its MAC is checked beside y's. Without such values, which is public, the
// shares of that combination and of its sigma are zero: who sends another is named. Were it added up, the honest parties
// would open alpha_l times it.
//
// What must be zero if products are right (Config.Sacrificed) is a third combination in the same way. It is looked at when
// its MAC has been: if that is right, then no share was wrong but products are, which malformed evaluation keys make. A party
// cannot raise this check by what it does in a batch.
//
// Soundness of all three together. When the coin is tossed, what every value is by its MAC is fixed, and so is what the
// cheats among the parties will have it be. If the two differ anywhere, or something that must be zero is not, then the error
// of one combination at least is not zero but with probability 1/p over its weights; and an error of a combination that is
// not zero passes only if the sigmas, which are committed to before one is seen, make up for alpha times it, with probability
// 1/p over alpha. Each fault of whatever kind passes with 2/p in all.
package maccheck

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// The checks.
const (
	CheckMAC  = "mac"  // values and MACs differ: the MAC key is burnt
	CheckZero = "zero" // what must be zero is not: the MAC key is burnt

	// CheckSacrifice fails where products are wrong and their MACs right. The MAC key is burnt, and the evaluation keys are
	// malformed.
	CheckSacrifice = "sacrifice"
)

// Pair is this party's shares of values and of their MACs, entry by entry.
type Pair struct{ Value, MAC field.Vec }

// Config is what all parties of a run agree on, and what is this party's own.
type Config struct {
	Session round.Session
	Step    string
	Field   *field.Field
	Values  []Pair // everything that will be released
	Zeros   []Pair // what must be zero; may be empty
	// Sacrificed must be zero if products are right; may be empty.
	Sacrificed []Pair
	Mask       Pair      // one fresh authenticated random value, which the run erases
	Alpha      field.Vec // this party's share of the MAC key: one element
	Source     *sample.Source
	// Exposed is called when this party is about to open its sigma; nil does nothing. From then on alpha is burnt
	// unless the run gives a result: after every error, a timeout, or the end of this process. An error ends the
	// run before anything is opened.
	Exposed func() error
}

// Passed is the result: the hash over all broadcasts of the session, the same at every honest party.
type Passed struct{ Transcript round.Digest }

// combinations is how many are opened: y, and those of Zeros and of Sacrificed.
const combinations = 3

func (c *Config) openName() string { return c.Step + "/open" }

// Start begins a run. The hook STEP/open gets the opened shares of y and of both combinations of zeros (field.Vec), STEP/sigma/commit
// and .../open the encoded sigmas.
func Start(c Config) (round.Transition[Passed], error) {
	if c.Field == nil || c.Source == nil || !single(c.Mask.Value) || !single(c.Mask.MAC) || !single(c.Alpha) {
		return round.Transition[Passed]{}, errors.New("maccheck: configuration without field, source, mask or MAC key")
	}
	c.Session.Secrets.Own(c.Mask.Value, c.Mask.MAC, c.Source)
	for _, p := range slices.Concat(c.Values, c.Zeros, c.Sacrificed) {
		if p.Value.Len() != p.MAC.Len() {
			return round.Transition[Passed]{}, errors.New("maccheck: values and MACs differ in number")
		}
	}
	t, err := round.CoinToss(c.Session, c.Step+"/coin", c.Source.Stream("coin"))
	if err != nil {
		return round.Transition[Passed]{}, err
	}
	return round.Then(t, func(_ context.Context, coin round.Digest) (round.Transition[Passed], error) {
		return open(c, coin)
	}), nil
}

// single reports whether v is one element.
func single(v field.Vec) bool { return len(v.W) > 0 && v.Len() == 1 }

// combine adds sum chi_k value_k to value and sum chi_k mac_k to mac, with weights read from xof.
func combine(f *field.Field, value, mac field.Element, pairs []Pair, xof io.Reader) error {
	chi, t := f.NewVec(256), f.NewElement()
	for _, p := range pairs {
		for start := 0; start < p.Value.Len(); start += chi.Len() {
			end := min(start+chi.Len(), p.Value.Len())
			w := chi.Slice(0, end-start)
			if err := f.Random(w, xof); err != nil {
				return err
			}
			f.Inner(t, w, p.Value.Slice(start, end))
			f.Add(value, value, t)
			f.Inner(t, w, p.MAC.Slice(start, end))
			f.Add(mac, mac, t)
		}
	}
	clear(t)
	return nil
}

// open broadcasts this party's shares of the combinations.
func open(c Config, coin round.Digest) (round.Transition[Passed], error) {
	f := c.Field
	r := opening{Config: c, shares: f.NewVec(combinations), macs: f.NewVec(combinations)}
	c.Session.Secrets.Own(r.shares, r.macs)
	copy(r.shares.At(0), c.Mask.Value.At(0))
	copy(r.macs.At(0), c.Mask.MAC.At(0))
	for i, pairs := range [combinations][]Pair{c.Values, c.Zeros, c.Sacrificed} {
		xof := round.XOF("lodge mac check weights", c.Session.ID[:], []byte(c.Step), coin[:], round.Uint(uint64(i)))
		if err := combine(f, r.shares.At(i), r.macs.At(i), pairs, xof); err != nil {
			return round.Transition[Passed]{}, err
		}
	}
	byzantine.Apply(c.Session.Hooks, c.openName(), r.shares)
	payload := make([]byte, combinations*f.Size())
	f.EncodeVec(payload, r.shares)
	return round.Next(round.Round[Passed](r), round.Broadcast(c.openName(), payload)), nil
}

// opening waits for the shares of the combinations.
type opening struct {
	Config
	shares, macs field.Vec // this party's of the combinations, and gamma_l of each
	relation     field.Vec // what was opened of Sacrificed
}

func (r opening) Wants() []round.Want {
	return r.Session.Each(round.Want{Name: r.openName(), MaxBytes: int64(combinations * r.Field.Size()), Broadcast: true})
}

func (r opening) Step(_ context.Context, in round.Inbox) (round.Transition[Passed], error) {
	f := r.Field
	sum, t := r.shares.Clone(), f.NewVec(combinations)
	for p := range round.Party(r.Session.Parties) {
		if p == r.Session.Self {
			continue
		}
		if err := r.decode(t, in.Bytes(p, r.openName())); err != nil {
			return round.Transition[Passed]{}, round.Malformed(p, err)
		}
		f.AddVec(sum, sum, t)
	}
	if !f.IsZero(sum.At(1)) && !r.Session.Hooks.Skips(CheckZero) {
		return round.Transition[Passed]{}, &round.Abort{
			Check: CheckZero, Reason: "padding of a matrix, the difference of a value and what was opened as it, or of windows and their image, is not zero",
		}
	}
	r.relation = sum.Slice(2, 3).Clone()
	sigma := f.NewVec(combinations) // gamma_l - alpha_l times the opened value
	f.ScaleVec(sigma, sum, r.Alpha.At(0))
	f.SubVec(sigma, r.macs, sigma)
	payload := make([]byte, combinations*f.Size())
	f.EncodeVec(payload, sigma)
	sigma.Wipe()
	next, err := round.CommitOpen(r.Session, r.Config.Step+"/sigma", r.Source.Stream("sigma nonce"), payload, len(payload))
	if err != nil {
		return round.Transition[Passed]{}, err
	}
	if r.Exposed != nil {
		next.Next = exposing{next.Next, r.Exposed}
	}
	return round.Map(next, func(o round.Opened) (Passed, error) { return r.verdict(o) }), nil
}

// decode reads a party's shares of the combinations, or its sigmas of them.
func (r opening) decode(t field.Vec, payload []byte) error {
	if err := r.Field.DecodeVec(t, payload); err != nil {
		return err
	}
	for i, pairs := range [combinations][]Pair{1: r.Zeros, 2: r.Sacrificed} {
		if i > 0 && len(pairs) == 0 && !r.Field.IsZero(t.At(i)) {
			return errors.New("maccheck: something is opened as zero where there are no zeros")
		}
	}
	return nil
}

// exposing is the round that has all commitments and leads to the openings; it calls before first.
type exposing struct {
	round.Round[round.Opened]
	before func() error
}

func (r exposing) Step(ctx context.Context, in round.Inbox) (round.Transition[round.Opened], error) {
	t, err := r.Round.Step(ctx, in)
	if err == nil {
		err = r.before()
	}
	if err != nil {
		return round.Transition[round.Opened]{}, err
	}
	return t, nil
}

// verdict adds up the sigmas.
func (r opening) verdict(o round.Opened) (Passed, error) {
	f := r.Field
	sum, t := f.NewVec(combinations), f.NewVec(combinations)
	for p, payload := range o.Payloads {
		if err := r.decode(t, payload); err != nil {
			return Passed{}, round.Malformed(round.Party(p), err)
		}
		f.AddVec(sum, sum, t)
	}
	if !f.EqualVec(sum, f.NewVec(combinations)) && !r.Session.Hooks.Skips(CheckMAC) {
		return Passed{}, &round.Abort{Check: CheckMAC, Reason: "values and MACs of the batch differ"}
	}
	if !f.IsZero(r.relation.At(0)) && !r.Session.Hooks.Skips(CheckSacrifice) {
		return Passed{}, &round.Abort{Check: CheckSacrifice, Reason: "products with right MACs are not those of their factors: the evaluation keys are malformed"}
	}
	return Passed{Transcript: o.Transcript}, nil
}
