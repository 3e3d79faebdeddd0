package threshold

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	mk "github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/mkdecrypt"
	"github.com/lodge-mpc/lodge/engine/share"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/multikey"
)

// multikeyScheme is the scheme of groups: parties that have their own keys for multi-key
// ciphertexts and open them together. An epoch of a group has no secret and no public key, but
// masks, recorded answers and policies belong to it. Any two or more of the group may form a
// quorum, because the owners of a ciphertext's keys must decrypt it.
type multikeyScheme struct{ *multikey.Context }

func (s *multikeyScheme) name() string   { return s.Name }
func (s *multikeyScheme) hash() [32]byte { return s.Hash() }

func (s *multikeyScheme) check(holders int, galois []uint32) error {
	if len(galois) > 0 {
		return rpc.Errorf(rpc.Invalid, "omit the rotations, or use another set", "a group for %s does not support automorphisms", s.Name)
	}
	if holders < 2 || holders > share.MaxParties {
		return rpc.Errorf(rpc.Invalid, "use two parties or more", "a group of %d", holders)
	}
	return nil
}

func (s *multikeyScheme) keysMemory(spec *jobv1.SessionSpec, holders int) (uint64, error) {
	return 0, s.check(holders, spec.GetGalois())
}

// startKeys makes no keys: a group only needs that the parties agree on the spec and each activates
// it.
func (s *multikeyScheme) startKeys(c keysConfig) (round.Transition[*made], error) {
	context := s.Digest()
	digest := round.Hash("lodge multikey group", append([][]byte{context[:]}, c.members...)...)
	return round.Done(&made{public: &publicKeys{digest: digest}}), nil
}

func (s *multikeyScheme) layout(int) layout { return layout{0, 0, func(int) int { return 0 }} }

func (s *multikeyScheme) receive([]byte, []uint32) (receiver, error) {
	return nil, rpc.Errorf(rpc.Invalid, "", "a group has no public keys")
}

func (s *multikeyScheme) parts() []part { return nil }
func (s *multikeyScheme) own() bool     { return true }

// params returns the parameters for ciphertexts under one key: the number of keys changes only the
// dimension, not the masks.
func (s *multikeyScheme) params(quorum int, form jobv1.MaskForm) (decrypt.Params, error) {
	if form == jobv1.MaskForm_MASK_FORM_PAPER {
		return decrypt.Params{}, rpc.Errorf(rpc.Invalid, "use the exact form", "there are no masks of the paper's form for %s", s.Name)
	}
	p, err := mkdecrypt.Params(s.Set, quorum, 1)
	if err != nil {
		return p, rpc.Errorf(rpc.Invalid, "use another parameter set, or a smaller quorum", "%v", err)
	}
	return p, nil
}

func (s *multikeyScheme) failure(p decrypt.Params, _, _ int) float64 {
	return math.Exp2(mkdecrypt.Failure(s.Set, p))
}

func (s *multikeyScheme) floods(int, uint32) uint64 { return 0 }

// multikeyCiphertexts holds ciphertexts of one bit each under the same keys.
type multikeyCiphertexts struct {
	*mkdecrypt.Ciphertexts
	s    *mk.Scheme
	keys []mk.KeyID
}

func (s *multikeyScheme) ciphertexts(h *thresholdv1.DecryptHeader, _ uint32) (ciphertexts, error) {
	switch {
	case h.GetForm() != thresholdv1.CiphertextForm_CIPHERTEXT_FORM_MULTIKEY:
		return nil, rpc.Errorf(rpc.Invalid, "use the form of multi-key ciphertexts", "a group for %s does not decrypt ciphertexts of form %s", s.Name, h.GetForm())
	case h.GetCoefficients() != 0 || h.GetLevel() != 0 || h.GetFlooding():
		return nil, rpc.Errorf(rpc.Invalid, "", "multi-key ciphertexts have no coefficients and no levels, and are decrypted without flooding")
	case len(h.GetMultikey()) < 1 || len(h.GetMultikey()) > s.Parties:
		return nil, rpc.Errorf(rpc.Invalid, "name the keys of all ciphertexts of the request; a public value needs no decryption",
			"%d keys; ciphertexts of %s have 1 to %d", len(h.GetMultikey()), s.Name, s.Parties)
	}
	keys := make([]mk.KeyID, len(h.GetMultikey()))
	for i, x := range h.GetMultikey() {
		//lodge:check multikey/keys/order [drop=i > 0 && bytes.Compare(x.GetKey(), keys[i-1][:]) <=
		//  0] [run=TestMultikeyRefusals] a request names one key twice
		if len(x.GetKey()) != len(keys[i]) || i > 0 && bytes.Compare(x.GetKey(), keys[i-1][:]) <= 0 {
			return nil, rpc.Errorf(rpc.Invalid, "identify each key by its digest of 32 bytes, in ascending order", "key %d is malformed, or not in order", i)
		}
		//lodge:check multikey/owner/quorum [run=TestMultikeyRefusals] an owner of the keys takes no
		//  part in the decryption
		if !slices.Contains(h.GetQuorum(), x.GetOwner()) {
			return nil, rpc.Errorf(rpc.WrongQuorum, "the quorum must contain the owners of all keys of the ciphertexts",
				"party %d, whose multi-key keys %.8x are in the ciphertexts, is not in the quorum %v", x.GetOwner(), x.GetKey(), h.GetQuorum())
		}
		keys[i] = mk.KeyID(x.GetKey())
	}
	return &multikeyCiphertexts{mkdecrypt.NewCiphertexts(s.Scheme, keys), s.Scheme, keys}, nil
}

