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
// Values that must be zero, the padding of matrices that fill no whole number of blocks or the difference between a
// value and what was opened as it, are checked in the same rounds: a combination of them with weights of its own is
// opened without a mask, must be zero, and its MAC is checked beside y's.
package maccheck

import (
	"context"
	"errors"
	"io"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// The checks.
const (
	CheckMAC  = "mac"  // values and MACs differ: the MAC key is burnt
	CheckZero = "zero" // what must be zero is not: the MAC key is burnt
)

// Pair is this party's shares of values and of their MACs, entry by entry.
type Pair struct{ Value, MAC field.Vec }

// Config is what all parties of a run agree on, and what is this party's own.
type Config struct {
	Session round.Session
	Step    string
	Field   *field.Field
	Values  []Pair    // everything that will be released
	Zeros   []Pair    // what must be zero; may be empty
	Mask    Pair      // one fresh authenticated random value, which the run erases
	Alpha   field.Vec // this party's share of the MAC key: one element
	Source  *sample.Source
	// Exposed is called when this party is about to open its sigma; nil does nothing. From then on alpha is burnt
	// unless the run gives a result: after every error, a timeout, or the end of this process. An error ends the
	// run before anything is opened.
	Exposed func() error
}

// Passed is the result: the hash over all broadcasts of the session, the same at every honest party.
type Passed struct{ Transcript round.Digest }

func (c *Config) openName() string { return c.Step + "/open" }

// Start begins a run. The hook STEP/open gets the opened shares y_l and z_l (field.Vec), STEP/sigma/commit
// and .../open the encoded sigmas.
func Start(c Config) (round.Transition[Passed], error) {
	if c.Field == nil || c.Source == nil || !single(c.Mask.Value) || !single(c.Mask.MAC) || !single(c.Alpha) {
		return round.Transition[Passed]{}, errors.New("maccheck: configuration without field, source, mask or MAC key")
	}
	c.Session.Secrets.Own(c.Mask.Value, c.Mask.MAC, c.Source)
	for _, p := range append(append([]Pair(nil), c.Values...), c.Zeros...) {
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

// open broadcasts this party's shares of y and z.
func open(c Config, coin round.Digest) (round.Transition[Passed], error) {
	f := c.Field
	r := opening{Config: c, shares: f.NewVec(2), macs: f.NewVec(2)}
	c.Session.Secrets.Own(r.shares, r.macs)
	copy(r.shares.At(0), c.Mask.Value.At(0))
	copy(r.macs.At(0), c.Mask.MAC.At(0))
	for i, pairs := range [][]Pair{c.Values, c.Zeros} {
		xof := round.XOF("lodge mac check weights", c.Session.ID[:], []byte(c.Step), coin[:], round.Uint(uint64(i)))
		if err := combine(f, r.shares.At(i), r.macs.At(i), pairs, xof); err != nil {
			return round.Transition[Passed]{}, err
		}
	}
	byzantine.Apply(c.Session.Hooks, c.openName(), r.shares)
	payload := make([]byte, 2*f.Size())
	f.EncodeVec(payload, r.shares)
	return round.Next(round.Round[Passed](r), round.Broadcast(c.openName(), payload)), nil
}

// opening waits for the shares of y and z.
type opening struct {
	Config
	shares, macs field.Vec // y_l, z_l and gamma_l of both
}

func (r opening) Wants() []round.Want {
	return r.Session.Each(round.Want{Name: r.openName(), MaxBytes: int64(2 * r.Field.Size()), Broadcast: true})
}

func (r opening) Step(_ context.Context, in round.Inbox) (round.Transition[Passed], error) {
	f := r.Field
	sum, t := r.shares.Clone(), f.NewVec(2)
	for p := range round.Party(r.Session.Parties) {
		if p == r.Session.Self {
			continue
		}
		if err := f.DecodeVec(t, in.Bytes(p, r.openName())); err != nil {
			return round.Transition[Passed]{}, round.Malformed(p, err)
		}
		f.AddVec(sum, sum, t)
	}
	if len(r.Zeros) > 0 && !f.IsZero(sum.At(1)) && !r.Session.Hooks.Skips(CheckZero) {
		return round.Transition[Passed]{}, &round.Abort{Check: CheckZero, Reason: "padding of a matrix, or the difference of a product and what was opened, is not zero"}
	}
	sigma := f.NewVec(2) // gamma_l - alpha_l times the opened value
	f.ScaleVec(sigma, sum, r.Alpha.At(0))
	f.SubVec(sigma, r.macs, sigma)
	payload := make([]byte, 2*f.Size())
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
	sum, t := f.NewVec(2), f.NewVec(2)
	for p, payload := range o.Payloads {
		if err := f.DecodeVec(t, payload); err != nil {
			return Passed{}, round.Malformed(round.Party(p), err)
		}
		f.AddVec(sum, sum, t)
	}
	if (!f.IsZero(sum.At(0)) || !f.IsZero(sum.At(1))) && !r.Session.Hooks.Skips(CheckMAC) {
		return Passed{}, &round.Abort{Check: CheckMAC, Reason: "values and MACs of the batch differ"}
	}
	return Passed{Transcript: o.Transcript}, nil
}
