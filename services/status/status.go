// Package status answers what a process is: its name and place in the roster, its version, and what it pins, so
// that operators can compare processes.
package status

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/metrics"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// Rules say who may call what: whoever is authenticated.
var Rules = rpc.Rules{"/lodge.status.v1.StatusService/GetStatus": rpc.Anyone}

// Service implements lodge.status.v1.
type Service struct {
	statusv1.UnimplementedStatusServiceServer
	Name    string
	Party   int // index in the roster; -1 for the coordinator
	Version string
	Roster  [32]byte
	Params  []config.ParamsPin
	Started time.Time
	Ready   func() bool
	Running func() int // sessions that have not ended
}

// GetStatus implements the service.
func (s *Service) GetStatus(context.Context, *statusv1.GetStatusRequest) (*statusv1.GetStatusResponse, error) {
	now, peak := metrics.ResidentBytes()
	out := &statusv1.GetStatusResponse{
		Name: s.Name, Version: s.Version, ProtocolVersion: job.ProtocolVersion, RosterHash: s.Roster[:], Ready: s.Ready(),
		Started: timestamppb.New(s.Started), ActiveSessions: uint32(s.Running()), RssBytes: now, PeakRssBytes: peak,
	}
	if s.Party >= 0 {
		i := uint32(s.Party)
		out.Party = &i
	}
	for _, p := range s.Params {
		hash := p.Sum()
		out.Params = append(out.Params, &statusv1.ParamsPin{Name: p.Name, Hash: hash[:]})
	}
	return out, nil
}
