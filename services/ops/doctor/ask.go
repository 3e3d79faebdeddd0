package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

const (
	askTime   = 5 * time.Second // for the response of a process
	roundTrip = 3               // number of calls, of which the fastest counts
	settle    = time.Second     // for connections that were idle
)

// errNowhere is the error for a process whose address this client does not know.
var errNowhere = rpc.Errorf(rpc.NotFound, "add it to the client's configuration", "this client does not know its address")

// Answer is a process's response, or the reason why it did not respond.
type Answer struct {
	Name, Address string
	Party         int // -1 for the coordinator
	Conn          *grpc.ClientConn
	Err           error
	Status        *statusv1.GetStatusResponse
	Certificate   *x509.Certificate // that it presented
	RoundTrip     time.Duration
	// ClockAhead is the process's clock minus this machine's; its error is at most ClockError.
	ClockAhead, ClockError time.Duration
}

// Close closes the connection.
func (a *Answer) Close() {
	if a.Conn != nil {
		a.Conn.Close()
	}
}

// Ask requests the status of the coordinator and all parties concurrently, and returns the answers
// in this order. Processes without an address in the roster are not asked. Dial, if not nil,
// returns further options for connecting to a server. The caller must close the answers.
func Ask(ctx context.Context, r *config.Roster, c *rpc.Credentials, dial func(identity string) []rpc.DialOption) []*Answer {
	list := []*Answer{{Name: config.CoordinatorName, Address: r.Coordinator.Address, Party: -1}}
	identities := []string{r.Coordinator.Identity}
	for i, m := range r.Parties {
		list = append(list, &Answer{Name: m.Name, Address: m.Address, Party: i})
		identities = append(identities, m.Identity)
	}
	var wg sync.WaitGroup
	for i, a := range list {
		if a.Address == "" {
			a.Err = errNowhere
			continue
		}
		var more []rpc.DialOption
		if dial != nil {
			more = dial(identities[i])
		}
		if a.Conn, a.Err = rpc.Dial(a.Address, identities[i], c, more...); a.Err == nil {
			wg.Go(func() { a.ask(ctx) })
		}
	}
	wg.Wait()
	return list
}

// ask fills in the answer. The first call includes the handshakes; the fastest of the others
// determines the clock difference.
func (a *Answer) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	client := statusv1.NewStatusServiceClient(a.Conn)
	var p peer.Peer
	_, err := client.GetStatus(ctx, &statusv1.GetStatusRequest{}, grpc.Peer(&p))
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
		a.Certificate = info.State.PeerCertificates[0]
	}
	for i := 0; i < roundTrip && err == nil; i++ {
		var s *statusv1.GetStatusResponse
		begun := time.Now()
		if s, err = client.GetStatus(ctx, &statusv1.GetStatusRequest{}); err != nil {
			break
		}
		if took := time.Since(begun); a.Status == nil || took < a.RoundTrip {
			a.RoundTrip, a.ClockAhead, a.ClockError = took, s.GetNow().AsTime().Sub(begun.Add(took/2)), took/2
		}
		a.Status = s
	}
	if err != nil {
		a.Err, a.Status = rpc.FromError(err), nil
		return
	}
	a.settled(ctx, client)
}

// settled repeats the request if connections of the process were idle, which reconnects them.
func (a *Answer) settled(ctx context.Context, client statusv1.StatusServiceClient) {
	for until := time.Now().Add(settle); a.unsettled() && time.Now().Before(until) && ctx.Err() == nil; {
		time.Sleep(50 * time.Millisecond)
		if s, err := client.GetStatus(ctx, &statusv1.GetStatusRequest{}); err == nil {
			a.Status = s
		}
	}
}

func (a *Answer) unsettled() bool {
	for _, l := range a.Status.GetLinks() {
		if s := l.GetState(); s == statusv1.LinkState_LINK_STATE_IDLE || s == statusv1.LinkState_LINK_STATE_CONNECTING {
			return true
		}
	}
	return false
}

// Reached reports whether a process responded, even if it refused the request.
func (a *Answer) Reached() bool {
	return a.Err == nil || errors.Is(a.Err, &rpc.Error{Code: rpc.Forbidden}) || errors.Is(a.Err, &rpc.Error{Code: rpc.Unauthenticated}) ||
		errors.Is(a.Err, &rpc.Error{Code: rpc.RateLimited})
}
