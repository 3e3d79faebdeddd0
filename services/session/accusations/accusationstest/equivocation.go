// Package accusationstest makes evidence for tests, with the signing keys of the parties that it
// convicts.
package accusationstest

import (
	"crypto/ed25519"
	"encoding/binary"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Party is a party of a roster, with its signing key.
type Party struct {
	Index  int
	Signer ed25519.PrivateKey
}

// Member returns a party of a development cluster.
func Member(c *devnet.Cluster, i int) (Party, error) {
	f, err := config.LoadParty(c.Parties[i])
	if err != nil {
		return Party{}, err
	}
	k, err := f.Signer()
	return Party{i, k}, err
}

// Equivocation returns evidence that a party has signed two versions of a broadcast in the session
// of a job.
func Equivocation(r *config.Roster, ref *jobv1.SessionRef, culprit, accuser Party) ([]byte, error) {
	const digest = len(round.Digest{})
	hash := r.Hash()
	spec := &jobv1.SessionSpec{
		Ref: ref, Protocol: jobv1.Protocol_PROTOCOL_TRIPLES, ProtocolVersion: job.ProtocolVersion, RosterHash: hash[:], Kind: jobv1.Kind_KIND_SCALAR,
		Epoch: 1,
	}
	st := &evidencev1.Statement{
		Kind: evidencev1.Kind_KIND_EQUIVOCATION, Culprit: uint32(culprit.Index), Accuser: uint32(accuser.Index), When: timestamppb.Now(), Spec: spec,
		Params: make([]byte, digest), Nonces: make([]byte, len(r.Parties)*digest),
	}
	session := round.SessionID(round.Terms{Version: job.ProtocolVersion, Protocol: "triples", Roster: hash, Epoch: 1, Job: job.Digest(spec)},
		make([]round.Digest, len(r.Parties)))
	for version := range byte(2) {
		e := exchange.Envelope{
			Protocol: "triples", Version: job.ProtocolVersion, Session: session, Round: 3, Name: "x/ct", From: round.Party(culprit.Index), To: round.All,
			Digest: round.Digest{version},
		}
		st.Messages = append(st.Messages, &evidencev1.Message{
			From: uint32(culprit.Index), Round: e.Round, Name: e.Name, Transcript: make([]byte, digest), Digest: e.Digest[:],
			Signature: e.Sign(culprit.Signer),
		})
	}
	encode := proto.MarshalOptions{Deterministic: true}
	statement, err := encode.Marshal(st)
	if err != nil {
		return nil, err
	}
	h := round.Hash("lodge accusation", statement)
	a, err := encode.Marshal(&evidencev1.Accusation{
		Statement: statement, Signature: ed25519.Sign(accuser.Signer, append([]byte("lodge accusation v1:"), h[:]...)),
	})
	file := binary.LittleEndian.AppendUint32([]byte("lodge accusation 1\n"), uint32(len(a)))
	return append(file, a...), err
}
