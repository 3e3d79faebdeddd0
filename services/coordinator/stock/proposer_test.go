package stock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// limited is a party that limits the size of requests like the parties' servers.
type limited struct {
	mu    sync.Mutex
	calls int
}

func (l *limited) Invoke(_ context.Context, _ string, args, reply any, _ ...grpc.CallOption) error {
	time.Sleep(5 * time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	req := args.(*tuplesv1.ProposeRequest)
	if n := proto.Size(req); n > rpc.MaxRequest || len(req.GetReservations()) > maxItems {
		return rpc.Errorf(rpc.TooLarge, "", "%d reservations, %d bytes", len(req.GetReservations()), n)
	}
	out := reply.(*tuplesv1.ProposeResponse)
	for _, r := range req.GetReservations() {
		out.Outcomes = append(out.Outcomes, &tuplesv1.Outcome{Id: r.GetId(), State: tuplesv1.ReservationState_RESERVATION_STATE_RESERVED})
	}
	return nil
}

func (l *limited) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, rpc.Errorf(rpc.Internal, "", "no streams")
}

// Many concurrent proposals, some with many ranges, are sent in few calls, none of which is too
// large.
func TestProposalsFitIntoCalls(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l := new(limited)
	p := newProposer(0, Party{Name: "p0", Conn: l})
	go p.run(ctx)
	var wg sync.WaitGroup
	const n = 600
	for i := range n {
		wg.Go(func() {
			r := &tuplesv1.Reservation{Id: fmt.Sprint(i), Owner: strings.Repeat("o", 64), MacKeyId: strings.Repeat("m", 64)}
			if i%20 == 0 {
				for k := range 500 {
					r.Ranges = append(r.Ranges, &tuplesv1.Range{BatchId: strings.Repeat("b", 40), First: uint64(k) << 20, Count: 1})
				}
			}
			if err := p.propose(ctx, r, nil); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if l.calls < 10 || l.calls > n/2 {
		t.Errorf("%d calls for %d proposals", l.calls, n)
	}
}
