// Package status reports the identity and state of a process: its name and index in the roster, its
// version, its pins and its condition. Operators use it to compare processes and find problems.
package status

import (
	"context"
	"log/slog"
	"math"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/protobuf/types/known/timestamppb"

	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/disk"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// Rules are the access rules: every authenticated caller may request the status.
var Rules = rpc.Rules{
	"/lodge.status.v1.StatusService/GetStatus":        rpc.Anyone,
	"/lodge.status.v1.StatusService/WatchStatus":      rpc.Anyone,
	"/lodge.status.v1.StatusService/ListAuditEntries": rpc.Allow(rpc.Self, rpc.Client).With(config.PermOperate),
	"/lodge.status.v1.StatusService/SetLogLevel":      rpc.Allow(rpc.Self, rpc.Client).With(config.PermOperate),
}

// Service implements lodge.status.v1.
type Service struct {
	statusv1.UnimplementedStatusServiceServer
	Name    string
	Party   int // index in the roster; -1 for the coordinator
	Version string
	Roster  [32]byte
	Params  []config.ParamsPin
	// Multikey is the multi-key parameter set of the roster; empty if it has no context.
	Multikey string
	Started  time.Time
	Ready    func() bool
	Running  func() int // sessions that have not ended
	Peers    []Link     // the parties to which it connects
	// Certificate returns the expiry of the served certificate.
	Certificate func() time.Time
	Log         *slog.Logger // of the process
	Disks       *disk.Watch
	Reports     *Reports // about the peers; nil: none
	// Stopping is closed when the process begins to stop; nil: never.
	Stopping <-chan struct{}

	// Only set for parties.
	Vault     Vault
	Place     seal.Place // location of the vault
	Audit     *audit.Log
	MaxMemory uint64                                  // limit for all sessions
	Conduct   func() (*accusationsv1.Standing, error) // conduct of the roster's parties
	// DistanceBudget limits the statistical distance of products on shares between two clients.
	DistanceBudget float64

	watched [2]shared // statuses for watchers, without and with details
}

// GetStatus implements the service.
func (s *Service) GetStatus(ctx context.Context, _ *statusv1.GetStatusRequest) (*statusv1.GetStatusResponse, error) {
	return s.now(detailed(ctx)), nil
}

// detailed reports whether the caller may see the fields that are not for all callers.
func detailed(ctx context.Context) bool {
	p, ok := rpc.Caller(ctx)
	return ok && (p.Role != rpc.Client || p.May(config.PermStatus))
}

// now returns the present status.
func (s *Service) now(detailed bool) *statusv1.GetStatusResponse {
	now, peak := metrics.ResidentBytes()
	out := &statusv1.GetStatusResponse{
		Name: s.Name, Version: s.Version, ProtocolVersion: job.ProtocolVersion, RosterHash: s.Roster[:], Ready: s.Ready(),
		Started: timestamppb.New(s.Started), ActiveSessions: uint32(s.Running()), RssBytes: now, PeakRssBytes: peak,
		CertificateNotAfter: timestamppb.New(s.Certificate()), MultikeyParams: s.Multikey,
	}
	if s.Party >= 0 {
		i := uint32(s.Party)
		out.Party = &i
	}
	for _, p := range s.Params {
		hash := p.Sum()
		out.Params = append(out.Params, &statusv1.ParamsPin{Name: p.Name, Hash: hash[:]})
	}
	if detailed {
		s.details(out)
	}
	out.Now = timestamppb.Now()
	return out
}

// details adds the fields that are not for all callers.
func (s *Service) details(out *statusv1.GetStatusResponse) {
	for _, p := range s.Peers {
		l := &statusv1.Link{Name: p.Name, Party: uint32(p.Party), State: linkState(p)}
		s.Reports.add(l)
		out.Links = append(out.Links, l)
	}
	out.MaxMemoryBytes, out.LogLevel = s.MaxMemory, s.logLevel()
	for _, v := range s.Disks.Volumes() {
		out.Volumes = append(out.Volumes, &statusv1.Volume{Name: v.Name, FreeBytes: v.Free, TotalBytes: v.Total, MinFreeBytes: v.MinFree, Low: v.Low})
	}
	if s.Vault != nil {
		out.Store = s.store()
		out.Linear = s.distances()
	}
	if s.Conduct != nil {
		out.Conduct = s.conduct()
	}
	if s.Audit != nil {
		h := s.Audit.Head()
		out.Audit = &statusv1.AuditHead{Sequence: h.Seq, Hash: h.Hash[:]}
		if err := s.Audit.Fault(); err != nil {
			out.Audit.Fault = err.Error()
		}
	}
}

// conduct returns the recorded misconduct of the parties.
func (s *Service) conduct() *statusv1.Conduct {
	x, err := s.Conduct()
	if err != nil {
		return &statusv1.Conduct{Refusal: "unknown: " + err.Error()}
	}
	return &statusv1.Conduct{Refusal: x.GetRefusal(), Excluded: x.GetExcluded(), Failures: x.GetFailures(), MaxFailures: x.GetMaxFailures()}
}

// distances returns the statistical distance spent by products on shares. Read errors of the store
// are reported in Store.
func (s *Service) distances() (out []*statusv1.LinearDistance) {
	all, err := s.Vault.Distances()
	if err != nil {
		return nil
	}
	for _, d := range all {
		out = append(out, &statusv1.LinearDistance{
			Client: d.AsksName, With: d.AnswersName, LogSpent: math.Log2(d.Spent), LogBudget: math.Log2(s.DistanceBudget), Products: d.Products, Lost: d.Lost,
		})
	}
	return out
}

// linkState returns the state of the connection to a peer, and wakes an idle connection.
func linkState(p Link) statusv1.LinkState {
	switch p.Conn.GetState() {
	case connectivity.Ready:
		return statusv1.LinkState_LINK_STATE_CONNECTED
	case connectivity.Connecting:
		return statusv1.LinkState_LINK_STATE_CONNECTING
	case connectivity.Idle:
		p.Conn.Connect()
		return statusv1.LinkState_LINK_STATE_IDLE
	}
	return statusv1.LinkState_LINK_STATE_FAILING
}

// store returns the state of the vault.
func (s *Service) store() *statusv1.Store {
	out := &statusv1.Store{Postgres: s.Place.PostgresDSNFile != ""}
	v, err := s.Vault.Version(s.Party) // the part about a specific peer is not used here
	if err == nil {
		out.Id, out.Generation = v.ID, v.Generation
		out.Quarantine, err = s.Vault.Quarantined()
	}
	if err == nil {
		err = s.Vault.Healthy()
	}
	if err != nil {
		out.Fault = err.Error()
	}
	if !out.Postgres {
		for _, v := range s.Disks.Volumes() {
			if v.Name == disk.Store {
				out.DiskFreeBytes, out.DiskTotalBytes = v.Free, v.Total
			}
		}
	}
	return out
}
