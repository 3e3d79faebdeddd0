package triple

import (
	"context"
	"errors"
	"slices"

	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// CheckEvaluated compares the hashes of the ciphertexts that are about to be decrypted.
const CheckEvaluated = "evaluated"

// Config holds the inputs of a run: those that all parties share, and those of this party.
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
	// Evaluator computes the products for this party, under the same keys; if it is nil, this party
	// computes them. The party decrypts the results, so it vouches for them.
	Evaluator evaluation.Evaluator
	// Turn, if not nil, is called before this party computes the products. It waits for the party's
	// turn, and leave ends the turn.
	Turn func(context.Context) (leave func(), err error)
	// Opening is called once, before this party opens products or combinations of the MAC check;
	// see maccheck.Config. It may be nil.
	Opening func() error
}

// Result is one party's shares of a batch that passed the check: of values and of their products
// with the MAC key. The parts of a kind name the vector that holds them (package kind); other
// vectors are empty. A vector holds Count elements, or Count arrays, row-major, one after another.
type Result struct {
	Count            int
	A, B, C          field.Vec
	MACA, MACB, MACC field.Vec
	Clear            field.Vec    // the values of input masks; only at their owner
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
	f, g   []field.Vec // shares of the sacrificed vectors
	extent extent
	list   []*gbfv.Ciphertext // the ciphertexts to decrypt, until they are decrypted
	result *Result            // until the check has passed

	// inputs of the MAC check in addition to the result
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

// Padding is the name, for Omits, of the zeros in the padding of matrix factors and of the windows
// of an image. A cheating party that omits them encrypts uniform factors.
const Padding = "triple/padding"

// Start begins a batch.
//
// Hooks of tests, in addition to those of the protocols that it runs: a party that omits [Padding]
// makes a matrix factor uniform where it must be zero; triple/material receives the material of the
// MAC check (*maccheck.Material); triple/images receives this party's shares of images (field.Vec),
// and triple/window a function that changes the vectors of their windows (*func(int, field.Vec));
// ddec.Shares receives the decrypted shares; triple/products receives this party's shares of
// products before they are opened (field.Vec), and triple/sacrifice those of the masked factors
// (field.Vec); popk.Result receives the shares after the proof (*popk.Result), and triple/compared
// the ciphertexts before they are compared ([]*gbfv.Ciphertext).
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
		if !c.Session.Omits(Padding) {
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

// withPair lets all parties prove the vectors that the MAC check consumes, in the same rounds as
// the owner's proof of the input masks. No party may know the check triples, and the owner knows
// everything that it proves without the others.
func (r *batch) withPair(masks round.Transition[popk.Result]) (round.Transition[Result], error) {
	t, err := popk.Start(popk.Config{
		Session: r.Session, Step: StepPair, Scheme: r.Scheme, Instance: r.Plan.Pair, Key: r.Public, KeyHash: r.KeyHash,
		Source: r.Source.Sub("check pair"), Workers: r.Workers,
	})
	if err != nil {
		return round.Transition[Result]{}, err
	}
	both := round.Map(round.Both(masks, t), func(p round.Results[popk.Result, popk.Result]) (popk.Result, error) {
		all := p.First
		all.Ciphertexts = append(all.Ciphertexts, p.Second.Ciphertexts...)
		all.Shares = append(all.Shares, p.Second.Shares...)
		return all, nil
	})
	return round.Then(both, r.proved), nil
}

// proved evaluates and compares.
func (r *batch) proved(ctx context.Context, proved popk.Result) (round.Transition[Result], error) {
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
	digest := round.Bind(r.Session, "triple/compared", r.list, func(list []*gbfv.Ciphertext) round.Digest {
		return gbfv.Hash(list)
	})
	send := []round.Message{round.Broadcast(compareName, digest[:])}
	next := compare{batch: r, digest: digest}
	if r.Plan.Kind.Owned() {
		next.seeds = r.drawSeeds()
		send = append(send, seedMessages(next.seeds)...)
	}
	return round.Next(round.Round[Result](next), send...), nil
}

const compareName = "triple/evaluated"

// compare waits for the hashes of the other parties.
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
	defer shares.Wipe()
	for _, ct := range r.list {
		ct.Free()
	}
	r.list = nil
	spare, err := r.collect(shares)
	if err != nil {
		return round.Transition[Result]{}, err
	}
	r.own(r.zeros...)
	if r.Plan.Sacrifice {
		r.own(spare.f, spare.g, spare.h)
		return r.sacrifice(spare)
	}
	return r.multiplied()
}

// own registers the vectors for erasure at the end of the run.
func (r *batch) own(pairs ...maccheck.Pair) {
	for _, p := range pairs {
		r.Session.Secrets.Own(p.Value, p.MAC)
	}
}

// multiplied continues after the sacrifice: with the opening of products, or with the MAC check.
func (r *batch) multiplied() (round.Transition[Result], error) {
	if r.Plan.Kind.Opens() {
		return r.open()
	}
	return r.check(func() {})
}

// check runs the MAC check over the result and the values that must be zero. If it passes, finish
// completes the result, which is then released.
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
