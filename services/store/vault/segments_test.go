package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Tuples of every size come back as they were written, in pieces of any size.
func TestSegmentSizes(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 1)
	for i, c := range []struct {
		tuple, count uint64
	}{
		{1, 1}, {1, 200_000}, {96, 681}, {96, 682}, {96, 683}, {96, 3000}, {stock.SegmentBytes, 3}, {stock.SegmentBytes + 1, 2},
		{stock.SegmentBytes - 1, 3}, {2 * stock.SegmentBytes, 2}, {200_001, 3},
	} {
		b := batchOf(fmt.Sprintf("b%d", i), c.count)
		b.TupleBytes = c.tuple
		must(t, storeBatch(v, b, nil))
		s, err := v.OpenShelf(&b)
		must(t, err)
		want := shares(b.ID, stock.Span{First: 0, Count: c.count}, int(c.tuple))
		for _, span := range []stock.Span{
			{First: 0, Count: c.count}, {First: c.count - 1, Count: 1}, {First: c.count / 2, Count: c.count - c.count/2}, {},
		} {
			r := s.ReadSpan(span, nil)
			var got []byte
			for p := make([]byte, 7777); err == nil; {
				var n int
				n, err = r.Read(p)
				got = append(got, p[:n]...)
			}
			if err != io.EOF || !bytes.Equal(got, want[span.First*c.tuple:span.End()*c.tuple]) {
				t.Errorf("%d tuples of %d, %v: %d bytes, %v", c.count, c.tuple, span, len(got), err)
			}
			err = nil
		}
		must(t, s.CloseBlobs())
	}
}

// slotsOf reads the slots of a batch from its file.
func slotsOf(t *testing.T, dir string, b stock.Batch) [][]byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(dir, b.KeyBlob()))
	must(t, err)
	var slots [][]byte
	for rest := file[seal.HeaderBlock:]; len(rest) > 0; rest = rest[stock.SlotBytes:] {
		slots = append(slots, rest[:stock.SlotBytes])
	}
	return slots
}

// Erased shares cannot be read from the files: the encrypted keys of their segments are
// overwritten, and a segment that is kept in part is stored again under a fresh key, without the
// erased shares.
func TestErasedInPart(t *testing.T) {
	v, dir := newVaultIn(t)
	stocked(t, v, 3000) // of 682 in a segment: five, the last of 272
	before := slotsOf(t, dir, batchOf("batch-0", 3000))
	reserve(t, v, "kept", in(0, 0, 600), in(0, 2000, 200))
	gone := reserve(t, v, "gone", in(0, 600, 1400))
	_, err := fetch(v, "gone", "alice")
	must(t, err)
	got, err := fetch(v, "kept", "bob")
	wantShares(t, got, err, in(0, 0, 600), in(0, 2000, 200))
	_, err = v.Release("gone", true)
	must(t, err)
	b, err := v.Batch("batch-0")
	must(t, err)
	if b.Gone.Count() != 1400 || b.Wiped.Count() != 1400 || b.Lost != 0 {
		t.Errorf("%+v", b)
	}
	after := slotsOf(t, dir, b)
	var all []byte
	for _, name := range []string{b.KeyBlob(), b.DataBlob()} {
		file, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		all = append(all, file...)
	}
	for i, changed := range []bool{true, true, true, false, false} { // 0-681, 682-1363, 1364-2045, ...
		if bytes.Equal(before[i], after[i]) == changed {
			t.Errorf("slot %d: changed is %v", i, !changed)
		}
		if changed && bytes.Contains(all, before[i][:stock.SlotFixed+seal.KeyLen]) {
			t.Errorf("the old slot %d is still there", i)
		}
	}
	if !bytes.Equal(after[1], make([]byte, stock.SlotBytes)) {
		t.Error("the slot of a segment that is erased whole is not zero")
	}
	// The others read on, and the erased do not, by any path.
	got, err = fetch(v, "kept", "bob")
	wantShares(t, got, err, in(0, 0, 600), in(0, 2000, 200))
	_, err = fetch(v, "gone", "alice")
	refused(t, err, vaulterr.ErrExpired)
	stale := gone
	for _, x := range []stock.Range{in(0, 600, 1), in(0, 681, 1), in(0, 1000, 1), in(0, 1999, 1), in(0, 599, 2), in(0, 1999, 2)} {
		stale.Ranges = []stock.Range{x}
		_, err = readAll(v, &stale, 0)
		refused(t, err, vaulterr.ErrErased)
	}
	s, err := v.OpenShelf(&b)
	must(t, err)
	defer s.CloseBlobs()
	for i, zeros := range map[uint64]stock.Span{0: {First: 600, Count: 82}, 2: {First: 0, Count: 636}} {
		plain, at, err := s.Segment(i, after[i], nil)
		must(t, err)
		if at.Other == stock.NoPlace {
			t.Errorf("segment %d was not moved", i)
		}
		if part := plain[zeros.First*tupleLen : zeros.End()*tupleLen]; !bytes.Equal(part, make([]byte, len(part))) {
			t.Errorf("segment %d still has erased shares", i)
		}
	}
	_, err = v.Reserve(reservation(v, "s", in(0, 700, 1)))
	refused(t, err, vaulterr.ErrTaken)
	reserve(t, v, "t", in(0, 2200, 800))
	got, err = fetch(v, "t", "carol")
	wantShares(t, got, err, in(0, 2200, 800))
}

