// Package decryption serves the decryption of clients' ciphertexts at one party: it sends the
// client this party's decryption share, which the client combines with those of all other parties.
//
// Decryption is an oracle for the key. A party therefore answers only under keys that were made for
// this purpose, only for fresh ciphertexts that come with a proof of plaintext knowledge by the
// caller itself (so that nobody has another's ciphertext decrypted, and the noise is bounded),
// within its rate, and once for each polynomial that its key share multiplies: the answer is
// durable before it leaves, and asking again gives the same bytes.
package decryption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	decryptionv1 "github.com/lodge-mpc/lodge/proto/lodge/decryption/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/offline/keyring"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const prefix = "/lodge.decryption.v1.DecryptionService/"

// Rules say who may call what.
var Rules = rpc.Rules{
	prefix + "DecryptShare":  rpc.Allow(rpc.Client).With(config.PermDecrypt),
	prefix + "GetDecryption": rpc.Allow(rpc.Client).With(config.PermDecrypt),
}

// Bounds of one request.
const (
	maxContext = 1 << 10
	uploadTime = 2 * time.Minute
)

// Service implements lodge.decryption.v1.
type Service struct {
	decryptionv1.UnimplementedDecryptionServiceServer
	Sessions *session.Registry
	Ring     *keyring.Ring
	Vault    Vault
	Audit    *audit.Log
	// Announced returns when the peers have recorded the state of this party's store.
	Announced func(context.Context) error
	Parties   int
}

// request is a decryption that has been checked against policy and form.
type request struct {
	keys   *keyring.Keys
	scheme *gbfv.Scheme
	client popk.ClientConfig
	header *decryptionv1.DecryptShareHeader
	caller rpc.Principal
	call   *job.Call

	ciphertext, proof []byte
}

// DecryptShare implements the service.
func (s *Service) DecryptShare(stream decryptionv1.DecryptionService_DecryptShareServer) error {
	err := s.decryptShare(stream)
	if err != nil {
		s.Sessions.Metrics.Count(metrics.Decryptions, 1, string(rpc.FromError(err).Code))
	}
	return err
}

func (s *Service) decryptShare(stream decryptionv1.DecryptionService_DecryptShareServer) error {
	caller, _ := rpc.Caller(stream.Context())
	q, err := rpc.Receive(uploadTime, stream.Recv, func(m *decryptionv1.DecryptShareRequest) (*request, error) {
		q, err := s.open(m.GetHeader(), caller)
		if err == nil {
			q.call, err = s.Sessions.Gate.AdmitCall(caller.Name, uint64(q.client.MemoryBytes()))
		}
		return q, err
	}, (*request).add)
	if q != nil {
		defer q.keys.Release()
		defer q.call.Release()
	}
	if err != nil {
		return err
	}
	if err := q.call.Compute(); err != nil {
		return err
	}
	key, answer, err := s.answer(stream.Context(), q)
	if err != nil {
		return err
	}
	return stream.Send(&decryptionv1.DecryptShareResponse{CiphertextDigest: key.Digest[:], Party: uint32(s.Sessions.Self), Chunk: answer})
}

// open checks a header and loads the keys that it names.
func (s *Service) open(h *decryptionv1.DecryptShareHeader, caller rpc.Principal) (*request, error) {
	//lodge:check decryption/header [drop=h == nil] [tests=./services/party] [run=TestDecryption]
	//  [redundant=a request without a header names no quorum and is rejected for that] a request
	//  without a header crashes the service
	if h == nil || len(h.GetContext()) > maxContext {
		return nil, rpc.Errorf(rpc.Invalid, "send the header first; a context has at most 1024 bytes", "no header, or a context of %d bytes", len(h.GetContext()))
	}
	//lodge:check decryption/quorum [tests=./services/party] [run=TestDecryption] a subset of the
	//  parties decrypts
	if !slices.Equal(h.GetQuorum(), everybody(s.Parties)) {
		return nil, rpc.Errorf(rpc.Invalid, "name all parties in ascending order", "quorum %v; keys of %d parties need all of them", h.GetQuorum(), s.Parties)
	}
	q := &request{header: h, caller: caller}
	//lodge:check decryption/purpose
	//  [swap=jobv1.Purpose_PURPOSE_DECRYPTION=>jobv1.Purpose_PURPOSE_TRIPLES]
	//  [tests=./services/party] [run=TestDecryption] keys made for triples are used for decryption
	epoch, err := s.Ring.Held(h.GetEpoch(), job.PurposeName(jobv1.Purpose_PURPOSE_DECRYPTION))
	if err != nil {
		return nil, err
	}
	if q.scheme, err = s.Ring.Scheme(epoch.Params, h.GetField()); err != nil {
		return nil, err
	}
	instance, err := popk.ClientInstance(keyring.SetOf(epoch, q.scheme), h.GetField(), s.Parties, 1)
	if err != nil {
		return nil, rpc.Errorf(rpc.Invalid, "", "%v", err)
	}
	if q.keys, err = s.Ring.Load(epoch.ID, epoch.Purpose); err != nil {
		return nil, err
	}
	//lodge:check decryption/context [drop=Context: h.GetContext()] [tests=./services/party]
	//  [run=TestDecryption] a proof can be replayed in another context
	q.client = popk.ClientConfig{
		Scheme: q.scheme, Instance: instance, Key: q.keys.Public.Public, KeyHash: q.keys.PublicHash,
		//lodge:check decryption/prover [swap=caller.Name=>"client-a"] [tests=./services/party]
		//  [run=TestDecryption] a client can have another client's ciphertext decrypted
		Prover: caller.Name, Context: h.GetContext(), Workers: s.Ring.Workers(),
	}
	return q, nil
}

