package triple

import (
	"context"
	"errors"
	"slices"

	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// CheckEvaluated compares the hashes of the ciphertexts that are about to be decrypted.
const CheckEvaluated = "evaluated"

// Config is what all parties of a run agree on, and what is this party's own.
type Config struct {
	Session round.Session
	Plan    *Plan
	Scheme  *gbfv.Scheme
	Keys    gbfv.Keys
	Public  *gbfv.PublicKey
	KeyHash round.Digest
	Secret  ring.NTT // this party's share of the secret key
	MAC     MACKey
	Source  *sample.Source
	Workers int
	// Evaluator computes the products in this party's place, under the same keys; nil has this party compute them. What it
	// gives is decrypted, so the party vouches for it.
	Evaluator evaluation.Evaluator
	// Turn is waited for before this party itself computes the products, and left when it has; nil: it computes at once.
	Turn func(context.Context) (leave func(), err error)
	// Opening is called once, before this party opens products or combinations of the MAC check; see maccheck.Config. It may
	// be nil.
	Opening func() error
}

// Result is one party's shares of a batch that passed the check: of values and of their products with the
// MAC key. Of scalar triples a, b and c have Count elements; of matrices Count matrices, row-major, one after
// another. Of convolutions a are images, channels x height x width, b kernels, outputs x channels x height x width, and c what
// they give, outputs x height x width. Squares are in c, inverses in b, random values, bits and input masks in a; what a kind does
// not have is empty.
type Result struct {
	Count            int
	A, B, C          field.Vec
	MACA, MACB, MACC field.Vec
	Clear            field.Vec    // the values of input masks, at their owner alone
	Digest           round.Digest // public, the same at every honest party
}

// Wipe erases the shares.
func (r *Result) Wipe() {
	for _, v := range []field.Vec{r.A, r.B, r.C, r.MACA, r.MACB, r.MACC, r.Clear} {
		v.Wipe()
	}
}

// batch is a run's state.
type batch struct {
	Config
	a, b   []field.Vec // shares of the factors, by ciphertext
	clear  []field.Vec // the values of input masks, at their owner
	rho    []field.Vec // matrices and input masks: shares of the vectors that only the MAC check consumes
	f, g   []field.Vec // shares of what is sacrificed
	extent extent
	list   []*gbfv.Ciphertext // what is decrypted, until it is
	result *Result            // until the check has passed

	// what the MAC check takes beside the result
	material          maccheck.Material
	zeros, sacrificed []maccheck.Pair
}

// Wipe erases the shares, except a result that was handed over.
func (r *batch) Wipe() {
	for _, v := range slices.Concat(r.a, r.b, r.rho, r.f, r.g, r.clear) {
		v.Wipe()
	}
	if r.result != nil {
		r.result.Wipe()
	}
}

// Start begins a batch.
//
// Hooks of tests: those of the protocols it runs; triple/message, which makes a matrix factor uniform where it must be
// zero (*bool); triple/material, which gets what the MAC check consumes (*maccheck.Material); triple/images, which gets this party's shares of images, and triple/window, which gets what changes the
// vectors of their windows (*func(int, field.Vec)); triple/decrypted, which gets the decrypted shares (ddec.Shares);
// triple/products, which gets this party's shares of products before they are opened (field.Vec); triple/sacrifice,
// which gets those of the masked factors (field.Vec); triple/shares, which gets the shares after the proof
// (*popk.Result), and triple/evaluated, which gets the ciphertexts before they are compared ([]*gbfv.Ciphertext).
func Start(c Config) (round.Transition[Result], error) {
	if c.Plan == nil || c.Scheme == nil || c.Keys == nil || c.Public == nil || c.MAC.Ciphertext == nil || c.Source == nil {
		return round.Transition[Result]{}, errors.New("triple: configuration without plan, scheme, keys, MAC key or source")
	}
	//lodge:check triple/serves [run=TestStartRefuses|TestPlans] [redundant=the proof at the start
	//  of a batch makes the same check] a plan for another scheme or another number of parties is
	//  used
	if err := c.Scheme.Serves(c.Plan.Instance, c.Session.Parties); err != nil {
		return round.Transition[Result]{}, err
	}
	//lodge:check triple/mac-key-field [run=TestStartRefuses] a MAC key of another field is used
	if len(c.MAC.Share.W) != len(c.Scheme.Field.NewElement()) {
		return round.Transition[Result]{}, errors.New("triple: the MAC key is not one element of the field")
	}
	//lodge:check triple/owner [run=TestStartRefuses|Input] input masks are for a party outside the
	//  session
	if c.Plan.Owner < 0 || int(c.Plan.Owner) >= c.Session.Parties || c.Plan.Owner > 0 && !c.Plan.Kind.Owned() {
		return round.Transition[Result]{}, errors.New("triple: a plan for input masks of no party, or for other tuples of one party")
	}
	r := &batch{Config: c}
	c.Session.Secrets.Own(r, c.Source)
	proof := popk.Config{
		Session: c.Session, Step: StepBatch, Scheme: c.Scheme, Instance: c.Plan.Instance, Key: c.Public, KeyHash: c.KeyHash,
		Source: c.Source.Sub("proof"), Workers: c.Workers,
	}
	r.extent = c.Plan.extent()
	if c.Plan.Kind.Owned() {
		//lodge:check triple/one-prover [run=Input] parties other than the owner learn the values of
		//  input masks
		proof.Only = &c.Plan.Owner
	}
	if c.Plan.matrices() {
		message, err := c.Plan.padded(c.Scheme)
		if err == nil && c.Plan.windowed() {
			message, err = r.windowed(message)
		}
		if err != nil {
			return round.Transition[Result]{}, err
		}
		full := false
		byzantine.Apply(c.Session.Hooks, "triple/message", &full)
		if !full {
			proof.Message = message
		}
	}
	t, err := popk.Start(proof)
	if err != nil {
		return round.Transition[Result]{}, err
	}
	if c.Plan.Kind.Owned() {
		return r.withPair(t)
	}
	return round.Then(t, r.proved), nil
}

// withPair has all parties prove the vectors that the MAC check consumes, in the rounds in which the owner of input masks
// proves these. The owner knows all that it proves alone, and the check triples must be unknown to everybody.
func (r *batch) withPair(masks round.Transition[popk.Result]) (round.Transition[Result], error) {
	t, err := popk.Start(popk.Config{
		Session: r.Session, Step: StepPair, Scheme: r.Scheme, Instance: r.Plan.Pair, Key: r.Public, KeyHash: r.KeyHash,
		Source: r.Source.Sub("check pair"), Workers: r.Workers,
	})
	if err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Then(round.Both(masks, t), func(ctx context.Context, p round.Results[popk.Result, popk.Result]) (round.Transition[Result], error) {
		all := p.First
		all.Ciphertexts = append(all.Ciphertexts, p.Second.Ciphertexts...)
		all.Shares = append(all.Shares, p.Second.Shares...)
		return r.proved(ctx, all)
	}), nil
}

// proved evaluates and compares.
func (r *batch) proved(ctx context.Context, proved popk.Result) (round.Transition[Result], error) {
	byzantine.Apply(r.Session.Hooks, "triple/shares", &proved)
	n := r.extent
	rest := proved.Shares
	r.a, rest = rest[:n.a], rest[n.a:]
	r.b, rest = rest[:n.b], rest[n.b:]
	r.rho, rest = rest[:n.rho], rest[n.rho:]
	r.f, r.g = rest[:n.f], rest[n.f:]
	var err error
	if r.list, err = r.evaluate(ctx, proved.Ciphertexts); err != nil {
		return round.Transition[Result]{}, err
	}
	byzantine.Apply(r.Session.Hooks, "triple/evaluated", r.list)
	digest := round.Digest(gbfv.Hash(r.list))
	send := []round.Message{round.Broadcast(compareName, digest[:])}
	next := compare{batch: r, digest: digest}
	if r.Plan.Kind.Owned() {
		next.seeds = r.drawSeeds()
		send = append(send, seedMessages(next.seeds)...)
	}
	return round.Next(round.Round[Result](next), send...), nil
}

const compareName = "triple/evaluated"

// compare waits for the hashes of the others.
type compare struct {
	*batch
	digest round.Digest
	seeds  [][]byte // of input masks; see drawSeeds
}

func (r compare) Wants() []round.Want {
	wants := r.Session.Each(round.Want{Name: compareName, MaxBytes: int64(len(r.digest)), Broadcast: true})
	if r.seeds != nil {
		wants = append(wants, r.Session.Each(seedWant)...)
	}
	return wants
}

func (r compare) Step(ctx context.Context, in round.Inbox) (round.Transition[Result], error) {
	var none round.Transition[Result]
	//lodge:check triple/evaluated [run=@cheats] parties decrypt different ciphertexts
	if err := round.Compare(r.Session, in, compareName, CheckEvaluated, r.digest); err != nil {
		return none, err
	}
	if r.seeds != nil {
		if err := r.spread(ctx, r.seeds, in); err != nil {
			return none, err
		}
	}
	t, err := ddec.Start(ddec.Config{
		Session: r.Session, Step: StepBatch, Scheme: r.Scheme, Instance: r.Plan.Instance, Ciphertexts: r.list,
		Secret: r.Secret, Source: r.Source.Sub("decryption"), Workers: r.Workers,
	})
	if err != nil {
		return none, err
	}
	return round.Then(t, r.decrypted), nil
}

// decrypted checks the MACs and releases.
func (r *batch) decrypted(_ context.Context, shares ddec.Shares) (round.Transition[Result], error) {
	byzantine.Apply(r.Session.Hooks, "triple/decrypted", shares)
	defer shares.Wipe()
	for _, ct := range r.list {
		ct.Free()
	}
	r.list = nil
	spare, err := r.collect(shares)
	if err != nil {
		return round.Transition[Result]{}, err
	}
	r.Session.Secrets.Own(&r.material)
	r.own(r.zeros...)
	if r.Plan.Sacrifice {
		r.own(spare.f, spare.g, spare.h)
		return r.sacrifice(spare)
	}
	return r.multiplied()
}

// own has the vectors erased when the run ends.
func (r *batch) own(pairs ...maccheck.Pair) {
	for _, p := range pairs {
		r.Session.Secrets.Own(p.Value, p.MAC)
	}
}

// multiplied goes on when all relations to check are there.
func (r *batch) multiplied() (round.Transition[Result], error) {
	if r.Plan.Kind.Opens() {
		return r.open()
	}
	return r.check(func() {})
}

// check runs the MAC check over the result and what must be zero, has finish make the result what it is to be, and releases
// it.
func (r *batch) check(finish func()) (round.Transition[Result], error) {
	result := r.result
	if r.Plan.windowed() {
		r.images()
	}
	t, err := maccheck.Start(maccheck.Config{
		Session: r.Session, Step: stepMAC, Field: r.Scheme.Field,
		//lodge:check triple/values-a [drop={Value: result.A, MAC: result.MACA}]
		//  [run=TestEveryReleased] the MACs of the first factors are not verified
		//lodge:check triple/values-b [drop={Value: result.B, MAC: result.MACB}]
		//  [run=TestEveryReleased] the MACs of the second factors are not verified
		//lodge:check triple/values-c [drop={Value: result.C, MAC: result.MACC}]
		//  [run=TestEveryReleased] the MACs of the products are not verified
		Values: []maccheck.Pair{{Value: result.A, MAC: result.MACA}, {Value: result.B, MAC: result.MACB}, {Value: result.C, MAC: result.MACC}},
		Zeros:  r.zeros, Sacrificed: r.sacrificed, Material: &r.material, Source: r.Source.Sub("mac check"), Opening: r.Opening,
	})
	if err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Map(t, func(p maccheck.Passed) (Result, error) {
		finish()
		result.Digest = r.Plan.Digest(r.Session.ID, r.KeyHash, result.Count, p.Transcript)
		r.result = nil // it is the caller's now
		return *result, nil
	}), nil
}
