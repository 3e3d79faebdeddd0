// Package maccheck checks all values of a batch against their MACs, and reveals nothing about the
// MAC key when the check fails.
//
// Each party holds additive shares v_l of every value v, and shares gamma_l(v) of alpha v. A
// cheating party can change a value by a known error, or its MAC, but cannot make the two agree
// without alpha. The check opens random combinations:
//
//   - combination 0: everything that will be released, masked by one authenticated random value rho;
//   - combination 1 (Zeros): shared values that must be zero;
//   - combination 2 (Sacrificed): shared values that are zero if products are right.
//
// Each nonempty combination i consumes one check triple: shares of random a_i and b_i, of c_i = a_i
// b_i, and of gamma(b_i) = alpha b_i. The parties then run these rounds:
//
//  1. Coin: the parties toss a coin after all shares are fixed. It gives the weights chi.
//  2. Open: party l broadcasts its share Y_(i,l) of each combination and m_(i,l) = gamma_l(Y_i) - a_(i,l). All add up both.
//     If Y_1 is not zero, they abort with CheckZero.
//  3. Commit: party l commits to z_(i,l) = c_(i,l) + m_i b_(i,l) - Y_i gamma_l(b_i).
//  4. Reveal: the parties open their commitments. If some sum of the z_(i,l) is not zero, they abort with CheckMAC. If Y_2
//     is not zero, they abort with CheckSacrifice.
//
// With three or more parties, package round compares the broadcasts of a round before any party
// sends the next message. Step 3 therefore starts only after all honest parties have seen the same
// Y and m, and a result needs the same openings at all honest parties. An empty combination has
// zero shares everywhere: a party that sends others is blamed.
//
// # Why it is correct
//
// The sum of the z_(i,l) is c + (gamma(Y) - a) b - Y gamma(b) = b (gamma(Y) - alpha Y), which is
// zero if the MACs are right.
//
// # Why it is sound
//
// Let the cheating parties shift Y by eps and gamma(Y) by delta, shift c and gamma(b) by further
// errors, and send m after they have seen the m of all other parties. The sum is then b (delta -
// alpha eps) + E. E is fixed by the end of step 3, because z is committed to before any other
// party's z is known, and b is uniform given everything seen until then: m hides gamma(Y) behind a,
// and nothing else depends on b. If delta differs from alpha eps, the sum is zero for one of the p
// values of b. If delta equals alpha eps for eps other than 0, the adversary has guessed alpha,
// which succeeds for one of its p values. The weights add 1/p. So every fault passes with
// probability at most 3/p.
//
// # Why a failure reveals nothing
//
// Everything that the adversary sees is Y (masked by rho, or zero), m (masked by a) and the sum of
// the honest parties' z. Given the adversary's errors, the sum of all z is b (delta - alpha eps) +
// E. For every alpha except the one with delta = alpha eps, b (delta - alpha eps) is uniform and
// independent of Y and m, so the views under all these alphas have the same distribution. A failed
// check tells the adversary only that one guess of alpha was wrong, at most three guesses in all.
// TestFailureHidesAlpha enumerates this over a field of five elements. Alpha and everything
// released under it stay valid. services/store/vault counts the failures of a key, and retires it
// after too many failures.
//
// # Conditions
//
// The proof needs every condition below; the tests show the attack without it.
//
//   - A check triple takes no part in the sacrifice, in openings, or in a release. A wrong opening of its masked factor
//     leaks b, and z / b = delta - alpha eps reveals alpha.
//   - A check triple and rho serve one check. Two checks with one triple and different Y reveal alpha by the difference of
//     their m. Start marks Material as consumed and refuses it the second time. The mark need not survive a crash: check
//     triples live only in the memory of one session, together with the shares they belong to. A session is never
//     resumed. A party that restarts, or is rolled back to a snapshot, joins a new session with a new identifier, to
//     which every peer contributes a nonce and from which all its randomness is drawn. The end of a run erases Material.
//     What is durable is the number of checks: Config.Opening lets the owner of the MAC key count every check that was
//     opened and did not pass, also if the process ends.
//   - Each combination has its own check triple. With one for all and weights known before the opening, a cheat
//     opens Y_1 = 0 and moves the difference into Y_0, which passes for every alpha.
//   - z is committed to. Otherwise the last party to speak cancels the sum. For m no commitment is needed.
//   - Nothing of a failed batch is opened to find out who cheated: opened MACs reveal alpha. Retire alpha first.
//
// A check triple may be unverified: errors in c and gamma(b) only enter E. But a and b must be
// uniform and unknown, which malformed evaluation keys can break. Under unproved keys an error may
// depend on secrets, and a failure may then say more than this package promises;
// services/offline/triples burns such a MAC key.
package maccheck

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// The checks. A failure drops the batch and names no party.
const (
	CheckMAC  = "mac"  // values and MACs differ
	CheckZero = "zero" // a value that must be zero is not

	// CheckSacrifice fails if products are wrong although their MACs are right, which only
	// malformed evaluation keys cause.
	CheckSacrifice = "sacrifice"
)

