// Package triples makes authenticated triples and other tuples at one party: an adapter between
// lodge.triples.v1 and the protocol of the same name.
package triples

import (
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/offline/evaluator"
	"github.com/lodge-mpc/lodge/services/offline/keyring"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
)

// Rules say who may call what.
var Rules = session.Rules("/lodge.triples.v1.TriplesService/", rpc.Rules{"Estimate": rpc.Allow(rpc.Coordinator)})

// Service implements lodge.triples.v1.
type Service struct {
	triplesv1.UnsafeTriplesServiceServer
	session.Service
	ring    *keyring.Ring
	vault   Vault
	claims  *claims
	turns   *turns
	parties int
	operand operand
	audit   *audit.Log // nil writes nothing
	// evaluators compute products in this party's place; nil without.
	evaluators *evaluator.Pool
}

// New serves the triples of n parties, with these evaluators and this audit log, if any.
func New(sessions *session.Registry, ring *keyring.Ring, v Vault, n int, evaluators *evaluator.Pool, log *audit.Log) *Service {
	s := &Service{audit: log, ring: ring, vault: v, claims: newClaims(v), turns: newTurns(sessions.Limits.Compute / 2), parties: n, evaluators: evaluators}
	s.Service = session.NewService(sessions, jobv1.Protocol_PROTOCOL_TRIPLES, func(spec *jobv1.SessionSpec) session.Protocol {
		return &run{Service: s, spec: spec}
	})
	return s
}

// MACKeyShare is the canonical encoding of this party's share of an active MAC key.
func (s *Service) MACKeyShare(k keys.MACKey) ([]byte, error) {
	scheme, err := s.ring.Scheme(k.Params, k.Field)
	if err != nil {
		return nil, err
	}
	mac, err := loadMACKey(s.vault, k.ID, scheme)
	if err != nil {
		return nil, err
	}
	out := make([]byte, scheme.Field.Size())
	scheme.Field.Encode(out, mac.Share.At(0))
	mac.Share.Wipe()
	return out, nil
}
