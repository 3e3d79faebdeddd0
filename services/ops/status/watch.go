package status

import (
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Intervals of WatchStatus: between looks for a change, and the longest between two messages. A
// change of a peer is sent at once.
const (
	watchEvery = time.Second
	watchIdle  = 10 * time.Second
)

// WatchStatus implements the service.
func (s *Service) WatchStatus(_ *statusv1.WatchStatusRequest, stream grpc.ServerStreamingServer[statusv1.WatchStatusResponse]) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var last uint64
	var sent time.Time
	for {
		change := s.Reports.change()
		now, version := s.recent(detailed(stream.Context()), change)
		if version != last || time.Since(sent) >= watchIdle {
			if err := stream.Send(&statusv1.WatchStatusResponse{Status: now}); err != nil {
				return err
			}
			last, sent = version, time.Now()
		}
		select {
		case <-tick.C:
		case <-change:
		case <-s.Stopping:
			return rpc.Errorf(rpc.Unavailable, "connect again", "the process is stopping")
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// shared is a status that all watchers use for a short time, so that many of them cost no more than
// one.
type shared struct {
	mu         sync.Mutex
	at         time.Time
	before     <-chan struct{} // the next change of a peer
	now, shape *statusv1.GetStatusResponse
	version    uint64 // of the shape, from 1
}

// recent returns a recent status, which callers must not change, and the version of its lasting
// part. The status has all changes of peers before the given one.
func (s *Service) recent(detailed bool, change <-chan struct{}) (now *statusv1.GetStatusResponse, version uint64) {
	w := &s.watched[0]
	if detailed {
		w = &s.watched[1]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now == nil || w.before != change || time.Since(w.at) >= watchEvery/2 {
		w.before, w.now, w.at = change, s.now(detailed), time.Now()
		if shape := lasting(w.now); !proto.Equal(shape, w.shape) {
			w.shape, w.version = shape, w.version+1
		}
	}
	return w.now, w.version
}

// lasting returns a copy of a status without the values that always change.
func lasting(s *statusv1.GetStatusResponse) *statusv1.GetStatusResponse {
	out := proto.CloneOf(s)
	out.Now, out.RssBytes, out.PeakRssBytes = nil, 0, 0
	for _, v := range out.GetVolumes() {
		v.FreeBytes = 0
	}
	if out.Store != nil {
		out.Store.DiskFreeBytes = 0
	}
	for _, l := range out.GetLinks() {
		l.RoundTrip = nil
	}
	return out
}
