package masks

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// numbered returns a batch whose record i contains i, as far as its bits allow.
func numbered(k Kind, n int) *Batch {
	v := newValues(k, n)
	for i := range n {
		v.R[i] = uint64(i) % k.Eta()
		if k.Form == Exact {
			v.D[i] = uint64(i) % k.P()
			for p, plane := range v.all() {
				plane[i/64] |= uint64(i>>(p%4)&1) << (i % 64)
			}
		}
	}
	return &Batch{kind: k, id: round.Digest{1}, data: encode(k, v, n)}
}

func equal(a, b *Values) bool {
	return slices.Equal(a.R, b.R) && slices.Equal(a.D, b.D) && slices.EqualFunc(a.all(), b.all(), slices.Equal[[]uint64])
}

var kinds = []Kind{
	paperKind(50, 46), paperKind(53, 49), paperKind(61, 57), exactKind(10, 6), exactKind(32, 16), exactKind(3, 1),
	exactKind(12, 8),
	OddKind(3, 1), OddKind(257, 4), OddKind(65537, 5), OddKind(2130706433, 16), OddKind(1<<57-13, 4), OddKind(1<<45-1, 16),
}

func TestRecordsMove(t *testing.T) {
	for _, k := range kinds {
		whole := numbered(k, 300)
		want := decode(k, whole.data)
		taken, err := whole.Take(100)
		if err != nil || taken.Count() != 100 || whole.Count() != 200 || taken.First() != 0 || whole.First() != 100 {
			t.Fatalf("%v: %v", k, err)
		}
		data, err := whole.Export()
		if err != nil || len(data) != 200*k.RecordSize() {
			t.Fatalf("%v: %d bytes, %v", k, len(data), err)
		}
		back, err := Import(k, whole.ID(), 100, bytes.Clone(data))
		if err != nil {
			t.Fatal(err)
		}
		a, _ := taken.Spend()
		b, err := back.Spend()
		if err != nil || !slices.Equal(slices.Concat(a.R, b.R), want.R) || !slices.Equal(slices.Concat(a.D, b.D), want.D) {
			t.Errorf("%v: the records changed: %v", k, err)
		}
		if !bytes.Equal(encode(k, b, 200), data) {
			t.Errorf("%v: the encoding changed", k)
		}
		for name, gone := range map[string]*Batch{"exported": whole, "spent": back, "taken and spent": taken} {
			_, spend := gone.Spend()
			_, take := gone.Take(1)
			_, export := gone.Export()
			for _, err := range []error{spend, take, export} {
				if !errors.Is(err, ErrSpent) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		all := numbered(k, 10)
		if v, err := all.Spend(); err != nil || !equal(v, decode(k, numbered(k, 10).data)) {
			t.Errorf("%v: %v", k, err)
		}
	}
}

// Records of several batches become one batch, whose ID depends on the records. Each record is in
// one batch at a time.
func TestRecordsJoin(t *testing.T) {
	for _, k := range kinds {
		pieces := func() []*Batch { // 200 of the 300 records of one batch, and another batch
			whole := numbered(k, 300)
			a, _ := whole.Take(70)
			_, _ = whole.Take(100)
			other := numbered(k, 64)
			other.id[0]++
			return []*Batch{a, whole, other}
		}
		want := decode(k, slices.Concat(numbered(k, 300).data[:70*k.RecordSize()], numbered(k, 300).data[170*k.RecordSize():], numbered(k, 64).data))
		list := pieces()
		joined, err := Join(list...)
		if err != nil || joined.Count() != 70+130+64 || joined.Kind() != k || joined.First() != 0 {
			t.Fatalf("%v: %v", k, err)
		}
		if v, err := joined.Spend(); err != nil || !equal(v, want) {
			t.Errorf("%v: the records changed: %v", k, err)
		}
		for _, b := range list {
			if _, err := b.Spend(); !errors.Is(err, ErrSpent) {
				t.Errorf("%v: joined records are still in their batch: %v", k, err)
			}
		}
		seen := map[round.Digest]bool{}
		for i, order := range [][]int{{0}, {2}, {0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {0, 1}, {1, 2}} {
			p := pieces()
			list := list[:0]
			for _, x := range order {
				list = append(list, p[x])
			}
			if j, err := Join(list...); err != nil || seen[j.ID()] {
				t.Errorf("%v: join %d has the ID of another: %v", k, i, err)
			} else {
				seen[j.ID()] = true
			}
		}
	}
	a, b, gone := numbered(kinds[0], 5), numbered(kinds[1], 5), numbered(kinds[0], 5)
	gone.Wipe()
	for name, c := range map[string]struct {
		list []*Batch
		want error
	}{
		"none": {nil, ErrCount}, "of two kinds": {[]*Batch{a, b}, ErrKind}, "spent": {[]*Batch{numbered(kinds[0], 5), gone}, ErrSpent},
	} {
		if _, err := Join(c.list...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	twice := numbered(kinds[0], 5)
	if _, err := Join(twice, twice); !errors.Is(err, ErrSpent) {
		t.Errorf("the same records twice: %v", err)
	}
}

func TestTakeChecksTheCount(t *testing.T) {
	b := numbered(kinds[0], 5)
	for _, n := range []int{0, -1, 6} {
		if _, err := b.Take(n); !errors.Is(err, ErrCount) {
			t.Errorf("%d of 5: %v", n, err)
		}
	}
	if _, err := b.Take(5); err != nil || b.Count() != 0 {
		t.Error(err)
	}
	if _, err := b.Spend(); !errors.Is(err, ErrSpent) {
		t.Errorf("an empty batch: %v", err)
	}
}

func TestEncodingsAreRefused(t *testing.T) {
	k := exactKind(10, 6) // 29 bits in 4 bytes
	good, _ := numbered(k, 3).Export()
	for name, data := range map[string][]byte{"nothing": {}, "one byte missing": good[1:], "padding": {0, 0, 0, 0x20}} {
		if _, err := Import(k, round.Digest{}, 0, data); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Import(Kind{}, round.Digest{}, 0, good); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	// Shares that are not residues: R is the lowest 12 bits of 32, D the highest 9.
	odd := OddKind(257, 3)
	whole := numbered(odd, 1)
	for name, v := range map[string]*Values{
		"R": {R: []uint64{257 * 8}, D: []uint64{256}}, "D": {R: []uint64{257*8 - 1}, D: []uint64{257}},
		"": {R: []uint64{257*8 - 1}, D: []uint64{256}},
	} {
		other := newValues(odd, 1)
		other.R, other.D = v.R, v.D
		if _, err := Import(odd, whole.ID(), 0, encode(odd, other, 1)); errors.Is(err, ErrEncoding) != (name != "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecordsAreNotShown(t *testing.T) {
	b := numbered(kinds[0], 5)
	v, _ := numbered(kinds[0], 5).Spend()
	for _, s := range []string{fmt.Sprint(b), fmt.Sprintf("%+v %#v %x", b, b, b), fmt.Sprintf("%d %v %+v", v, v, v)} {
		if strings.Trim(s, " ") == "" || strings.ContainsAny(s, "0123456789{") {
			t.Errorf("formatting reveals %s", s)
		}
	}
	data := b.data
	b.Wipe()
	v.Wipe()
	if slices.Max(data) != 0 || slices.Max(v.R) != 0 {
		t.Error("the records were not erased")
	}
	if _, err := b.Spend(); !errors.Is(err, ErrSpent) {
		t.Error(err)
	}
}

// Decoding accepted bytes and encoding the result returns the same bytes.
func FuzzRecords(f *testing.F) {
	for i, k := range kinds {
		data, _ := numbered(k, 3).Export()
		f.Add(i, data)
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		k := kinds[uint(i)%uint(len(kinds))]
		b, err := Import(k, round.Digest{}, 0, bytes.Clone(data))
		if err != nil {
			return
		}
		n := b.Count()
		v, err := b.Spend()
		if err != nil || !bytes.Equal(encode(k, v, n), data) {
			t.Fatalf("%v: %v", k, err)
		}
	})
}
