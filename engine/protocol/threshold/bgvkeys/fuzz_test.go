package bgvkeys

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// A frame of dealt or opened shares, or an announcement, is the unique encoding of its residues, or
// its sender is blamed.
func FuzzFrames(f *testing.F) {
	s := small(f)
	p := testPlan(f, s, 3, 1)
	c := &Config{Session: round.Session{Parties: 3}, Scheme: s, Threshold: 1, Galois: galois(s), Source: source("fuzz", 0)}
	q, err := newParty(c, round.Digest{})
	if err != nil {
		f.Fatal(err)
	}
	q.check = p.weights(round.Digest{})
	if q.keys, err = s.NewKeys(q.seed, q.galois); err != nil {
		f.Fatal(err)
	}
	f.Add(p.packSample(p.table()), 0)
	f.Add(p.packSample(p.table()), 1)
	f.Add(make([]byte, p.announcedSize()), 2)
	f.Fuzz(func(t *testing.T, data []byte, kind int) {
		var err error
		var again []byte
		rows := p.table()
		switch kind {
		case 0: // party 0 sends no shares to party 1, but party 1 sends shares to party 0
			r := &dealt{party: q, row: make([]uint64, p.width), room: make([]uint64, p.width)}
			err = r.Frame(context.Background(), 1, nameShares, 0, false, data)
		case 1:
			r := newOpened(q)
			r.rows = rows
			err = r.Frame(context.Background(), 1, nameOpened, 0, false, data)
		default:
			var values [][]uint64
			if values, err = p.unpackAnnounced(1, data); err == nil {
				again = p.packAnnounced(values)
			}
		}
		var blame *round.Blame
		if err != nil {
			if !errors.As(err, &blame) || blame.Party != 1 || blame.Check != round.CheckShape {
				t.Fatal(err)
			}
			return
		}
		if kind == 0 || kind == 1 {
			k := data
			for i, v := range rows {
				if k, err = p.unpack(v, i, k); err != nil {
					t.Fatal(err)
				}
			}
			again = p.packSample(rows)
		}
		if !bytes.Equal(again, data) {
			t.Error("accepted another encoding")
		}
	})
}
