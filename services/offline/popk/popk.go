// Package popk serves proofs of plaintext knowledge at one party. It encrypts values for the
// party's own clients and proves them, and verifies ciphertexts that clients upload. It also runs
// the joint proof of all parties as a separate session, which tests that the parties of a roster
// can prove to each other. That session drops its ciphertexts and reports only their hash.
package popk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	protocol "github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/offline/keyring"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Rules say who may call what.
var Rules = session.Rules("/lodge.popk.v1.PopkService/", rpc.Rules{
	"Prove":  rpc.Allow(rpc.Client).With(config.PermProve),
	"Verify": rpc.Allow(rpc.Client).With(config.PermProve),
})

// Bounds of one request.
const (
	maxContext     = 1 << 10
	maxCiphertexts = 64
	chunk          = 1 << 20
	uploadTime     = 2 * time.Minute
)

// Service implements lodge.popk.v1.
type Service struct {
	popkv1.UnsafePopkServiceServer
	session.Service
	ring    *keyring.Ring
	vault   Vault
	parties int
}

// New serves the proofs of n parties.
func New(sessions *session.Registry, ring *keyring.Ring, v Vault, n int) *Service {
	s := &Service{ring: ring, vault: v, parties: n}
	s.Service = session.NewService(sessions, jobv1.Protocol_PROTOCOL_POPK, func(spec *jobv1.SessionSpec) session.Protocol {
		return &run{Service: s, spec: spec}
	})
	return s
}

// config validates a header and returns the configuration that prover and verifier share. The epoch
// must be one that usable accepts. The prover is the caller.
func (s *Service) config(ctx context.Context, h *popkv1.ProofHeader, usable func(uint64, string) (vaultkeys.Epoch, error)) (*protocol.ClientConfig, error) {
	caller, _ := rpc.Caller(ctx)
	switch {
	case h == nil:
		return nil, rpc.NoHeader
	case len(h.GetContext()) > maxContext:
		return nil, rpc.Errorf(rpc.TooLarge, "a context has at most 1024 bytes", "a context of %d bytes", len(h.GetContext()))
	case h.GetCiphertexts() < 1 || h.GetCiphertexts() > maxCiphertexts:
		return nil, rpc.Errorf(rpc.Invalid, "prove 1 to 64 ciphertexts at a time", "%d ciphertexts", h.GetCiphertexts())
	case h.GetDiagonal():
		return nil, rpc.Errorf(rpc.Invalid, "", "clients cannot prove that all slots are equal; only MAC keys are proved so")
	}
	e, err := s.vault.Epoch(h.GetEpoch())
	if err != nil {
		return nil, vaulterr.RPC(err, fmt.Sprintf("epoch %d", h.GetEpoch()))
	}
	if purpose := job.PurposeName(jobv1.Purpose_PURPOSE_DECRYPTION); e.Purpose != purpose {
		return nil, rpc.Errorf(rpc.KeyPurpose, "use an epoch that was made for decryption", "epoch %d was made for %s: clients do not encrypt under it", e.ID, e.Purpose)
	}
	if e, err = usable(e.ID, e.Purpose); err != nil {
		return nil, err
	}
	key, hash, err := s.ring.PublicKey(e)
	if err != nil {
		return nil, err
	}
	scheme, err := s.ring.Scheme(e.Params, h.GetField())
	if err != nil {
		return nil, err
	}
	instance, err := protocol.ClientInstance(keyring.SetOf(e, scheme), h.GetField(), s.parties, int(h.GetCiphertexts()))
	if err != nil {
		return nil, rpc.Errorf(rpc.Invalid, "", "%v", err)
	}
	return &protocol.ClientConfig{
		Scheme: scheme, Instance: instance, Key: key, KeyHash: hash,
		Prover: caller.Name, Context: h.GetContext(), Workers: s.ring.Workers(),
	}, nil
}

