package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func open(t testing.TB, dir string, o Options) *Log {
	t.Helper()
	if o.Party == "" {
		o.Party = "alice"
	}
	l, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// write makes a log of n entries and closes it.
func write(t testing.TB, dir string, n int, fileSize int64) Head {
	t.Helper()
	l := open(t, dir, Options{FileSize: fileSize})
	for i := range n {
		if _, err := l.Append(Entry{Actor: "mpc", Auth: Certificate, Event: Reserved, Objects: []string{fmt.Sprint("r-", i)}, Count: uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Head()
}

func TestChainGoesOnAcrossFilesAndProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	first := write(t, dir, 10, 2000)
	second := write(t, dir, 10, 2000)
	if first.Seq != 10 || second.Seq != 20 {
		t.Fatalf("heads %v, %v", first, second)
	}
	sum, err := Verify(dir, first.Hash, second.Hash)
	if err != nil || sum.Entries != 20 || sum.First != 1 || sum.Head != second || sum.Files < 3 {
		t.Errorf("%+v, %v", sum, err)
	}
	l := open(t, dir, Options{Known: []Hash{first.Hash, second.Hash}})
	if l.Head() != second {
		t.Errorf("head %v", l.Head())
	}
	for from := range uint64(22) {
		for _, limit := range []int{0, 1, 7, 100} {
			page, err := l.Entries(from, limit)
			if err != nil {
				t.Fatal(err)
			}
			begin := max(from, 1)
			if want := min(max(21-int(begin), 0), limit); len(page) != want {
				t.Fatalf("%d from %d: %d entries", limit, from, len(page))
			}
			for i, e := range page {
				if e.Seq != begin+uint64(i) || e.Party != "alice" || e.Objects[0] != fmt.Sprint("r-", (e.Seq-1)%10) {
					t.Errorf("entry %+v at %d from %d", e, i, from)
				}
			}
		}
	}
	for n := 1; n < 25; n++ {
		tail, err := Tail(dir, n)
		if err != nil || len(tail) != min(n, 20) || tail[len(tail)-1].Hash != second.Hash || tail[0].Seq != uint64(21-min(n, 20)) {
			t.Errorf("tail of %d: %d entries, %v", n, len(tail), err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	// A single file from the middle is a chain that starts at a later entry.
	tail, err := Tail(filepath.Join(dir, fileName(1)), 1)
	if err != nil {
		t.Fatal(err)
	}
	part, err := Verify(filepath.Join(dir, fileName(2)), tail[0].Hash)
	if err != nil || part.First != tail[0].Seq+1 || part.Files != 1 {
		t.Errorf("%+v, %v", part, err)
	}
}

// Pages are right even if the remembered offsets are far apart.
func TestPagesOfALongFile(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	const n = 3*markEvery + 10
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := l.Append(Entry{Event: Reserved}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, from := range []uint64{1, markEvery, markEvery + 1, 2*markEvery + 1, n} {
		page, err := l.Entries(from, 2*markEvery)
		if err != nil || len(page) != min(2*markEvery, n+1-int(from)) || page[0].Seq != from {
			t.Errorf("from %d: %d entries, %v", from, len(page), err)
		}
	}
	if page, err := l.Entries(1, n); err != nil || len(page) != n {
		t.Errorf("%d entries, %v", len(page), err)
	}
}

// After concurrent calls of Append the log has every entry exactly once, and each was durable when
// its Append returned.
func TestAppendAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{FileSize: 10_000})
	const writers, each = 50, 20
	heads := make([][]Head, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				h, err := l.Append(Entry{Actor: fmt.Sprint("c-", w), Event: Delivered, Count: uint64(i + 1)})
				if err != nil {
					t.Error(err)
					return
				}
				if durable := l.Head(); durable.Seq < h.Seq {
					t.Errorf("%d is appended, and %d durable", h.Seq, durable.Seq)
				}
				heads[w] = append(heads[w], h)
			}
		})
	}
	var page []Entry
	for len(page) < writers*each/2 { // read concurrently
		got, err := l.Entries(uint64(len(page)+1), 33)
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, got...)
	}
	all.Wait()
	var known []Hash
	seen := map[uint64]bool{}
	for w, hs := range heads {
		for i, h := range hs {
			if seen[h.Seq] {
				t.Errorf("sequence number %d twice", h.Seq)
			}
			seen[h.Seq], known = true, append(known, h.Hash)
			got, err := l.Entries(h.Seq, 1)
			if err != nil || len(got) != 1 || got[0].Hash != h.Hash || got[0].Actor != fmt.Sprint("c-", w) || got[0].Count != uint64(i+1) {
				t.Fatalf("entry %d of %d: %+v, %v", i, w, got, err)
			}
		}
	}
	if sum, err := Verify(dir, known...); err != nil || sum.Entries != writers*each || sum.Files < 2 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestOneProcessOneParty(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	if _, err := l.Append(Entry{Event: Reserved}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{Party: "alice"}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(Entry{Event: Reserved}); !errors.Is(err, ErrClosed) {
		t.Errorf("after it was closed: %v", err)
	}
	if _, err := Open(dir, Options{Party: "bob"}); err == nil || !strings.Contains(err.Error(), "log of party alice") {
		t.Errorf("opened by another: %v", err)
	}
	renamed, err := Open(dir, Options{Party: "bob", Known: []Hash{l.Head().Hash}})
	if err != nil {
		t.Fatalf("of a party that has another name now: %v", err)
	}
	if _, err := renamed.Append(Entry{Event: Reserved}); err != nil {
		t.Fatal(err)
	}
	if err := renamed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{Party: "alice"}); err == nil || !strings.Contains(err.Error(), "log of party bob") {
		t.Errorf("opened by another: %v", err)
	}
	if _, err := Open(dir, Options{Party: "bob", Known: []Hash{{1}}}); err == nil {
		t.Error("opened without its known hash")
	}
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("opened for nobody")
	}
	if again, err := Open(dir, Options{Party: "bob"}); err != nil || again.Close() != nil {
		t.Error(err)
	}
}

func TestNilLog(t *testing.T) {
	var l *Log
	h, err := l.Append(Entry{Event: "nonsense entry"})
	page, perr := l.Entries(1, 10)
	if h != (Head{}) || err != nil || page != nil || perr != nil || l.Head() != (Head{}) || l.Close() != nil {
		t.Error("a nil log does something")
	}
}

// After a failed write the log is truncated to its last durable entry, and accepts entries again.
// It does not contain the failed entries.
func TestFailureMends(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	good, err := l.Append(Entry{Event: Reserved})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(Entry{Event: Delivered}); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if l.Head() != good || l.Fault() != nil {
		t.Errorf("head %v, fault %v", l.Head(), l.Fault())
	}
	next, err := l.Append(Entry{Event: Released})
	if err != nil || next.Seq != good.Seq+1 {
		t.Errorf("%v, %v", next, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if sum, err := Verify(dir); err != nil || sum.Entries != 2 || sum.Head != next {
		t.Errorf("%+v, %v", sum, err)
	}
}

// A refused entry takes no sequence number.
func TestRefusedEntryTakesNoPlace(t *testing.T) {
	now := time.Unix(1, 0)
	l := open(t, t.TempDir(), Options{Now: func() time.Time { return now }})
	if _, err := l.Append(Entry{Event: "not a word"}); err == nil {
		t.Error("was taken")
	}
	now = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC) // no such time in JSON
	if _, err := l.Append(Entry{Event: Reserved}); err == nil {
		t.Error("was taken")
	}
	now = time.Unix(2, 0)
	if h, err := l.Append(Entry{Event: Reserved}); err != nil || h.Seq != 1 {
		t.Errorf("%v, %v", h, err)
	}
}

// BenchmarkAppend appends 1,000 entries per second in an open loop, from as many callers as
// necessary.
func BenchmarkAppend(b *testing.B) {
	l := open(b, b.TempDir(), Options{})
	took := make([]time.Duration, b.N)
	var all sync.WaitGroup
	start := time.Now()
	for i := range b.N {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Millisecond)))
		called := time.Now()
		all.Go(func() {
			_, err := l.Append(Entry{Actor: "mpc", Auth: Certificate, Event: Delivered, Tenant: "demo", Objects: []string{"reservation/r-17"},
				Ranges: []Range{{"batch/b-3", 0, 100}}, Count: 100})
			if err != nil {
				b.Error(err)
			}
			took[i] = time.Since(called)
		})
	}
	all.Wait()
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[(b.N-1)*p/100].Microseconds()), fmt.Sprintf("us-p%d", p))
	}
}

// BenchmarkAppendTogether measures the throughput of 64 callers that each wait for their entry.
func BenchmarkAppendTogether(b *testing.B) {
	l := open(b, b.TempDir(), Options{})
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := l.Append(Entry{Actor: "mpc", Event: Delivered, Objects: []string{"reservation/r-17"}}); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkOpen opens a log of 100,000 entries, which verifies its chain.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	l := open(b, dir, Options{})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 1000 {
				if _, err := l.Append(full()); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, fileName(1)))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		open(b, dir, Options{}).Close()
	}
}
