package masks

import (
	"context"
	"errors"

	"github.com/lodge-mpc/lodge/engine/ot"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// offers takes the offers of the parties after this one, and answers them.
type offers struct{ *run }

func (r offers) Wants() []round.Want {
	return r.higher(round.Want{Name: r.name("offer"), MaxBytes: ot.OfferSize})
}

func (r offers) Step(ctx context.Context, in round.Inbox) (round.Transition[*Batch], error) {
	first := int(r.Session.Self) + 1
	send := make([]round.Message, r.Session.Parties-first)
	err := parallel.Try(ctx, r.Workers, len(send), func(k int) error {
		p := round.Party(first + k)
		source := r.Source.Sub("sender", uint64(p))
		defer source.Wipe()
		sender, reply, err := ot.NewSender(r.pair(r.Session.Self, p), source, in.Bytes(p, r.name("offer")))
		if err != nil {
			//lodge:check masks/offer [swap=round.Malformed(p, err)=>err] the sender of an invalid
			//  offer is not blamed
			return round.Malformed(p, err)
		}
		r.senders[p] = sender
		sender.Batch().Reserve(r.transfers())
		send[k] = round.Message{To: p, Name: r.name("reply"), Body: round.Bytes(reply)}
		return nil
	})
	if err != nil {
		return round.Transition[*Batch]{}, err
	}
	return round.Next(round.Round[*Batch](replies(r)), send...), nil
}

// replies ends the base transfers, and extends them.
type replies struct{ *run }

func (r replies) Wants() []round.Want {
	return r.lower(round.Want{Name: r.name("reply"), MaxBytes: ot.ReplySize})
}

func (r replies) Step(ctx context.Context, in round.Inbox) (round.Transition[*Batch], error) {
	choices := r.choices()
	round.Own(r.Session, r.name("choices"), choices)
	send := make([]round.Message, r.Session.Self)
	err := parallel.Try(ctx, r.Workers, len(send), func(k int) error {
		p := round.Party(k)
		if err := r.receivers[p].Finish(in.Bytes(p, r.name("reply"))); err != nil {
			//lodge:check masks/reply [swap=round.Malformed(p, err)=>err] the sender of an invalid
			//  reply is not blamed
			return round.Malformed(p, err)
		}
		r.receivers[p].Batch().Reserve(r.transfers())
		frames := make([][]byte, ot.Chunks(r.transfers()))
		for i := range frames {
			frames[i] = r.receivers[p].Extend(choices[i*ot.ChunkSize/64:], ot.Chunk(r.transfers(), i))
		}
		send[k] = round.Message{
			To: p, Name: r.name("extension"),
			Body: round.FrameList(frames),
		}
		return nil
	})
	clear(choices)
	if err != nil {
		return round.Transition[*Batch]{}, err
	}
	return round.Next(round.Round[*Batch](&extensions{run: r.run}), send...), nil
}

// words are secret bits, 64 to a word.
type words []uint64

// Wipe erases the bits.
func (w words) Wipe() { clear(w) }

// choices are those of all transfers in their order: for each bit of moduli; then for each product
// xy those for the correlations x, which are y, and those for y, which are x.
func (r *run) choices() words {
	list := make([]uint64, 0, r.transfers()/64)
	for p := range r.moduli {
		list = append(list, r.bits[p]...)
	}
	for _, f := range r.factors {
		list = append(append(list, r.bits[f[1]]...), r.bits[f[0]]...)
	}
	return list
}

// extensions takes the chunks of the parties after this one as they arrive.
type extensions struct{ *run }

func (r *extensions) Wants() []round.Want {
	return r.higher(round.Want{
		Name: r.name("extension"), MaxFrames: ot.Chunks(r.transfers()), MaxBytes: r.extensionSize(), Stream: true,
	})
}

func (r *extensions) Frame(_ context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	//lodge:check masks/chunks some transfers can be missing
	if last != (index == ot.Chunks(r.transfers())-1) {
		return &round.Blame{Party: from, Check: round.CheckShape, Reason: "wrong number of chunks"}
	}
	err := r.senders[from].Extend(frame, ot.Chunk(r.transfers(), index))
	switch {
	//lodge:check masks/consistency a party with inconsistent choices is not blamed
	case errors.Is(err, ot.ErrConsistency):
		return &round.Blame{Party: from, Check: CheckConsistency, Reason: "its choices do not agree", Cause: err}
	case err != nil:
		//lodge:check masks/extension [swap=round.Malformed(from, err)=>err] the sender of a
		//  malformed extension is not blamed
		return round.Malformed(from, err)
	}
	return nil
}

func (r *extensions) Step(ctx context.Context, _ round.Inbox) (round.Transition[*Batch], error) {
	return r.begin(ctx)
}
