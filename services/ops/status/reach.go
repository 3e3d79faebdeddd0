package status

import (
	"context"
	"sync"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Interval of the health checks of each peer, and their timeout. Their sum is how late a peer that
// hangs is seen to be down; a connection that breaks is seen at once.
const (
	reachEvery = 2 * time.Second
	reachWait  = 2 * time.Second
	// reachPause is the shortest time between two checks of a peer whose connection changes.
	reachPause = 250 * time.Millisecond
)

// reportEvery is the longest interval between two requests for a peer's own status.
const reportEvery = 30 * time.Second

// Reports holds the last state of each peer. Methods are safe for concurrent use.
type Reports struct {
	mu      sync.Mutex
	of      map[string]report
	changed chan struct{} // closed and replaced when a peer goes, comes back or sends its status
}

// report is the last state of one peer.
type report struct {
	up    bool
	since time.Time                   // when up last changed; zero before the first poll
	trip  time.Duration               // of the last poll that succeeded
	self  *statusv1.GetStatusResponse // last status that the peer sent
	asked time.Time                   // when
}

// NewReports returns empty reports.
func NewReports() *Reports {
	return &Reports{of: map[string]report{}, changed: make(chan struct{})}
}

// change returns a channel that is closed at the next change; nil without reports.
func (r *Reports) change() <-chan struct{} {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// wake announces a change. The caller holds the lock.
func (r *Reports) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// polled records the result of a poll, and reports whether the peer should be asked for its status.
func (r *Reports) polled(name string, up bool, trip time.Duration) (ask bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.of[name]
	now := time.Now()
	if p.since.IsZero() || p.up != up {
		p.up, p.since, p.asked = up, now, time.Time{}
		defer r.wake()
	}
	if trip > 0 {
		p.trip = trip
	}
	if ask = up && now.Sub(p.asked) >= reportEvery; ask {
		p.asked = now
	}
	r.of[name] = p
	return ask
}

// said records the status that a peer sent.
func (r *Reports) said(name string, self *statusv1.GetStatusResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.of[name]
	p.self = self
	r.of[name] = p
	r.wake()
}

// add adds the last state of the peer to a link.
func (r *Reports) add(out *statusv1.Link) {
	if r == nil {
		return
	}
	r.mu.Lock()
	p := r.of[out.GetName()]
	r.mu.Unlock()
	if p.since.IsZero() {
		return
	}
	out.Reachable, out.Since = p.up, timestamppb.New(p.since)
	if p.trip > 0 {
		out.RoundTrip = durationpb.New(p.trip)
	}
	if s := p.self; s != nil {
		out.Version, out.CertificateNotAfter, out.Ready, out.Started = s.GetVersion(), s.GetCertificateNotAfter(), s.GetReady(), s.GetStarted()
		out.RosterHash = s.GetRosterHash()
	}
}

// Reach checks periodically, and when the connection changes, whether each peer responds. It
// records the results in the metrics and the reports, until ctx is done.
func Reach(ctx context.Context, peers []Link, m *metrics.Metrics, reports *Reports) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for _, p := range peers {
		m.Peers(p.Name)
		asking.Go(func() {
			for ctx.Err() == nil {
				up, trip := p.answers(ctx)
				if ctx.Err() != nil {
					return
				}
				m.SetIf(metrics.PeerUp, up, p.Name)
				if trip > 0 {
					m.Observe(metrics.PeerTrip, trip, p.Name)
				}
				if reports.polled(p.Name, up, trip) {
					p.report(ctx, reports)
				}
				p.rest(ctx)
			}
		})
	}
}

// rest waits until the next check of a peer: reachEvery, or until the connection changes.
func (p Link) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reachEvery)
	defer cancel()
	state := p.Conn.GetState()
	select {
	case <-time.After(reachPause):
	case <-ctx.Done():
	}
	p.Conn.WaitForStateChange(ctx, state)
}

// report asks a peer for its status. A peer that does not say has an empty report.
func (p Link) report(ctx context.Context, reports *Reports) {
	ctx, cancel := context.WithTimeout(ctx, reachWait)
	defer cancel()
	self, err := statusv1.NewStatusServiceClient(p.Conn).GetStatus(ctx, &statusv1.GetStatusRequest{})
	if err != nil {
		self = nil
	}
	reports.said(p.Name, self)
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
