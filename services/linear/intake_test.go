package linear

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// sized returns parts of the given sizes, which are appended to got when they are complete.
func sized(sizes []int, got *[][]byte) (iter.Seq[part], uint64) {
	all := 0
	for _, n := range sizes {
		all += n
	}
	return func(yield func(part) bool) {
		for _, n := range sizes {
			if !yield(part{n, func(b []byte) error { *got = append(*got, slices.Clone(b)); return nil }}) {
				return
			}
		}
	}, uint64(all)
}

// However an upload is split into chunks, its parts are the same, and an upload that is too long or
// too short is rejected.
func FuzzIntake(f *testing.F) {
	f.Add([]byte{3, 1, 4, 1, 5}, uint8(2))
	f.Add([]byte{200}, uint8(7))
	f.Fuzz(func(t *testing.T, shape []byte, step uint8) {
		var sizes []int
		for _, b := range shape {
			sizes = append(sizes, int(b)+1)
		}
		var got [][]byte
		parts, all := sized(sizes, &got)
		x := intakeOf(parts, all)
		defer x.close()
		sent := make([]byte, all)
		for i := range sent {
			sent[i] = byte(i * 7)
		}
		for chunk := range slices.Chunk(sent, int(step)+1) {
			if err := x.add(chunk); err != nil {
				t.Fatal(err)
			}
			if x.come < all && !errors.Is(x.whole(), &rpc.Error{Code: rpc.Invalid}) {
				t.Fatal("it is complete before its end")
			}
		}
		if err := x.whole(); err != nil {
			t.Fatal(err)
		}
		for i, n := range sizes {
			if len(got[i]) != n {
				t.Fatalf("part %d has %d bytes, want %d", i, len(got[i]), n)
			}
		}
		if !bytes.Equal(slices.Concat(got...), sent) {
			t.Fatal("the bytes differ")
		}
		if err := x.add([]byte{0}); !errors.Is(err, &rpc.Error{Code: rpc.TooLarge}) {
			t.Fatalf("one extra byte: %v", err)
		}
	})
}

// allowed is the time that an upload may take.
type allowed time.Duration

func (a allowed) limit() time.Duration { return time.Duration(a) }

// Uploads that are too slow are rejected. The time that the server needs for a message does not
// count.
func TestUploadsInTime(t *testing.T) {
	messages := 3
	recv := func() (int, error) {
		if messages == 0 {
			return 0, io.EOF
		}
		messages--
		return messages, nil
	}
	taken := 0
	minute := func(int) (allowed, error) { return allowed(time.Minute), nil }
	if _, err := upload(recv, minute, func(allowed, int) error { taken++; return nil }); err != nil || taken != 3 {
		t.Errorf("%d messages, %v", taken, err)
	}
	if _, err := upload(recv, minute, nil); !errors.Is(err, rpc.NoHeader) {
		t.Errorf("no message: %v", err)
	}
	stop := make(chan struct{})
	defer close(stop)
	first := true
	slow := func() (int, error) {
		if first {
			first = false
			return 1, nil
		}
		<-stop
		return 0, io.EOF
	}
	none := func(int) (allowed, error) { return 0, nil }
	_, err := upload(slow, none, func(allowed, int) error { return nil })
	if !errors.Is(err, &rpc.Error{Code: rpc.TimedOut}) {
		t.Errorf("a slow client: %v", err)
	}
	broken := errors.New("broken")
	if _, err := upload(func() (int, error) { return 0, broken }, none, nil); !errors.Is(err, broken) {
		t.Errorf("a broken stream: %v", err)
	}
	if patience(0) != grace || patience(leastRate*10) != grace+10*time.Second {
		t.Errorf("%s for 10 s", patience(leastRate*10))
	}
}

// A client's limit counts the products of the last hour.
func TestRates(t *testing.T) {
	var r rates
	now := time.Unix(1000, 0)
	for i := range 2 {
		if err := r.take("a", 2, now.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	err := r.take("a", 2, now.Add(59*time.Minute))
	if e := rpc.FromError(err); !errors.Is(err, &rpc.Error{Code: rpc.RateLimited}) || e.Retry != time.Minute {
		t.Errorf("the third product: %v, %s", err, e.Retry)
	}
	if err := r.take("b", 2, now); err != nil {
		t.Error(err)
	}
	if err := r.take("a", 2, now.Add(time.Hour)); err != nil {
		t.Errorf("after an hour: %v", err)
	}
}
