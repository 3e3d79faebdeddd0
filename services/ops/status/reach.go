package status

import (
	"context"
	"sync"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Interval of the health checks of each peer, and their timeout.
const (
	reachEvery = 5 * time.Second
	reachWait  = 5 * time.Second
)

// Reach periodically checks whether each peer responds and records the results in the metrics,
// until ctx is done.
func Reach(ctx context.Context, peers []Link, m *metrics.Metrics) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for _, p := range peers {
		m.Peers(p.Name)
		asking.Go(func() {
			tick := time.NewTicker(reachEvery)
			defer tick.Stop()
			for {
				up, trip := p.answers(ctx)
				if ctx.Err() != nil {
					return
				}
				m.SetIf(metrics.PeerUp, up, p.Name)
				if trip > 0 {
					m.Observe(metrics.PeerTrip, trip, p.Name)
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// answers reports whether a peer responds to a health check. A refusal counts as a response.
func (p Link) answers(ctx context.Context) (up bool, trip time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, reachWait)
	defer cancel()
	begun := time.Now()
	_, err := healthpb.NewHealthClient(p.Conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err == nil {
		return true, time.Since(begun)
	}
	e := rpc.FromError(err)
	return e.Code != rpc.Unavailable && e.Code != rpc.TimedOut && e.Code != rpc.Cancelled, 0
}
