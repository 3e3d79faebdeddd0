package status

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Limits on probes, which prevent flooding the network.
const (
	maxProbe    = 16 << 20               // bytes sent to one peer
	probeTime   = 2 * time.Second        // maximum duration
	probeWait   = 5 * time.Second        // timeout for a peer that does not respond
	probeAgain  = 500 * time.Millisecond // retry interval for an unreachable peer
	probePiece  = 64 << 10               // bytes per message
	roundTrips  = 5                      // the shortest is reported
	probeEvery  = 5 * time.Second        // minimum average interval between calls of ProbePeers
	probeBurst  = 4                      // burst of such calls
	takenRate   = 4 << 20                // average bytes per second from a peer
	takenBurst  = 8 * maxProbe           // bytes
	takenOfCall = probePiece             // bytes charged for an empty probe
)

const probePrefix = "/lodge.status.v1.ProbeService/"

// ProbeRules are the access rules of the probes, which only parties serve.
var ProbeRules = rpc.Rules{
	probePrefix + "ProbePeers": rpc.Allow(rpc.Self, rpc.Client).With(config.PermStatus),
	probePrefix + "Probe":      rpc.Allow(rpc.Peer),
}

// Probes implements lodge.status.v1.ProbeService.
type Probes struct {
	statusv1.UnimplementedProbeServiceServer
	Peers []Link

	bounds bounds
}

// Link is this process's connection to a party.
type Link struct {
	Name  string
	Party int
	Conn  *grpc.ClientConn
}

// bounds limits the resources of probes.
type bounds struct {
	mu    sync.Mutex
	busy  bool
	calls *rate.Limiter
	taken map[string]*rate.Limiter // by peer, in bytes
}

// begin admits one call of ProbePeers. The caller must call end.
func (p *bounds) begin(now time.Time) (end func(), refused *rpc.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy {
		return nil, rpc.Errorf(rpc.Busy, "retry in a moment", "another probe of the peers is running")
	}
	if p.calls == nil {
		p.calls = rate.NewLimiter(rate.Every(probeEvery), probeBurst)
	}
	if r := p.calls.ReserveN(now, 1); r.DelayFrom(now) > 0 {
		wait := r.DelayFrom(now)
		r.CancelAt(now)
		e := rpc.Errorf(rpc.RateLimited, "try again in "+wait.Round(time.Second).String(), "the peers were probed just now")
		e.Retry = wait
		return nil, e
	}
	p.busy = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy = false
	}, nil
}

// take admits bytes of a probe from a peer.
func (p *bounds) take(peer string, n int, now time.Time) *rpc.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		p.taken = map[string]*rate.Limiter{}
	}
	l := p.taken[peer]
	if l == nil {
		l = rate.NewLimiter(takenRate, takenBurst)
		p.taken[peer] = l
	}
	if !l.AllowN(now, n) {
		return rpc.Errorf(rpc.RateLimited, "probe less often", "%s has sent more than %d bytes of probes", peer, takenBurst)
	}
	return nil
}

// ProbePeers implements the service.
func (s *Probes) ProbePeers(q *statusv1.ProbePeersRequest, stream grpc.ServerStreamingServer[statusv1.ProbePeersResponse]) error {
	if q.GetBytes() > maxProbe {
		return rpc.Errorf(rpc.Invalid, "request at most 16 MiB", "probe of %d bytes exceeds the limit", q.GetBytes())
	}
	end, refused := s.bounds.begin(time.Now())
	if refused != nil {
		return refused
	}
	defer end()
	for _, p := range s.Peers {
		r, err := probe(stream.Context(), p.Conn, int(q.GetBytes()))
		if err := stream.Context().Err(); err != nil {
			return err
		}
		if err != nil {
			r = &statusv1.ProbePeersResponse{Error: rpc.FromError(err).Error()}
		}
		r.Name, r.Party = p.Name, uint32(p.Party)
		if err := stream.Send(r); err != nil {
			return err
		}
	}
	return nil
}

// probe measures the network to a peer.
func probe(ctx context.Context, conn *grpc.ClientConn, bytes int) (*statusv1.ProbePeersResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, probeWait+2*probeTime)
	defer cancel()
	if err := reach(ctx, conn); err != nil {
		return nil, err
	}
	out := &statusv1.ProbePeersResponse{}
	shortest := time.Duration(-1)
	for range roundTrips {
		begun := time.Now()
		r, err := send(ctx, conn, 0)
		if err != nil {
			return nil, err
		}
		if took := time.Since(begun); shortest < 0 || took < shortest {
			shortest = took
			out.ClockAhead = durationpb.New(r.GetNow().AsTime().Sub(begun.Add(took / 2)))
			out.ClockError = durationpb.New(took / 2)
		}
	}
	out.RoundTrip = durationpb.New(shortest)
	if bytes == 0 {
		return out, nil
	}
	begun := time.Now()
	r, err := send(ctx, conn, bytes)
	if err != nil {
		return nil, err
	}
	took := max(time.Since(begun)-shortest, time.Microsecond) // exclude the trip of the last byte and of the response
	out.SentBytes, out.BytesPerSecond = r.GetReceivedBytes(), float64(r.GetReceivedBytes())/took.Seconds()
	return out, nil
}

// reach connects first, so that the measurements do not include handshakes.
func reach(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	_, err := send(ctx, conn, 0)
	if status.Code(err) != codes.Unavailable {
		return err
	}
	again, cancel := context.WithTimeout(ctx, probeAgain) // the peer may have started since the last attempt
	defer cancel()
	conn.ResetConnectBackoff()
	if _, second := send(again, conn, 0, grpc.WaitForReady(true)); second == nil {
		return nil
	}
	return err
}

// send sends one probe of at most the given number of bytes, limited by probeTime.
func send(ctx context.Context, conn *grpc.ClientConn, n int, how ...grpc.CallOption) (*statusv1.ProbeResponse, error) {
	stream, err := statusv1.NewProbeServiceClient(conn).Probe(ctx, how...)
	if err != nil {
		return nil, err
	}
	piece := &statusv1.ProbeRequest{Padding: bytes.Repeat([]byte{0x5a}, min(n, probePiece))}
	for until := time.Now().Add(probeTime); n > 0 && time.Now().Before(until); n -= len(piece.Padding) {
		piece.Padding = piece.Padding[:min(n, probePiece)]
		if err := stream.Send(piece); err != nil {
			break // CloseAndRecv returns the reason
		}
	}
	return stream.CloseAndRecv()
}

// Probe implements the service.
func (s *Probes) Probe(stream grpc.ClientStreamingServer[statusv1.ProbeRequest, statusv1.ProbeResponse]) error {
	p, _ := rpc.Caller(stream.Context())
	if refused := s.bounds.take(p.Name, takenOfCall, time.Now()); refused != nil {
		return refused
	}
	n := 0
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&statusv1.ProbeResponse{ReceivedBytes: uint64(n), Now: timestamppb.Now()})
		}
		if err != nil {
			return err
		}
		n += len(r.GetPadding())
		if len(r.GetPadding()) > probePiece || n > maxProbe {
			return rpc.Errorf(rpc.TooLarge, "", "a probe has at most %d bytes, in messages of %d", maxProbe, probePiece)
		}
		if refused := s.bounds.take(p.Name, len(r.GetPadding()), time.Now()); refused != nil {
			return refused
		}
	}
}
