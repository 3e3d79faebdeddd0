package keys

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"

	"github.com/lodge-mpc/lodge/engine/catalogue"
	"github.com/lodge-mpc/lodge/engine/keyset"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const requestIDSize = 16

// making is a running generation of keys. Its result is available once done is closed.
type making struct {
	caller  rpc.Principal
	request []byte
	done    chan struct{}
	made    vaultkeys.MultikeyKey
	err     error
}

// MakeKeys implements the service.
func (s *Store) MakeKeys(ctx context.Context, r *multikeyv1.MakeKeysRequest) (*multikeyv1.MakeKeysResponse, error) {
	caller, _ := rpc.Caller(ctx)
	switch {
	case s.Context == nil:
		return nil, multikey.NotConfigured()
	case len(r.GetRequestId()) != requestIDSize:
		return nil, rpc.Errorf(rpc.Invalid, "send 16 random bytes, the same when the request is repeated", "a request id of %d bytes", len(r.GetRequestId()))
	}
	m, err := s.begin(caller, r.GetRequestId())
	if err != nil {
		return nil, err
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if m.err != nil {
		return nil, m.err
	}
	return &multikeyv1.MakeKeysResponse{Keys: s.wire(&m.made)}, nil
}

// begin starts to make keys, or returns the keys that the same request has started or made.
func (s *Store) begin(caller rpc.Principal, request []byte) (*making, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.making; m != nil {
		if m.caller.Name != caller.Name || !bytes.Equal(m.request, request) {
			return nil, rpc.Errorf(rpc.Busy, "try again when they are complete", "other keys are being made")
		}
		return m, nil
	}
	m := &making{caller: caller, request: bytes.Clone(request), done: make(chan struct{})}
	all, err := s.Own()
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if k.Client == caller.Name && bytes.Equal(k.Request, request) {
			m.made = k
			close(m.done)
			return m, nil
		}
	}
	var legacy *catalogue.LegacyError
	//lodge:check multikeykeys/legacy run=TestLegacyKeys a legacy set makes multi-key keys
	if !s.AllowLegacy && errors.As(s.Context.CheckNewKeys(), &legacy) {
		return nil, plan.RefuseNewKeys(legacy)
	}
	call, err := s.Gate.AdmitCall(caller.Name, s.makingMemory())
	if err != nil {
		return nil, err
	}
	if err := call.Compute(); err != nil {
		call.Release()
		return nil, err
	}
	s.making = m
	s.working.Add(1)
	go s.run(m, call) // continues when the call ends: a repeated request finds it
	return m, nil
}

// makingMemory returns the memory for making keys in bytes: the keys' words, the chunks that are
// hashed and written, and tables.
func (s *Store) makingMemory() uint64 { return 2 * uint64(s.Context.KeySize()) }

func (s *Store) run(m *making, call *job.Call) {
	defer s.working.Done()
	defer call.Release()
	m.made, m.err = s.makeKeys(m)
	s.mu.Lock()
	s.making = nil
	s.mu.Unlock()
	if m.err != nil {
		s.Log.Error("multi-key keys could not be made", "error", m.err)
	}
	close(m.done)
	if m.err == nil {
		s.changed()
	}
}

func (s *Store) makeKeys(m *making) (k vaultkeys.MultikeyKey, err error) {
	source, err := session.Source("multikey keys")
	if err != nil {
		return k, err
	}
	w, err := s.Vault.NewMultikey(s.Known.Latest())
	if err != nil {
		return k, vaulterr.RPC(err, "a version of the multi-key keys")
	}
	defer w.Abort()
	var salt [32]byte
	_, _ = source.Stream("multikey owner salt").Read(salt[:])
	seed := multikey.OwnerSeed(s.Signer.Public().(ed25519.PublicKey), salt)
	secret, keys := s.Context.GenerateWithSeed(multikey.OwnerInSeed, seed, source, s.Workers)
	defer secret.Wipe()
	now := s.Vault.Now().UTC()
	k = vaultkeys.MultikeyKey{
		Version: w.Version(), State: vaultkeys.MultikeyActive, Owner: multikey.OwnerInSeed, Salt: salt[:], Params: s.Context.Name, ParamsHash: s.Context.Hash(), CRS: s.Context.CRS(),
		Key: secret.ID(), Size: uint64(s.Context.KeySize()), Created: now, Client: m.caller.Name, Request: m.request,
	}
	k.Record = s.record(&k, now, false)
	encoded := secret.AppendSecret(make([]byte, 0, s.Context.SecretSize()))
	defer clear(encoded)
	if _, err := w.Secret.Write(encoded); err != nil {
		return k, err
	}
	if err := (keyset.Head{Header: keys.Header(), Digests: keys.ChunkDigests()}).Write(w.Public, keys.AppendChunk); err != nil {
		return k, err
	}
	if err := w.Commit(k); err != nil {
		return k, vaulterr.RPC(err, s.name(k.Version))
	}
	return k, s.note(m.caller, audit.MultikeyMade, &k, k.Params)
}

// readAll reads exactly len(b) bytes, and returns an error if more follow.
func readAll(in io.Reader, b []byte) error {
	_, err := io.ReadFull(in, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return vaulterr.ErrCorrupt
	}
	if err != nil {
		return err
	}
	var more [1]byte
	if n, err := in.Read(more[:]); n > 0 || err != nil && err != io.EOF {
		return vaulterr.ErrCorrupt
	}
	return nil
}
