// Package disk watches the free space on the file systems that a process writes to. When a volume
// has less than a minimum, the process rejects new work with the code disk_low and is not ready, so
// that running work can finish and be recorded. Work is accepted again by itself when there is
// space.
package disk

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
)

// Space on a file system, in bytes.
type Space struct{ Free, Total uint64 }

// Volume is a directory that a process writes to, and its name for operators.
type Volume struct{ Name, Dir string }

// The names of volumes.
const (
	Store = "store" // of a party's embedded store
	Audit = "audit" // of a party's audit log
	Data  = "data"  // of the coordinator
)

// State is the state of a volume. Low becomes true when fewer than MinFree bytes are free, and
// false again when MinFree and a quarter more are free.
type State struct {
	Volume
	Space
	MinFree uint64
	Low     bool
}

// The least free space by default: of a file system that is smaller than 5 GiB, a twentieth.
const (
	defaultMinFree = 256 << 20
	defaultShare   = 20
)

// lookEvery is how long a look at the file systems is believed.
const lookEvery = time.Second

// Watch is the state of some volumes. A nil Watch has no volumes. It is safe for concurrent use.
type Watch struct {
	minFree uint64 // 0: the default
	spaceOf func(dir string) (Space, error)
	now     func() time.Time

	mu     sync.Mutex
	looked time.Time
	states []State
}

// New watches volumes, of which each must have minFree bytes free; 0 means 256 MiB, or 5 % of a
// smaller file system.
func New(minFree uint64, volumes ...Volume) *Watch {
	w := &Watch{minFree: minFree, spaceOf: SpaceOf, now: time.Now}
	for _, v := range volumes {
		w.states = append(w.states, State{Volume: v})
	}
	return w
}

// Volumes returns the state of all, at most a second old. A volume whose space is unknown is not
// low.
func (w *Watch) Volumes() []State {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.now(); w.looked.IsZero() || now.Sub(w.looked) >= lookEvery {
		w.looked = now
		for i := range w.states {
			w.look(&w.states[i])
		}
	}
	return append([]State(nil), w.states...)
}

func (w *Watch) look(s *State) {
	space, err := w.spaceOf(s.Dir)
	if err != nil {
		return
	}
	s.Space, s.MinFree = space, w.minFree
	if s.MinFree == 0 {
		s.MinFree = min(defaultMinFree, space.Total/defaultShare)
	}
	least := s.MinFree
	if s.Low {
		least += least / 4
	}
	s.Low = space.Free < least
}

// Low is nil, or an error with the code disk_low that names a volume with too little space.
func (w *Watch) Low() error {
	for _, s := range w.Volumes() {
		if s.Low {
			return rpc.Errorf(rpc.DiskLow, "the operator frees space; new work is accepted again by itself",
				"the %s volume has %d bytes free, and needs %d", s.Name, s.Free, s.MinFree)
		}
	}
	return nil
}

// Inner refuses the methods that begin new work while a volume is low, and gives errors of the
// storage their codes.
func (w *Watch) Inner(stops map[string]bool) rpc.Inner {
	refuse := func(method string) error {
		//lodge:check disk/refuse run=TestInner a process whose disk fills accepts work until it can
		//  record nothing more
		if stops[method] {
			return w.Low()
		}
		return nil
	}
	return rpc.Inner{
		Unary: func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if err := refuse(info.FullMethod); err != nil {
				return nil, err
			}
			r, err := handle(ctx, req)
			return r, Typed(err)
		},
		Stream: func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := refuse(info.FullMethod); err != nil {
				return err
			}
			return Typed(handle(srv, s))
		},
	}
}

// Typed gives errors of a full disk and of a damaged store their codes. Others stay as they are.
func Typed(err error) error {
	switch {
	case err == nil || errors.As(err, new(*rpc.Error)):
		return err
	case errors.Is(err, store.ErrDamaged):
		return rpc.Errorf(rpc.CheckFailed, "the operator stops this process and runs `lodge store check`", "the records of this process are damaged")
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return rpc.Errorf(rpc.DiskLow, "the operator frees space; then try again", "a disk of this process is full")
	}
	return err
}
