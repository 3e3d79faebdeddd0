package lwekeys

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/complaint"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/table"
)

// fuzzed returns party 0 of three, ready to receive messages of party 1.
func fuzzed(f *testing.F) *party {
	f.Helper()
	c := &Config{Session: round.Session{Parties: 3}, Scheme: small(), Threshold: 1, Source: source("fuzz", 0)}
	p, err := newParty(c, round.Digest{})
	if err != nil {
		f.Fatal(err)
	}
	p.check = p.weights(round.Digest{})
	return p
}

// blames fails the test unless party 1 is blamed for the shape of its message.
func blames(t *testing.T, err error) {
	t.Helper()
	var blame *round.Blame
	if !errors.As(err, &blame) || blame.Party != 1 || blame.Check != round.CheckShape {
		t.Errorf("got %v", err)
	}
}

// messages adds a valid message and some invalid ones.
func messages(f *testing.F, valid []byte) {
	f.Add(valid)
	f.Add(valid[1:])
	f.Add(append(bytes.Clone(valid), 0))
	f.Add(bytes.Repeat([]byte{0xff}, len(valid)))
	f.Add([]byte(nil))
}

// A frame of shares, for a king or dealt, is the unique encoding of its rows, or its sender is
// blamed.
func FuzzShares(f *testing.F) {
	p := fuzzed(f)
	rows := table.New(p.lowRows(), p.width)
	valid := p.pack(nil, rows)
	messages(f, valid)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &dealt{party: p, row: make([]uint64, p.width), room: make([]uint64, p.width)}
		err := r.Frame(context.Background(), 1, nameShares, 0, true, data)
		if err != nil {
			blames(t, err)
			return
		}
		for k := range rows {
			if err := p.unpack(rows[k], data, k); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(p.pack(nil, rows), data) {
			t.Error("accepted another encoding")
		}
	})
}

// A frame of opened values is the unique encoding of its rows, or the king is blamed.
func FuzzValues(f *testing.F) {
	p := fuzzed(f)
	mine, opened := table.New(p.dim, p.width), table.New(p.dim, p.width)
	o := p.opening("products", 2, mine, opened)
	from, to := p.slice(1, p.dim)
	messages(f, p.pack(nil, mine[from:to]))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &proclaimed{o, make([]uint64, p.width)}
		if err := r.Frame(context.Background(), 1, o.valuesName(), 0, true, data); err != nil {
			blames(t, err)
		} else if !bytes.Equal(p.pack(nil, opened[from:to]), data) {
			t.Error("accepted another encoding")
		}
	})
}

// A list of complaints has one byte for each party and names only other parties, or is rejected.
func FuzzComplaints(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0})
	f.Add([]byte{1, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		good := len(data) == 5 && data[1] == 0 && bytes.Count(data, []byte{0})+bytes.Count(data, []byte{1}) == 5
		if err := complaint.Note(make([][]int, 5), data, 1); (err == nil) != good {
			t.Errorf("%v: %v", data, err)
		}
	})
}
