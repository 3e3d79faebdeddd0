package masks

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// complete returns the records, or continues by opening some records.
func (r *run) complete(_ context.Context) (round.Transition[*Batch], error) {
	values := r.values()
	defer values.Wipe()
	used := r.Count + r.Sacrifice
	data := encode(r.Kind, values, used)
	if r.Sacrifice == 0 {
		return round.Done(r.batch(data)), nil
	}
	o := &opening{run: r, data: data}
	r.Session.Secrets.Own(o)
	t, err := round.CoinToss(r.Session, r.name("coin"), r.Source.Stream("coin"))
	if err != nil {
		return round.Transition[*Batch]{}, err
	}
	return round.Then(t, func(_ context.Context, coin round.Digest) (round.Transition[*Batch], error) {
		o.chosen = choose(coin, used, r.Sacrifice)
		return round.Next(round.Round[*Batch](o), round.Broadcast(r.name("opened"), o.message())), nil
	}), nil
}

func (r *run) batch(data []byte) *Batch {
	return &Batch{kind: r.Kind, id: r.batchID(), data: data}
}

// choose returns k of n indices, each selection with equal probability: the first k of a shuffle.
func choose(coin round.Digest, n, k int) []int {
	stream := round.XOF("lodge masks opened", coin[:])
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	for i := range k {
		at := i + below(stream, n-i)
		list[i], list[at] = list[at], list[i]
	}
	return list[:k]
}

// below returns a uniform number in [0, n).
func below(stream io.Reader, n int) int {
	limit := ^uint64(0) - ^uint64(0)%uint64(n) // a multiple of n
	for {
		var b [8]byte
		_, _ = io.ReadFull(stream, b[:]) // an XOF never ends
		if v := binary.LittleEndian.Uint64(b[:]); v < limit {
			return int(v % uint64(n))
		}
	}
}

// opening is the round in which the parties receive the openings of the chosen records.
type opening struct {
	*run
	data   []byte // all records
	chosen []int
}

// Wipe erases the records that were not returned.
func (r *opening) Wipe() { clear(r.data) }

// planesSize returns the bytes of the bits from which a record was made. They follow an opened
// record.
func (r *opening) planesSize() int { return (r.Kind.planes() + 7) / 8 }

func (r *opening) size() int { return len(r.chosen) * (r.Kind.RecordSize() + r.planesSize()) }

// message opens this party's part of the chosen records: each encoded record, followed by the bits
// that this party contributed.
func (r *opening) message() []byte {
	size := r.Kind.RecordSize()
	m := make([]byte, 0, r.size())
	for _, i := range r.chosen {
		m = append(m, r.data[i*size:(i+1)*size]...)
		own := make([]byte, r.planesSize())
		for p, plane := range r.bits {
			own[p/8] |= byte(bit(plane, i)) << (p % 8)
		}
		m = append(m, own...)
	}
	return m
}

func (r *opening) Wants() []round.Want {
	return r.Session.Each(round.Want{Name: r.name("opened"), MaxBytes: int64(r.size()), Broadcast: true})
}

func (r *opening) Step(_ context.Context, in round.Inbox) (round.Transition[*Batch], error) {
	messages := make([][]byte, r.Session.Parties)
	for p := range round.Party(r.Session.Parties) {
		if messages[p] = r.message(); p != r.Session.Self {
			messages[p] = in.Bytes(p, r.name("opened"))
		}
		//lodge:check masks/opened [swap=len(messages[p]) != r.size()=>len(messages[p]) > r.size()]
		//  shorter opened records pass
		if len(messages[p]) != r.size() {
			blame := &round.Blame{Party: p, Check: round.CheckShape, Reason: "wrong length of opened records"}
			return round.Transition[*Batch]{}, blame
		}
	}
	for i := range r.chosen {
		//lodge:check masks/mask opened records need not be correct
		if !r.right(messages, i) {
			return round.Transition[*Batch]{}, &round.Abort{Check: CheckMask, Reason: "an opened record is wrong"}
		}
	}
	return round.Done(r.batch(r.rest())), nil
}

// rest returns the records that were not opened, and erases the original of all records.
func (r *opening) rest() []byte {
	size := r.Kind.RecordSize()
	opened := make(map[int]bool, len(r.chosen))
	for _, i := range r.chosen {
		opened[i] = true
	}
	rest := make([]byte, 0, r.Count*size)
	for i := range r.Count + r.Sacrifice {
		if !opened[i] {
			rest = append(rest, r.data[i*size:(i+1)*size]...)
		}
	}
	r.Wipe()
	return rest
}

// right adds up the parties' parts of opened record i, and reports whether the result matches its
// bits.
func (r *opening) right(messages [][]byte, i int) bool {
	k, size := r.Kind, r.Kind.RecordSize()
	each := size + r.planesSize()
	var sum, d uint64 // modulo eta and p
	bits := make([]uint64, k.planes())
	planes := make([]uint64, k.recordBits()+1) // more than Values.all returns
	for _, m := range messages {
		m = m[i*each : (i+1)*each]
		part := decode(k, m[:size])
		sum = (sum + part.R[0]) % k.Eta()
		for p, plane := range part.all() {
			planes[p] ^= plane[0]
		}
		if k.Form == Exact {
			d = (d + part.D[0]) % k.P()
		}
		for p := range bits {
			bits[p] ^= uint64(m[size+p/8] >> (p % 8) & 1)
		}
	}
	var want uint64
	for p := range k.LogPhi {
		b := bits[p] << p
		if k.Form == Paper && p == k.LogPhi-1 {
			b = -b
		}
		want += b
	}
	good := sum == want%k.Eta() // if want is negative, eta is a power of two
	if k.Form == Paper {
		return good
	}
	good = good && d == bits[k.LogPhi]
	expected := append([]uint64(nil), bits[:k.LogPhi]...)
	for g, f := range k.factors() {
		product := bits[f[0]] & bits[f[1]]
		if g >= k.Products() {
			expected = append(expected, bits[f[0]], bits[f[1]])
		}
		expected = append(expected, product)
	}
	expected = append(expected, bits[k.LogPhi])
	for p := range expected {
		good = good && planes[p] == expected[p]
	}
	return good
}