// A batch whose tuples are all gone is erased whole.
func TestErasedWhole(t *testing.T) {
	v, dir := newVaultIn(t)
	stocked(t, v, 1500)
	for i, x := range []stock.Range{in(0, 700, 800), in(0, 0, 300), in(0, 300, 400)} {
		id := fmt.Sprintf("r%d", i)
		reserve(t, v, id, x)
		got, err := fetch(v, id, "alice")
		wantShares(t, got, err, x)
		_, err = v.Release(id, true)
		must(t, err)
	}
	b, err := v.Batch("batch-0")
	must(t, err)
	if b.State != stock.BatchConsumed || b.Wiped.Count() != 1500 || b.Lost != 0 {
		t.Errorf("%+v", b)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 3 { // the epoch's two, the MAC key
		t.Errorf("%v, %v", files, err)
	}
}

// Readers of other tuples see nothing of a concurrent erasure: no error, and no other byte.
func TestReadWhileErasing(t *testing.T) {
	v := inMemory(t)
	const count, step = 682 * 3, 22
	stocked(t, v, count)
	var kept []stock.Range
	for first := uint64(0); first < count; first += 2 * step {
		kept = append(kept, in(0, first, step))
	}
	reserve(t, v, "kept", kept...)
	r, _, err := v.Deliver("kept", "alice", 0)
	must(t, err)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for n := 0; ; n++ {
				got, err := readAll(v, &r, 0)
				if err != nil || !bytes.Equal(got, expected(kept)) {
					t.Errorf("reading %d: %d bytes, %v", n, len(got), err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
	}
	for first := uint64(step); first+step <= count; first += 2 * step {
		id := fmt.Sprintf("gone-%d", first)
		reserve(t, v, id, in(0, first, step))
		_, err := v.Release(id, true)
		must(t, err)
	}
	close(stop)
	readers.Wait()
}

// A reader that is in the middle of tuples when they are erased gets an error, and never zeros for
// shares.
func TestReadOfWhatIsBeingErased(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 682*2)
	reserve(t, v, "r", in(0, 100, 1000))
	r, _, err := v.Deliver("r", "alice", 0)
	must(t, err)
	in0, _, err := v.Shares(&r, 0)
	must(t, err)
	defer in0.Close()
	p := make([]byte, tupleLen*582) // the first segment's
	_, err = io.ReadFull(in0, p)
	must(t, err)
	_, err = v.Release("r", true)
	must(t, err)
	rest, err := io.ReadAll(in0)
	if !errors.Is(err, vaulterr.ErrErased) || len(rest) != 0 {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
}

// A stream sees changes of its batch: it never returns zeros for tuples that were erased in part of
// a segment.
func TestReadAfterErasure(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 100)
	reserve(t, v, "other", in(0, 50, 1))
	_, err := v.Release("other", true) // the segment is erased in part from now on
	must(t, err)
	r := reserve(t, v, "r", in(0, 0, 1), in(0, 10, 1), in(0, 20, 1))
	r, _, err = v.Deliver("r", "alice", 0)
	must(t, err)
	s, _, err := v.Shares(&r, 0)
	must(t, err)
	defer s.Close()
	got := make([]byte, 2*tupleLen)
	_, err = io.ReadFull(s, got)
	wantShares(t, got, err, r.Ranges[:2]...)
	_, err = v.Release("r", true)
	must(t, err)
	if n, err := s.Read(got); n > 0 || !errors.Is(err, vaulterr.ErrErased) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A damaged segment blocks no other, is erased with the erased tuples, and is counted.
func TestDamagedSegment(t *testing.T) {
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	stocked(t, v, 682*3)
	b, err := v.Batch("batch-0")
	must(t, err)
	reserve(t, v, "other", in(0, 682, 10))
	reserve(t, v, "fine", in(0, 0, 10))
	reserve(t, v, "gone", in(0, 700, 10))
	data := d.blobs[b.DataBlob()]
	data[int(stock.SealedSize(682*tupleLen))+5] ^= 1
	_, err = fetch(v, "other", "alice")
	refused(t, err, vaulterr.ErrCorrupt)
	got, err := fetch(v, "fine", "bob")
	wantShares(t, got, err, in(0, 0, 10))
	_, err = v.Release("gone", true)
	must(t, err)
	_, err = fetch(v, "other", "alice")
	refused(t, err, vaulterr.ErrErased)
	_, err = v.Reserve(reservation(v, "s", in(0, 682+681, 1)))
	refused(t, err, vaulterr.ErrTaken)
	b, err = v.Batch("batch-0")
	must(t, err)
	if b.Lost != 10+(682-20) { // the ten erased tuples, and the free ones in their segment
		t.Errorf("%d lost", b.Lost)
	}
	_, err = v.Release("other", true) // delivered, as far as it is recorded
	must(t, err)
	reserve(t, v, "t", in(0, 10, 672), in(0, 682*2, 682))
	got, err = fetch(v, "t", "carol")
	wantShares(t, got, err, in(0, 10, 672), in(0, 682*2, 682))
	for _, id := range []string{"fine", "t"} {
		_, err = v.Release(id, true)
		must(t, err)
	}
	if b, err = v.Batch("batch-0"); err != nil || b.State != stock.BatchConsumed {
		t.Errorf("%+v, %v", b, err)
	}
}

// A storage that does not answer is not a damaged segment.
func TestStorageThatFailsIsNotDamage(t *testing.T) {
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	stocked(t, v, 2000)
	reserve(t, v, "gone", in(0, 0, 10))
	broken := true
	d.fault = func(_ int, where string) fault {
		if broken && where == "write" {
			return fails
		}
		return works
	}
	_, err := v.Release("gone", true)
	refused(t, err, errFull)
	refused(t, v.Sweep(), errFull)
	v = d.open(t, k) // it opens nevertheless
	refused(t, v.Sweep(), errFull)
	broken = false
	must(t, v.Sweep())
	b, err := v.Batch("batch-0")
	must(t, err)
	if b.Wiped.Count() != 10 || b.Lost != 10 {
		t.Errorf("%+v", b)
	}
}

func FuzzSlot(f *testing.F) {
	v := inMemory(f)
	b := batchOf("b", 2000)
	stocked(f, v)
	w, err := v.CreateSegments(&b)
	must(f, err)
	good := (&stock.Slot{Offset: 7, Other: stock.NoPlace, Key: [seal.KeyLen]byte{1, 2, 3}}).Encode(w.Wrap, 1)
	f.Add(good, 0, byte(0), uint64(1))
	f.Add(good, 3, byte(1), uint64(1))
	f.Add(good, 12, byte(1), uint64(1))
	f.Add(good, 70, byte(1), uint64(1))
	f.Add(good, 0, byte(0), uint64(2))
	f.Add(make([]byte, stock.SlotBytes), 0, byte(0), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, at int, flip byte, segment uint64) {
		sealedSlot := make([]byte, stock.SlotBytes)
		copy(sealedSlot, b)
		sealedSlot[uint(at)%stock.SlotBytes] ^= flip
		s, err := stock.DecodeSlot(sealedSlot, w.Wrap, segment)
		const used = stock.SlotFixed + 24 + seal.KeyLen + 16
		if same := bytes.Equal(sealedSlot[:used], good[:used]) && segment == 1; same != (err == nil) {
			t.Fatalf("%x: %+v, %v", sealedSlot, s, err)
		}
		if err != nil && !errors.Is(err, vaulterr.ErrCorrupt) && !errors.Is(err, vaulterr.ErrErased) {
			t.Error(err)
		}
		if zero := bytes.Equal(sealedSlot, make([]byte, stock.SlotBytes)); zero != errors.Is(err, vaulterr.ErrErased) {
			t.Errorf("zeros: %v, %v", zero, err)
		}
	})
}
