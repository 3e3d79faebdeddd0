package dealing

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/table"
	"github.com/lodge-mpc/lodge/engine/share"
)

// Bench is the workspace in which a dealer makes one row: the secrets, and the shares by party.
type Bench struct {
	Secrets, Room []uint64
	shares        [][]uint64
}

// NewBench returns a workspace for rows of the given width.
func NewBench(parties, width int) *Bench {
	rows := table.New(parties+2, width)
	return &Bench{rows[parties], rows[parties+1], rows[:parties]}
}

// Wipe erases the secrets and the shares.
func (b *Bench) Wipe() {
	clear(b.Secrets)
	clear(b.Room)
	table.Wipe(b.shares)
}

// Deal expands the shares of the parties that have seeds, and computes the shares of the parties in
// to for the secrets in the workspace. The result holds only these shares, and nil otherwise.
func (b *Bench) Deal(d *share.Dealing, expand func(dst []uint64, party int), to ...int) [][]uint64 {
	shares := make([][]uint64, len(b.shares))
	for _, p := range d.Seeded() {
		shares[p] = b.shares[p]
		expand(shares[p], p)
	}
	for _, p := range to {
		shares[p] = b.shares[p]
	}
	d.Deal(shares, b.Secrets)
	return shares
}

// Digests computes all frames of a dealer's messages once, and returns the digest of each party's
// message. frame returns frame f for each party that receives it.
func Digests(
	ctx context.Context, workers, frames, parties int, name string, frame func(f int) (to []int, list [][]byte),
) ([]round.Digest, error) {
	each := make([]map[int]round.Digest, frames)
	err := parallel.Try(ctx, workers, frames, func(f int) error {
		each[f] = map[int]round.Digest{}
		to, list := frame(f)
		for i, b := range list {
			each[f][to[i]] = round.FrameDigest(b)
			clear(b)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sums := make([]round.Digest, parties)
	for p := range sums {
		h, any := round.NewHasher(name), false
		for _, digests := range each {
			if d, ok := digests[p]; ok {
				h.FrameDigest(d)
				any = true
			}
		}
		if any {
			sums[p] = h.Sum()
		}
	}
	return sums, nil
}