// Pair holds this party's shares of values and of their MACs, entry by entry.
type Pair struct{ Value, MAC field.Vec }

// Config holds the data on which all parties of a run agree, and this party's own data.
type Config struct {
	Session round.Session
	Step    string
	Field   *field.Field
	Values  []Pair // everything that will be released
	Zeros   []Pair // values that must be zero; may be empty
	// Sacrificed lists values that are zero if products are right; may be empty.
	Sacrificed []Pair
	Material   *Material
	Source     *sample.Source
	// Opening is called before this party opens anything; nil does nothing. An error ends the run
	// before the opening. The caller notes here, durably, that a check under its MAC key is under
	// way: a run that ends without a result after this call counts as a failure, whatever the
	// reason.
	Opening func() error
}

// Passed is the result: the hash over all broadcasts of the session, the same at every honest
// party.
type Passed struct{ Transcript round.Digest }

// Combinations is the number of combinations: of Values, Zeros and Sacrificed.
const Combinations = 3

// pairs lists the values of every combination.
func (c *Config) pairs() [Combinations][]Pair {
	return [Combinations][]Pair{c.Values, c.Zeros, c.Sacrificed}
}

// used reports whether combination i is opened. All parties know which are.
func (c *Config) used(i int) bool { return i == 0 || len(c.pairs()[i]) > 0 }

func (c *Config) openName() string { return c.Step + "/open" }
func (c *Config) zName() string    { return c.Step + "/z" }

// Start begins a run, which consumes and erases c.Material whatever its end. The hook STEP/open
// gets this party's shares of the combinations and then of m (field.Vec), STEP/z/commit and
// STEP/z/open get the encoded z.
func Start(c Config) (round.Transition[Passed], error) {
	var none round.Transition[Passed]
	if c.Field == nil || c.Source == nil || c.Material == nil {
		return none, errors.New("maccheck: configuration without field, source or material")
	}
	for _, p := range slices.Concat(c.Values, c.Zeros, c.Sacrificed) {
		//lodge:check maccheck/numbers a value can lack its MAC
		if p.Value.Len() != p.MAC.Len() {
			return none, errors.New("maccheck: the numbers of values and MACs differ")
		}
	}
	c.Session.Secrets.Own(c.Material, c.Source)
	if err := c.Material.consume(c.used); err != nil {
		return none, err
	}
	t, err := round.CoinToss(c.Session, c.Step+"/coin", c.Source.Stream("coin"))
	if err != nil {
		return none, err
	}
	return round.Then(t, func(_ context.Context, coin round.Digest) (round.Transition[Passed], error) {
		return open(c, coin)
	}), nil
}