// request is an upload of a client.
type request struct {
	*protocol.ClientConfig
	call               *job.Call
	values             []byte // to prove
	ciphertexts, proof []byte // to verify
}

// open is config, and admits the call.
func (s *Service) open(ctx context.Context, h *popkv1.ProofHeader, usable func(uint64, string) (vaultkeys.Epoch, error)) (*request, error) {
	c, err := s.config(ctx, h, usable)
	if err != nil {
		return nil, err
	}
	call, err := s.Sessions.Gate.AdmitCall(c.Prover, uint64(c.MemoryBytes()))
	if err != nil {
		return nil, err
	}
	return &request{ClientConfig: c, call: call}, nil
}

// close releases and erases the request. q may be nil.
func (q *request) close() {
	if q != nil {
		q.call.Release()
		clear(q.values[:cap(q.values)])
	}
}

// Prove encrypts and proves a client's values. The client sends canonical field elements in the
// order of the slots: all slots of the first ciphertext, then those of the next.
func (s *Service) Prove(stream popkv1.PopkService_ProveServer) error {
	q, err := rpc.Receive(uploadTime, stream.Recv, func(m *popkv1.ProveRequest) (*request, error) {
		q, err := s.open(stream.Context(), m.GetHeader(), s.ring.Epoch)
		if err != nil {
			clear(m.GetValues())
			return nil, err
		}
		q.values = make([]byte, 0, q.Instance.U*q.Scheme.Slots()*q.Scheme.Field.Size())
		return q, nil
	}, func(q *request, m *popkv1.ProveRequest) error {
		defer clear(m.GetValues())
		if len(q.values)+len(m.GetValues()) > cap(q.values) {
			return rpc.Errorf(rpc.TooLarge, "", "%d ciphertexts take %d bytes of values", q.Instance.U, cap(q.values))
		}
		q.values = append(q.values, m.GetValues()...)
		return nil
	})
	defer q.close()
	if err != nil {
		return err
	}
	if err := q.call.Compute(); err != nil {
		return err
	}
	ciphertexts, proof, err := prove(stream.Context(), q.ClientConfig, q.values)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(ciphertexts, chunk) {
		if err := stream.Send(&popkv1.ProveResponse{Ciphertexts: part}); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(proof, chunk) {
		if err := stream.Send(&popkv1.ProveResponse{Proof: part}); err != nil {
			return err
		}
	}
	return nil
}

// prove decodes values and proves them with fresh randomness.
func prove(ctx context.Context, c *protocol.ClientConfig, values []byte) (ciphertexts, proof []byte, err error) {
	if len(values) != cap(values) {
		return nil, nil, rpc.Errorf(rpc.Invalid, "fill every slot of every ciphertext", "%d bytes of values, want %d", len(values), cap(values))
	}
	f := c.Scheme.Field
	size := f.Size() * c.Scheme.Slots()
	messages := make([]field.Vec, c.Instance.U)
	for i := range messages {
		messages[i] = f.NewVec(c.Scheme.Slots())
		defer messages[i].Wipe()
		if err := f.DecodeVec(messages[i], values[i*size:(i+1)*size]); err != nil {
			return nil, nil, rpc.Errorf(rpc.Invalid, "values are below the field's modulus, least significant byte first", "%v", err)
		}
	}
	// The values are included so that even a seed drawn twice would not mask two statements alike.
	source, err := session.Source("proof for a client", []byte(c.Prover), c.Context, c.KeyHash[:], values)
	if err != nil {
		return nil, nil, err
	}
	defer source.Wipe()
	return protocol.Prove(ctx, *c, messages, source)
}

// Verify implements the service. The proof is the caller's own.
func (s *Service) Verify(stream popkv1.PopkService_VerifyServer) error {
	q, err := rpc.Receive(uploadTime, stream.Recv, func(m *popkv1.VerifyRequest) (*request, error) {
		return s.open(stream.Context(), m.GetHeader(), s.ring.Held)
	}, func(q *request, m *popkv1.VerifyRequest) error {
		q.ciphertexts, q.proof = append(q.ciphertexts, m.GetCiphertexts()...), append(q.proof, m.GetProof()...)
		if len(q.ciphertexts) > q.CiphertextSize() || len(q.proof) > q.ProofSize() {
			return rpc.Errorf(rpc.TooLarge, "", "ciphertexts have %d bytes and their proof %d", q.CiphertextSize(), q.ProofSize())
		}
		return nil
	})
	defer q.close()
	if err != nil {
		return err
	}
	if err := q.call.Compute(); err != nil {
		return err
	}
	answer := &popkv1.VerifyResponse{Accepted: true}
	_, err = protocol.Verify(stream.Context(), *q.ClientConfig, q.ciphertexts, q.proof)
	s.Sessions.Metrics.Proofs(metrics.ProofClient, err == nil, 1)
	if err != nil {
		if ctx := stream.Context().Err(); ctx != nil {
			return ctx
		}
		answer = &popkv1.VerifyResponse{Check: "form", Reason: err.Error()}
		if errors.Is(err, protocol.ErrProof) {
			answer.Check = "proof"
		}
	}
	return stream.SendAndClose(answer)
}

// run is one joint session. Its count is the number of ciphertexts that every party proves.
type run struct {
	*Service
	spec     *jobv1.SessionSpec
	keys     *keyring.Keys
	scheme   *gbfv.Scheme
	instance *params.Instance
}

// Memory implements session.Protocol.
func (r *run) Memory() (uint64, error) {
	epoch, err := r.ring.Epoch(r.spec.GetEpoch(), job.PurposeName(r.spec.GetPurpose()))
	if err != nil {
		return 0, err
	}
	if epoch.Params != r.spec.GetParams() {
		return 0, rpc.Errorf(rpc.Invalid, "", "epoch %d was made with %s, not %s", r.spec.GetEpoch(), epoch.Params, r.spec.GetParams())
	}
	if r.scheme, err = r.ring.Scheme(r.spec.GetParams(), r.spec.GetField()); err != nil {
		return 0, err
	}
	if r.spec.GetCount() > maxCiphertexts {
		return 0, rpc.Errorf(rpc.Invalid, "", "%d ciphertexts in one proof; at most %d", r.spec.GetCount(), maxCiphertexts)
	}
	if r.instance, err = plan.Proof(r.spec, keyring.SetOf(epoch, r.scheme), r.parties); err != nil {
		return 0, rpc.Errorf(rpc.Invalid, "", "%v", err)
	}
	return uint64(protocol.MemoryBytes(r.instance, r.parties, false, r.ring.Workers()) * 5 / 4), nil
}

// Run implements session.Protocol.
func (r *run) Run(ctx context.Context, s *session.Entry) (*session.Stored, error) {
	var err error
	if r.keys, err = r.ring.Load(r.spec.GetEpoch(), job.PurposeName(r.spec.GetPurpose())); err != nil {
		return nil, err
	}
	defer r.keys.Release()
	s.ProvedUnder(r.keys.ProofKey)
	result, err := session.Drive(ctx, s, plan.Popk, plan.Terms(plan.Popk, r.instance, r.keys.PublicHash), func(rs round.Session, source *sample.Source) (round.Transition[protocol.Result], error) {
		return protocol.Start(protocol.Config{
			Session: rs, Step: plan.StepProof, Scheme: r.scheme, Instance: r.instance, Key: r.keys.Public.Public, KeyHash: r.keys.PublicHash,
			Source: source, Workers: r.ring.Workers(),
		})
	})
	if err != nil {
		return nil, err
	}
	for _, x := range result.Shares {
		x.Wipe()
	}
	return &session.Stored{
		Digest: gbfv.Hash(result.Ciphertexts), Epoch: r.spec.GetEpoch(), Count: r.spec.GetCount(), Security: r.keys.Epoch.KeygenSecurity,
		StatBits: r.instance.StatSecurityBits,
	}, nil
}
