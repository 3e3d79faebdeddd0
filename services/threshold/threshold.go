// Package threshold serves threshold keys at one party: their generation, the masks that quorums
// spend, new shares of the same secrets, and decryption for clients by any threshold + 1 of the
// holders (Ajax). It is an adapter between lodge.threshold.v1 and the protocols of
// engine/protocol/threshold.
//
// These protocols are secure only against parties that follow them, as those packages document, and
// a party takes part only if its operator has explicitly allowed that.
package threshold

import (
	"fmt"
	"slices"
	"sync"

	mk "github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/share"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/multikey/keys"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Rules maps each method to the permission that a caller needs.
var Rules = session.Rules("/lodge.threshold.v1.ThresholdService/", rpc.Rules{
	"Estimate":          rpc.Allow(rpc.Coordinator),
	"ListKeys":          rpc.Allow(rpc.Coordinator, rpc.Client),
	"GetKeys":           rpc.Allow(rpc.Client, rpc.Peer),
	"Decrypt":           rpc.Allow(rpc.Client).With(config.PermDecrypt),
	"ApproveDecryption": rpc.Allow(rpc.Client).With(config.PermApprove),
	"ListApprovals":     rpc.Allow(rpc.Client).With(config.PermApprove),
})

// Config configures a party's service.
type Config struct {
	Vault  Vault
	Audit  *audit.Log
	Policy config.Threshold
	// Keys holds this party's own multi-key keys, and Directory the published records of the other
	// parties' keys. Either may be nil if there are none.
	Keys      *keys.Store
	Directory Directory
	// AllowPassive reports whether the operator accepts keys that are secure only against parties
	// that follow the protocol.
	AllowPassive bool
	Workers      int
	// Peers are connections to the parties, by their index in the roster; nil for this party.
	Peers []rpc.PeerConn
}

// Directory knows the owners of multi-key keys.
type Directory interface {
	// Owner returns the last record of keys that their owner has signed.
	Owner(id mk.KeyID) (r *multikey.Record, known bool)
}

// Service implements lodge.threshold.v1.
type Service struct {
	thresholdv1.UnsafeThresholdServiceServer
	session.Service
	Config
	offers offers
	floods claims
	rates  rates

	mu      sync.Mutex
	schemes map[string]scheme
	shamirs map[sharing]*share.Shamir
}

// New returns the service.
func New(sessions *session.Registry, c Config) *Service {
	s := &Service{Config: c, schemes: map[string]scheme{}, shamirs: map[sharing]*share.Shamir{}}
	readers := c.Policy.KeyReaders()
	sessions.Metrics.Set(metrics.AnyCiphertextsRules, float64(len(readers)))
	for _, r := range readers {
		sessions.Log.Warn("a decryption rule lets a client read the keys", "client", r.Client, "max_total", r.MaxTotal)
	}
	s.Service = session.NewService(sessions, jobv1.Protocol_PROTOCOL_THRESHOLD, func(spec *jobv1.SessionSpec) session.Protocol {
		switch spec.GetKind() {
		case jobv1.Kind_KIND_MASKS:
			return &masksRun{Service: s, spec: spec}
		case jobv1.Kind_KIND_RESHARE:
			return &reshareRun{Service: s, spec: spec}
		}
		return &keysRun{Service: s, spec: spec}
	})
	return s
}

// purpose of the epochs of this package.
var purpose = job.PurposeName(jobv1.Purpose_PURPOSE_THRESHOLD)

// held returns the record of an epoch of threshold keys of which this party has a usable share.
// fresh means that the caller makes masks under the epoch.
func (s *Service) held(id uint64, fresh bool) (vaultkeys.Epoch, error) {
	name := fmt.Sprintf("epoch %d", id)
	e, err := s.Vault.Epoch(id)
	switch {
	case err != nil:
		return e, vaulterr.RPC(err, name)
	//lodge:check threshold/purpose [run=TestPurposes] keys of another purpose decrypt
	case e.Purpose != purpose:
		return e, rpc.Errorf(rpc.KeyPurpose, "`lodge keys list` lists the threshold keys", "%s was made for %s, not for %s", name, e.Purpose, purpose)
	case e.State == vaultkeys.EpochRetired:
		return e, rpc.Errorf(rpc.Burnt, "`lodge keys list` shows whether another epoch has new shares of the same keys; use its holders with `lodge decrypt --epoch`",
			"%s is retired, and its shares are erased at this party", name)
	case e.State == vaultkeys.EpochLocked:
		return e, rpc.Errorf(rpc.Conflict, "wait until the job that makes it is complete", "%s is not active", name)
	case fresh && e.State != vaultkeys.EpochActive:
		return e, rpc.Errorf(rpc.Conflict, "use the epoch that has replaced it", "%s is draining: no masks or shares are made for it", name)
	case s.Vault.Standing(&e) != vaultkeys.SameRoster:
		return e, displaced(&e, s.Vault.Places(&e), int(s.Sessions.Self))
	//lodge:check threshold/passive [run=TestPassiveKeysAreRefused] [redundant=the gate rejects the
	//  making of such keys] passively secure keys are used without the operator's permission
	case !s.AllowPassive:
		return e, job.PassiveThreshold()
	}
	return e, nil
}

// displaced returns why this party cannot use an epoch under the present roster, given the indices
// of the holders in the roster.
func displaced(e *vaultkeys.Epoch, places []int, self int) *rpc.Error {
	if !slices.Contains(places, self) {
		return rpc.Errorf(rpc.PinMismatch, "use the holders that `lodge keys show` lists; a holder with a new signing key needs new shares (`lodge keys reshare`)",
			"this party is not a holder of epoch %d under its present signing key", e.ID)
	}
	here := 0
	for _, p := range places {
		if p >= 0 {
			here++
		}
	}
	return rpc.Errorf(rpc.PinMismatch, "put holders back into the rosters of all parties, with their former signing keys, and then give shares to others with `lodge keys reshare`",
		"%d of the %d holders of epoch %d are in this party's roster, and %d must decrypt", here, len(places), e.ID, e.Threshold+1)
}

// numbers converts ascending indices in the roster to the holders' numbers, ascending. It returns
// an error if they are not a quorum of the epoch that includes this party.
func (s *Service) numbers(e *vaultkeys.Epoch, parties []uint32) ([]uint32, error) {
	wrong := func(format string, args ...any) error {
		return rpc.Errorf(rpc.WrongQuorum, fmt.Sprintf("name %d holders of epoch %d in ascending order", e.Threshold+1, e.ID), format, args...)
	}
	//lodge:check threshold/quorum/size [run=TestRefusals] a quorum of the wrong size decrypts
	if least := int(e.Threshold) + 1; len(parties) != least && !(e.AnyQuorum && len(parties) > least) {
		return nil, wrong("%d parties; the keys of epoch %d are for %d", len(parties), e.ID, least)
	}
	places := s.Vault.Places(e)
	numbers := make([]uint32, len(parties))
	for i, p := range parties {
		n := slices.Index(places, int(p))
		//lodge:check threshold/quorum/order [drop=i > 0 && p <= parties[i-1]] [run=TestRefusals]
		//  one quorum has several names
		if n < 0 || i > 0 && p <= parties[i-1] {
			return nil, wrong("party %d is not a holder, or not in order", p)
		}
		numbers[i] = uint32(n)
	}
	if !slices.Contains(parties, uint32(s.Sessions.Self)) {
		return nil, wrong("this party, %d, is not in the quorum %v", s.Sessions.Self, parties)
	}
	slices.Sort(numbers)
	return numbers, nil
}

// terms returns the hash of a session's parameters: the set and, if any, the keys.
func terms(what string, scheme scheme, keys [32]byte) round.Digest {
	h := scheme.hash()
	return round.Hash("lodge "+plan.Threshold+" "+what, h[:], keys[:])
}
