package bgvkeys

import (
	"context"
	"errors"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/complaint"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/dealing"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// Names of the steps and the messages of a run.
const (
	stepSeed  = "bgvkeys/seed"
	stepDealt = "bgvkeys/dealt"

	nameSeeds      = "bgvkeys/seeds"
	nameShares     = "bgvkeys/shares"
	namePolynomial = "bgvkeys/polynomial"
	nameComplaints = "bgvkeys/complaints"
	nameOpened     = "bgvkeys/opened"
	nameAgree      = "bgvkeys/agree"
)

// transition is the result of a round of this protocol.
type transition = round.Transition[Result]

// Start begins a run.
//
// Hooks for tests: bgvkeys/drawn/0 receives the secret and bgvkeys/drawn/I+1 the error of sample I
// ([]int64), before they are dealt; bgvkeys/deal receives the
// dealings, row by row, whenever one is made (*Deal); bgvkeys/polynomial receives a dealer's
// announcement of its combinations ([][]uint64, by prime) and bgvkeys/complaints its complaints
// ([]byte); bgvkeys/opened receives the shares of the samples before they are opened ([]ring.Poly).
func Start(c Config) (transition, error) {
	if err := c.check(); err != nil {
		return transition{}, err
	}
	t, err := round.CoinToss(c.Session, stepSeed, c.Source.Stream("reference string"))
	if err != nil {
		return transition{}, err
	}
	return round.Then(t, func(ctx context.Context, seed round.Digest) (transition, error) {
		p, err := newParty(&c, seed)
		if err != nil {
			return transition{}, err
		}
		return p.sendSeeds(ctx)
	}), nil
}

// party is the state of one party during a run.
type party struct {
	*Config
	*plan
	self   int
	seed   round.Digest // of the reference string
	dealer *dealer
	given  *dealing.Given
	check  *weights
	// received holds this party's combinations of its shares from each dealer. own holds those of
	// its secrets, and of the shares that other parties expand.
	received, own combinations

	secret ring.Poly   // this party's shares of s
	shares []ring.Poly // of the errors of samples, then of the samples
	keys   *bgv.Keys
}

func newParty(c *Config, seed round.Digest) (*party, error) {
	plan, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	p := &party{
		Config: c, plan: plan, self: int(c.Session.Self), seed: seed,
		given:    dealing.NewGiven(plan.n),
		received: plan.combinations(plan.n), own: plan.combinations(2*plan.t + 1), secret: ring.Poly{C: plan.table()},
	}
	for range plan.samples() {
		p.shares = append(p.shares, ring.Poly{C: plan.table()})
	}
	c.Session.Secrets.Own(p, c.Source)
	return p, nil
}

// Wipe erases all shares. It does not erase shares of the secret that were returned.
func (p *party) Wipe() {
	if p.dealer != nil {
		p.dealer.Wipe()
	}
	p.given.Wipe()
	p.received.wipe()
	p.own.wipe()
	p.secret.Zero()
	for _, s := range p.shares {
		s.Zero()
	}
}

// deal sends the shares. Each dealer combines all its dealings with weights from the coin, and
// announces the polynomials of the combinations to all parties.
func (p *party) deal(ctx context.Context, coin round.Digest) (transition, error) {
	p.check = p.weights(coin)
	if err := p.foldKnown(ctx); err != nil {
		return transition{}, err
	}
	send := []round.Message{{To: round.All, Name: namePolynomial, Body: round.Encoded(p.announce(), p.packAnnounced)}}
	for _, i := range p.dealer.receivers() {
		send = append(send, round.Message{To: round.Party(i), Name: nameShares, Body: p.dealer.body(i)})
	}
	r := &dealt{party: p, row: make([]uint64, p.width), room: make([]uint64, p.width)}
	return round.Next(round.Round[Result](r), send...), nil
}

// dealt is the round in which the shares arrive.
type dealt struct {
	*party
	row, room []uint64
}

func (r *dealt) Wants() []round.Want {
	wants := r.Session.Each(round.Want{Name: namePolynomial, MaxBytes: int64(r.announcedSize()), Broadcast: true})
	for from := range r.n {
		if from == r.self || !r.sends(from, r.self) {
			continue
		}
		w := round.Want{From: round.Party(from), Name: nameShares, MaxFrames: r.frames(), Stream: true}
		for f := range r.frames() {
			w.MaxBytes += int64(r.size(r.sent(f, from, r.self)))
		}
		wants = append(wants, w)
	}
	return wants
}

var errFrame = errors.New("a frame has the wrong length")

func (r *dealt) Frame(_ context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	rows := r.sent(index, int(from), r.self)
	//lodge:check bgvkeys/dealt-frame [drop=last != (index == r.frames()-1)] some dealt shares can
	//  be missing
	if last != (index == r.frames()-1) || len(frame) != r.size(rows) {
		return round.Malformed(from, errFrame)
	}
	for _, row := range rows {
		var err error
		//lodge:check bgvkeys/dealt-residues dealt shares have several encodings
		if frame, err = r.unpack(r.row, row.prime, frame); err != nil {
			return round.Malformed(from, err)
		}
		r.fold(int(from), index, row, r.row, r.room)
	}
	return nil
}

func (r *dealt) Step(_ context.Context, in round.Inbox) (transition, error) {
	clear(r.row)
	clear(r.room)
	complaints := make([]byte, r.n)
	for from := range r.n {
		if from == r.self {
			continue
		}
		p := round.Party(from)
		bound := !r.sends(from, r.self) || in.Digest(p, nameShares) == r.given.Bound[from]
		//lodge:check bgvkeys/bound a dealer can choose its shares after it knows the coin
		if !bound && !r.Session.Omits(CheckBound) {
			return transition{}, &round.Blame{Party: p, Check: CheckBound, Reason: "sent other shares than those it was bound to"}
		}
		said, err := r.unpackAnnounced(p, in.Bytes(p, namePolynomial))
		if err != nil {
			return transition{}, err
		}
		//lodge:check bgvkeys/fits dealt shares need not match the announced polynomials
		if !r.fits(from, said) {
			complaints[from] = 1
		}
	}
	r.received.wipe()
	r.own.wipe()
	//lodge:check bgvkeys/degree [swap=complaints=>make([]byte, r.n)] [run=Degree] a party that
	//  received wrong shares does not complain
	return complaint.Hear(complaint.Hearing{
		Session: r.Session, Threshold: r.t, Name: nameComplaints, Check: CheckDegree, Mine: complaints,
	}, r.open), nil
}