// combine adds sum chi_k value_k to value and sum chi_k mac_k to mac, with weights read from xof.
func combine(f *field.Field, value, mac field.Element, pairs []Pair, xof io.Reader) error {
	chi, t := f.NewVec(256), f.NewElement()
	//lodge:check maccheck/every-value [swap=pairs=>pairs[min(1, len(pairs)):]] the first pairs are
	//  left out of the combination
	for _, p := range pairs {
		for start := 0; start < p.Value.Len(); start += chi.Len() {
			end := min(start+chi.Len(), p.Value.Len())
			w := chi.Slice(0, end-start)
			//lodge:check maccheck/fresh-weights [as=f.Fill(w, f.One())] all values have the same
			//  weight, so two errors can cancel
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

// combined returns this party's shares of the combinations and of their MACs.
func (c *Config) combined(coin round.Digest) (shares, macs field.Vec, err error) {
	shares, macs = c.Field.NewVec(Combinations), c.Field.NewVec(Combinations)
	c.Session.Secrets.Own(shares, macs)
	copy(shares.At(0), c.Material.Mask.Value.At(0))
	copy(macs.At(0), c.Material.Mask.MAC.At(0))
	for i, pairs := range c.pairs() {
		//lodge:check maccheck/weights/session [drop=c.Session.ID[:]] weights of one session can be
		//  replayed in another
		//lodge:check maccheck/weights/step [drop=[]byte(c.Step)] two checks of a session use the
		//  same weights
		//lodge:check maccheck/weights/coin [drop=coin[:]] a party knows the weights before it fixes
		//  its shares
		//lodge:check maccheck/weights/combination [drop=round.Uint(uint64(i))] all combinations use
		//  the same weights
		xof := round.XOF("lodge mac check weights", c.Session.ID[:], []byte(c.Step), coin[:], round.Uint(uint64(i)))
		if err := combine(c.Field, shares.At(i), macs.At(i), pairs, xof); err != nil {
			return shares, macs, err
		}
	}
	return shares, macs, nil
}

// open broadcasts this party's shares of the combinations and of m.
func open(c Config, coin round.Digest) (round.Transition[Passed], error) {
	f := c.Field
	shares, macs, err := c.combined(coin)
	if err != nil {
		return round.Transition[Passed]{}, err
	}
	own := f.NewVec(2 * Combinations)
	copy(own.W, shares.W)
	for i := range Combinations {
		if c.used(i) {
			c.Material.Triples[i].hide(f, own.At(Combinations+i), macs.At(i))
		}
	}
	//lodge:check maccheck/opening values are opened before the check is recorded
	if c.Opening != nil {
		if err := c.Opening(); err != nil {
			return round.Transition[Passed]{}, err
		}
	}
	return round.Next(round.Round[Passed](opening{Config: c, own: own}), round.Message{
		To: round.All, Name: c.openName(), Body: round.Encoded(own, f.Encoding),
	}), nil
}

// opening waits for the other parties' shares of the combinations and of m.
type opening struct {
	Config
	own      field.Vec // the broadcast of this party: Y, then m
	relation field.Vec // the opened combination of Sacrificed
}

func (r opening) Wants() []round.Want {
	return r.Session.Each(round.Want{Name: r.openName(), MaxBytes: int64(2 * Combinations * r.Field.Size()), Broadcast: true})
}

func (r opening) Step(_ context.Context, in round.Inbox) (round.Transition[Passed], error) {
	f, none := r.Field, round.Transition[Passed]{}
	sum, t := r.own.Clone(), f.NewVec(r.own.Len())
	for p := range round.Party(r.Session.Parties) {
		if p == r.Session.Self {
			continue
		}
		//lodge:check maccheck/shares-decode opened shares that are not canonical pass
		if err := r.decode(t, in.Bytes(p, r.openName())); err != nil {
			return none, round.Malformed(p, err)
		}
		f.AddVec(sum, sum, t)
	}
	//lodge:check maccheck/zero padding and differences of opened values need not be zero
	if !f.IsZero(sum.At(1)) && !r.Session.Omits(CheckZero) {
		return none, &round.Abort{
			Check: CheckZero, Reason: "a value that must be zero is not: padding of a matrix, an opened value that differs from the shared one, or a window that is not of its image",
		}
	}
	r.relation = sum.Slice(2, 3).Clone()
	z := f.NewVec(Combinations)
	for i := range Combinations {
		if r.used(i) {
			r.Material.Triples[i].multiply(f, z.At(i), sum.At(i), sum.At(Combinations+i))
		}
	}
	payload := f.Encoding(z)
	z.Wipe()
	next, err := round.CommitOpen(r.Session, r.zName(), r.Source.Stream("z nonce"), payload, len(payload))
	if err != nil {
		return none, err
	}
	return round.Map(next, func(o round.Opened) (Passed, error) { return r.verdict(o) }), nil
}

// decode decodes a party's broadcast or opening: two elements or one for each combination.
func (r opening) decode(t field.Vec, payload []byte) error {
	if err := r.Field.DecodeVec(t, payload); err != nil {
		return err
	}
	for k := range t.Len() {
		//lodge:check maccheck/no-zeros [swap=!r.used(k%Combinations) && !r.Field.IsZero(t.At(k))=>k
		//  < 0] a party can make the others open a multiple of the MAC key
		//lodge:check maccheck/no-m [swap=!r.used(k % Combinations)=>k < Combinations && !r.used(k)]
		//  a party opens a value that hides the MAC of a combination without values
		if !r.used(k%Combinations) && !r.Field.IsZero(t.At(k)) {
			return errors.New("maccheck: a share of an empty combination is not zero")
		}
	}
	return nil
}

// verdict adds up the opened z, and evaluates the checks.
func (r opening) verdict(o round.Opened) (Passed, error) {
	f := r.Field
	sum, t := f.NewVec(Combinations), f.NewVec(Combinations)
	for p, payload := range o.Payloads {
		//lodge:check maccheck/z-decode z values that are not canonical pass
		if err := r.decode(t, payload); err != nil {
			return Passed{}, round.Malformed(round.Party(p), err)
		}
		f.AddVec(sum, sum, t)
	}
	//lodge:check maccheck/mac a batch with a wrong MAC is released
	//lodge:check maccheck/mac-all-combinations [swap=f.EqualVec(sum,
	//  f.NewVec(Combinations))=>f.IsZero(sum.At(0))] only the first combination of MACs is verified
	if !f.EqualVec(sum, f.NewVec(Combinations)) && !r.Session.Omits(CheckMAC) {
		return Passed{}, &round.Abort{Check: CheckMAC, Reason: "values and MACs of the batch differ"}
	}
	//lodge:check maccheck/sacrifice a batch with wrong products is released
	if !f.IsZero(r.relation.At(0)) && !r.Session.Omits(CheckSacrifice) {
		return Passed{}, &round.Abort{Check: CheckSacrifice, Reason: "products with right MACs are wrong: the evaluation keys are malformed"}
	}
	return Passed{Transcript: o.Transcript}, nil
}
