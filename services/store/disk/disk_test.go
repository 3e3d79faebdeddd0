package disk

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
)

// A volume is low below its minimum, and is not any more when a quarter more is free. A look holds
// for a second.
func TestLow(t *testing.T) {
	const mega = 1 << 20
	space, now := Space{Total: 100 << 30}, time.Unix(1000, 0)
	w := New(0, Volume{Audit, "a"})
	w.spaceOf, w.now = func(string) (Space, error) { return space, nil }, func() time.Time { return now }
	for _, c := range []struct {
		free, total uint64
		low         bool
	}{
		{300 * mega, 100 << 30, false},
		{256 * mega, 100 << 30, false},
		{256*mega - 1, 100 << 30, true},
		{300 * mega, 100 << 30, true}, // it was low
		{320 * mega, 100 << 30, false},
		{5 * mega, 100 * mega, false}, // 5 %
		{5*mega - 1, 100 * mega, true},
		{6 * mega, 100 * mega, true},
		{7 * mega, 100 * mega, false},
		{0, 0, false}, // a file system that does not say its size
	} {
		space = Space{c.free, c.total}
		now = now.Add(lookEvery)
		if err := w.Low(); (err != nil) != c.low || err != nil && rpc.FromError(err).Code != rpc.DiskLow {
			t.Errorf("%d of %d free: %v", c.free, c.total, err)
		}
	}
	space, now = Space{1, 100 << 30}, now.Add(lookEvery-1)
	if w.Low() != nil {
		t.Error("it looked again within a second")
	}
	if err := (*Watch)(nil).Low(); err != nil {
		t.Error(err)
	}
}

// While a volume is low the methods that begin new work are refused, and others are not; errors of
// the storage have codes.
func TestInner(t *testing.T) {
	w := New(0, Volume{Data, "d"})
	free := uint64(0)
	w.spaceOf, w.now = func(string) (Space, error) { return Space{free, 1 << 40}, nil }, func() time.Time { return time.Unix(int64(free), 0) }
	inner := w.Inner(map[string]bool{"/new": true})
	call := func(method string, fails error) error {
		_, err := inner.Unary(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) { return nil, fails })
		stream := inner.Stream(nil, nil, &grpc.StreamServerInfo{FullMethod: method}, func(any, grpc.ServerStream) error { return fails })
		if fmt.Sprint(err) != fmt.Sprint(stream) {
			t.Errorf("%s: %v, and as a stream %v", method, err, stream)
		}
		return err
	}
	if e := rpc.FromError(call("/new", nil)); e == nil || e.Code != rpc.DiskLow || e.Next == "" {
		t.Errorf("new work: %v", e)
	}
	if err := call("/old", nil); err != nil {
		t.Errorf("other work: %v", err)
	}
	free = 1 << 39
	if err := call("/new", nil); err != nil {
		t.Errorf("there is space: %v", err)
	}
	other := errors.New("other")
	for _, c := range []struct {
		err  error
		want rpc.Code
	}{
		{fmt.Errorf("x: %w", store.ErrDamaged), rpc.CheckFailed},
		{fmt.Errorf("x: %w", syscall.ENOSPC), rpc.DiskLow},
		{fmt.Errorf("x: %w", syscall.EDQUOT), rpc.DiskLow},
		{rpc.Errorf(rpc.Taken, "", "x"), rpc.Taken},
		{other, rpc.Internal},
	} {
		if e := rpc.FromError(call("/old", c.err)); e.Code != c.want {
			t.Errorf("%v: %v, want %s", c.err, e, c.want)
		}
	}
}
