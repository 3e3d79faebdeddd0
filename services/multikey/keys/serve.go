package keys

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/session"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func (s *Store) wire(k *vaultkeys.MultikeyKey) *multikeyv1.MultikeyKeys {
	out := &multikeyv1.MultikeyKeys{
		Version: k.Version, State: string(k.State), Owner: k.Owner, Params: k.Params, ParamsHash: k.ParamsHash[:], Crs: k.CRS[:], Key: k.Key[:],
		KeyBytes: k.Size, Created: timestamppb.New(k.Created), Reason: k.Reason, Record: k.Record, Revocation: k.Revocation,
		Pinned: s.Context != nil && s.Context.Same(k.ParamsHash, k.CRS) == nil,
	}
	if !k.Retired.IsZero() {
		out.Retired = timestamppb.New(k.Retired)
	}
	return out
}

// ListKeys implements the service.
func (s *Store) ListKeys(context.Context, *multikeyv1.ListKeysRequest) (*multikeyv1.ListKeysResponse, error) {
	all, err := s.Own()
	if err != nil {
		return nil, err
	}
	out := &multikeyv1.ListKeysResponse{}
	for _, k := range all {
		out.Keys = append(out.Keys, s.wire(&k))
	}
	return out, nil
}

// DestroyKeys implements the service.
func (s *Store) DestroyKeys(ctx context.Context, r *multikeyv1.DestroyKeysRequest) (*multikeyv1.DestroyKeysResponse, error) {
	caller, _ := rpc.Caller(ctx)
	if err := session.CheckReason(r.GetReason()); err != nil {
		return nil, err
	}
	//lodge:check multikey/destroy-tenants run=TestDestroyNeedsEveryTenant one tenant's client destroys keys that all tenants use
	if err := caller.CheckShared(s.name(r.GetVersion()), s.Tenants); err != nil {
		return nil, err
	}
	k, err := s.Vault.MultikeyKey(r.GetVersion())
	if err != nil {
		return nil, vaulterr.RPC(err, s.name(r.GetVersion()))
	}
	before := k.State
	if err := s.Vault.RetireMultikey(k.Version, r.GetReason(), s.record(&k, s.Vault.Now().Truncate(time.Second), true)); err != nil {
		return nil, vaulterr.RPC(err, s.name(k.Version))
	}
	if k, err = s.Vault.MultikeyKey(k.Version); err != nil {
		return nil, err
	}
	if before != vaultkeys.MultikeyRetired {
		if err := s.note(caller, audit.MultikeyRetired, &k, r.GetReason()); err != nil {
			return nil, err
		}
		s.changed()
	}
	return &multikeyv1.DestroyKeysResponse{Keys: s.wire(&k)}, nil
}

// Encrypt implements the service.
func (s *Store) Encrypt(ctx context.Context, r *multikeyv1.EncryptRequest) (*multikeyv1.EncryptResponse, error) {
	caller, _ := rpc.Caller(ctx)
	if s.Context == nil {
		return nil, multikey.NotConfigured()
	}
	bits, err := unpack(r.GetBits(), r.GetCount())
	if err != nil {
		return nil, err
	}
	defer clear(bits)
	k, err := s.choose(r.GetVersion())
	if err != nil {
		return nil, err
	}
	call, err := s.Gate.AdmitCall(caller.Name, uint64(len(bits))*encryptedBit)
	if err != nil {
		return nil, err
	}
	defer call.Release()
	if err := call.Compute(); err != nil {
		return nil, err
	}
	secret, err := s.load(&k)
	if err != nil {
		return nil, err
	}
	defer secret.Wipe()
	source, err := session.Source("multikey encryption", k.Key[:])
	if err != nil {
		return nil, err
	}
	return &multikeyv1.EncryptResponse{Keys: s.wire(&k), Batch: s.Context.AppendBatch(nil, secret.Encrypt(bits, source))}, nil
}

// maxBits is the maximum number of bits in one call: a response is a message of one megabyte.
const maxBits = 1 << 18

// encryptedBit is the memory per bit in bytes: the bit, its error, its word, and the word in the
// response, twice.
const encryptedBit = 1 + 8 + 4 + 4 + 8

// choose returns the keys of a version, or for 0 the newest usable keys.
func (s *Store) choose(version uint64) (vaultkeys.MultikeyKey, error) {
	if version > 0 {
		k, err := s.Vault.MultikeyKey(version)
		return k, vaulterr.RPC(err, s.name(version))
	}
	all, err := s.Own()
	if err != nil {
		return vaultkeys.MultikeyKey{}, err
	}
	for _, k := range slices.Backward(all) {
		if s.Usable(&k) == nil {
			return k, nil
		}
	}
	return vaultkeys.MultikeyKey{}, rpc.Errorf(rpc.NotFound, "`lodge mk keys generate` makes keys", "party %d has no multi-key keys in use for the context that the roster pins", s.Party)
}

// unpack returns the bits of a request, which have exactly one encoding.
func unpack(packed []byte, count uint32) ([]bool, error) {
	switch {
	case count == 0:
		return nil, rpc.Errorf(rpc.Invalid, "", "no bits")
	case count > maxBits:
		return nil, rpc.Errorf(rpc.TooLarge, "encrypt fewer bits at a time", "%d bits; one call encrypts at most %d", count, maxBits)
	case len(packed) != int(count+7)/8 || count%8 != 0 && packed[len(packed)-1]>>(count%8) != 0:
		return nil, rpc.Errorf(rpc.Invalid, "send eight bits per byte, with zero bits after the last", "%d bytes for %d bits, or non-zero bits after the last", len(packed), count)
	}
	bits := make([]bool, count)
	for i := range bits {
		bits[i] = packed[i/8]>>(i%8)&1 == 1
	}
	return bits, nil
}