func everybody(n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

// add collects ciphertext and proof, whose sizes the header determines.
func (q *request) add(m *decryptionv1.DecryptShareRequest) error {
	q.ciphertext, q.proof = append(q.ciphertext, m.GetCiphertext()...), append(q.proof, m.GetProof()...)
	//lodge:check decryption/size [tests=./services/party] [run=TestDecryption] a client can send
	//  any amount of data
	if len(q.ciphertext) > q.client.CiphertextSize() || len(q.proof) > q.client.ProofSize() {
		return rpc.Errorf(rpc.TooLarge, "", "a ciphertext of %s has %d bytes and its proof %d",
			q.scheme.Set.Name, q.client.CiphertextSize(), q.client.ProofSize())
	}
	return nil
}

// ledgerKey identifies the ring element that the key share multiplies.
func (q *request) ledgerKey(doubled *gbfv.Ciphertext) ledger.LedgerKey {
	return ledgerKey(q.header.GetEpoch(), ddec.ClientKey(q.scheme, q.client.Instance, doubled), q.header.GetQuorum())
}

func ledgerKey(epoch uint64, digest [32]byte, quorum []uint32) ledger.LedgerKey {
	k := ledger.LedgerKey{Epoch: epoch, Digest: digest}
	for _, p := range quorum {
		k.Quorum = append(k.Quorum, int(p))
	}
	return k
}

// answer gives the one answer for a ciphertext, making it if there is none.
func (s *Service) answer(ctx context.Context, q *request) (key ledger.LedgerKey, held []byte, err error) {
	doubled, err := popk.Verify(ctx, q.client, q.ciphertext, q.proof)
	s.Sessions.Metrics.Proofs(metrics.ProofClient, err == nil, 1)
	//lodge:check decryption/proof [tests=./services/party] [run=TestDecryption] a client can have a
	//  ciphertext decrypted that it does not know the content of
	if err != nil {
		return key, nil, rpc.Errorf(rpc.Invalid, "prove the ciphertext under this epoch's key, with your own name and this context", "%v", err)
	}
	key = q.ledgerKey(doubled[0])
	entry := audit.Entry{Event: audit.Decrypted, Actor: q.caller.Name, Auth: audit.Auth(q.caller.Auth), Digest: key.Digest, Note: "answered",
		Objects: []string{fmt.Sprintf("epoch/%d", key.Epoch)}}
	release, err := s.Audit.Hold(entry)
	//lodge:check decryption/audit-room tests=./services/party run=TestFullAuditDiskDecryption a full audit disk uses up the one decryption of a ciphertext
	if err != nil {
		return key, nil, err
	}
	defer release()
	var fresh []byte
	switch _, err = s.Vault.Decryption(key); {
	case errors.Is(err, vaulterr.ErrNotFound):
		if fresh, err = s.share(q, key, doubled[0]); err != nil {
			return key, nil, err
		}
	case err != nil:
		return key, nil, err
	}
	//lodge:check decryption/recorded [as=held, first, err := fresh, true, error(nil)]
	//  [tests=./services/party] [run=TestDecryption] an answer leaves before it is recorded in the
	//  ledger
	held, first, err := s.Vault.RecordDecryption(key, q.caller.Name, fresh) // gives what is held to the client that it went to
	if err != nil {
		return key, nil, vaulterr.RPC(err, "this decryption")
	}
	if !first {
		entry.Note = "repeated"
	}
	s.Sessions.Metrics.Count(metrics.Decryptions, 1, entry.Note)
	if _, err := s.Audit.Append(entry); err != nil {
		return key, nil, err
	}
	return key, held, s.Announced(ctx)
}

// share makes this party's message. It leaves the party only if it is the first that is recorded.
func (s *Service) share(q *request, key ledger.LedgerKey, doubled *gbfv.Ciphertext) ([]byte, error) {
	//lodge:check decryption/rate [tests=./services/party] [run=TestDecryption] a client gets more
	//  answers than the policy allows
	if err := s.Sessions.Gate.AdmitDecryption(); err != nil {
		return nil, err
	}
	bind := [][]byte{round.Uint(key.Epoch), key.Digest[:], round.Uint(uint64(s.Sessions.Self))}
	for _, p := range key.Quorum {
		bind = append(bind, round.Uint(uint64(p)))
	}
	source, err := session.Source("decryption for a client", bind...)
	if err != nil {
		return nil, err
	}
	defer source.Wipe()
	return ddec.ClientShare(q.scheme, q.client.Instance, doubled, q.keys.Secret, source), nil
}

// GetDecryption implements the service.
func (s *Service) GetDecryption(ctx context.Context, r *decryptionv1.GetDecryptionRequest) (*decryptionv1.GetDecryptionResponse, error) {
	if len(r.GetCiphertextDigest()) != 32 {
		return nil, rpc.Errorf(rpc.Invalid, "", "a digest of %d bytes", len(r.GetCiphertextDigest()))
	}
	e, err := s.Vault.Decryption(ledgerKey(r.GetEpoch(), [32]byte(r.GetCiphertextDigest()), r.GetQuorum()))
	if errors.Is(err, vaulterr.ErrNotFound) {
		return &decryptionv1.GetDecryptionResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	caller, _ := rpc.Caller(ctx)
	return &decryptionv1.GetDecryptionResponse{Answered: true, When: timestamppb.New(e.When), ToCaller: e.Client == caller.Name}, nil
}