func (c *multikeyCiphertexts) size() int { return c.s.CiphertextSize(len(c.keys)) }
func (c *multikeyCiphertexts) each() int { return 1 }

// memory returns the bytes for a ciphertext as it is decoded and as it is decrypted.
func (c *multikeyCiphertexts) memory() uint64 { return 12 * uint64(len(c.keys)*c.s.Dim) }

func (c *multikeyCiphertexts) decode(encoded []byte) error {
	if int(encoded[0]) != len(c.keys) {
		return fmt.Errorf("it has %d keys, but the header names %d", encoded[0], len(c.keys))
	}
	x, err := c.s.DecodeCiphertext(encoded)
	if err != nil {
		return err
	}
	return c.Add(x)
}

func (c *multikeyCiphertexts) prepare() error { return nil }
func (c *multikeyCiphertexts) release()       {}

// owned returns an error if the request names keys as this party's own that this party does not
// have, no longer has, or if the request names another owner. For other parties' keys it relies on
// the owners' published records.
func (s *Service) owned(q *request) error {
	c, ok := q.batch.(*multikeyCiphertexts)
	if !ok {
		return nil
	}
	self := uint32(s.Sessions.Self)
	for i, id := range c.keys {
		owner := q.header.GetMultikey()[i].GetOwner()
		k, mine, err := s.Keys.Find(id)
		switch {
		case err != nil:
			return err
		//lodge:check multikey/owner/self [run=TestMultikeyRefusals] a party's own keys are used as
		//  another's
		case mine && owner != self:
			return wrongOwner(id, int(self), owner)
		case mine:
			if err := s.Keys.Usable(&k); err != nil {
				return err
			}
			continue
		}
		if err := s.published(id, owner); err != nil {
			return err
		}
	}
	q.params.Dimension *= len(c.keys)
	return nil
}

// published returns an error for keys that this party does not have: keys that the request names as
// its own, and keys that the named owner has revoked. Records signed by any other party do not
// prevent a decryption: the owner decides itself.
func (s *Service) published(id mk.KeyID, owner uint32) error {
	var r *multikey.Record
	known := false
	if s.Directory != nil {
		r, known = s.Directory.Owner(id)
	}
	place := -1
	if known {
		if at, err := r.Place(s.Sessions.Keys); err == nil {
			place = at
		}
	}
	switch mine := owner == uint32(s.Sessions.Self); {
	case mine && known && place < 0:
		return rpc.Errorf(rpc.UnknownKey, "encrypt the inputs again without its keys", "the owner of the multi-key keys %.8x, with the signing key %.8x, has left the roster", id[:], r.Signer[:])
	case mine && known && place != s.Keys.Party:
		return wrongOwner(id, place, owner)
	case mine:
		return s.Keys.Unknown(id)
	//lodge:check multikey/published/owner [drop=place == int(owner)] [run=TestPublishedOwners] a
	//  party revokes the keys of another
	case known && place == int(owner) && r.Revoked:
		return rpc.Errorf(rpc.RetiredKey, "encrypt the inputs again under current keys", "version %d of the multi-key keys of party %d (%.8x) is retired", r.Version, place, id[:])
	}
	return nil
}

func wrongOwner(id mk.KeyID, owner int, named uint32) *rpc.Error {
	return rpc.Errorf(rpc.WrongOwner, "name the owners of the keys", "the multi-key keys %.8x are those of party %d, but the request names party %d", id[:], owner, named)
}

// ownShare returns this party's share of the key of a request: its own secrets, in the positions of
// its keys. The caller must wipe it.
func (s *Service) ownShare(q *request, c *multikeyCiphertexts) (share.Vec, error) {
	secrets := map[mk.KeyID]*mk.Secret{}
	defer func() {
		for _, x := range secrets {
			x.Wipe()
		}
	}()
	for i, id := range c.keys {
		if q.header.GetMultikey()[i].GetOwner() != uint32(s.Sessions.Self) {
			continue
		}
		secret, err := s.Keys.Secret(id)
		if err != nil {
			return nil, err
		}
		secrets[id] = secret
	}
	return mkdecrypt.Share(c.s, c.keys, func(id mk.KeyID) *mk.Secret { return secrets[id] }), nil
}
