package triple

import (
	"context"
	"errors"
	"io"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Input masks are random values that one party, their owner, knows. Only the owner proves
// ciphertexts; products with the MAC key are decrypted to shares as for other tuples. The value is
// the owner's 2x. With zeros for the other parties this would be a sharing, but an insecure one:
// when a sum of inputs is opened, each owner's share of the sum would be the input that its mask
// hides. So the parties add a random sharing of zero. For each ordered pair of parties l, m there
// is a stream that both know, of a seed that l draws and sends to m: l adds it to its share, and m
// subtracts it. Shares are uniform but for their sum as long as two parties keep their seed to
// themselves. A party that uses a stream other than the one that it sent or received only has a
// wrong share, which the MAC check detects.

// seedWant is the message with the seed of a pair of parties.
var seedWant = round.Want{Name: "triple/seed", MaxBytes: sample.SeedSize}

// drawSeeds draws a seed for each other party; its own place is nil.
func (r *batch) drawSeeds() [][]byte {
	source := r.Source.Sub("zero sharing")
	defer source.Wipe()
	drawn := make([][]byte, r.Session.Parties)
	for p := range drawn {
		if round.Party(p) == r.Session.Self {
			continue
		}
		drawn[p] = make([]byte, sample.SeedSize)
		if _, err := io.ReadFull(source.Stream("seed", uint64(p)), drawn[p]); err != nil {
			panic(err) // a stream does not fail
		}
	}
	return drawn
}

// seedMessages are the seeds, each to its party.
func seedMessages(drawn [][]byte) (send []round.Message) {
	for p, seed := range drawn {
		if seed != nil {
			send = append(send, round.Message{To: round.Party(p), Name: seedWant.Name, Body: round.Bytes(seed)})
		}
	}
	return send
}

// spread randomises the shares: before, the owner's are the values and the other parties' are zero.
func (r *batch) spread(ctx context.Context, drawn [][]byte, in round.Inbox) error {
	var added, subtracted []*sample.Source
	defer func() {
		for _, s := range append(added, subtracted...) {
			s.Wipe()
		}
	}()
	for p, own := range drawn {
		if own == nil {
			continue
		}
		got := in.Bytes(round.Party(p), seedWant.Name)
		//lodge:check triple/seed-length [swap=len(got) != sample.SeedSize=>len(got) >
		//  sample.SeedSize] [run=Input] a truncated seed is accepted
		if len(got) != sample.SeedSize {
			return round.Malformed(round.Party(p), errors.New("a seed of the wrong length"))
		}
		added, subtracted = append(added, sample.NewSource(own)), append(subtracted, sample.NewSource(got))
	}
	if r.Session.Self == r.Plan.Owner {
		for _, v := range r.a {
			r.clear = append(r.clear, v.Clone())
		}
	}
	f := r.Scheme.Field
	return parallel.Try(ctx, r.Workers, len(r.a), func(i int) error {
		t := f.NewVec(r.a[i].Len())
		defer t.Wipe()
		each := func(list []*sample.Source, apply func(dst, a, b field.Vec)) {
			for _, s := range list {
				stream := s.Stream("share", uint64(i))
				fillRandom(f, t, stream)
				stream.Wipe()
				apply(r.a[i], r.a[i], t)
			}
		}
		each(added, f.AddVec)
		each(subtracted, f.SubVec)
		return nil
	})
}
