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
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// multikeyScheme is that of groups: parties that have keys of their own, for multi-key ciphertexts, and open them together. An
// epoch of a group has no secret and no public key; masks, the record of what was answered and policies belong to it. Its
// quorums are any two of the group, or more, since those decrypt whose keys are in a ciphertext.
type multikeyScheme struct{ *multikey.Context }

func (s *multikeyScheme) name() string   { return s.Name }
func (s *multikeyScheme) hash() [32]byte { return s.Hash() }

func (s *multikeyScheme) check(holders int, galois []uint32) error {
	if len(galois) > 0 {
		return rpc.Errorf(rpc.Invalid, "name no rotations, or another set", "a group for %s has no keys for automorphisms", s.Name)
	}
	if holders < 2 || holders > share.MaxParties {
		return rpc.Errorf(rpc.Invalid, "take two parties or more", "a group of %d", holders)
	}
	return nil
}

func (s *multikeyScheme) keysMemory(spec *jobv1.SessionSpec, holders int) (uint64, error) {
	return 0, s.check(holders, spec.GetGalois())
}

// startKeys makes nothing: that the parties agree on the spec, and each makes it active, is all that a group takes.
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
func (s *multikeyScheme) key() int      { return 0 }
func (s *multikeyScheme) own() bool     { return true }

// params are for ciphertexts under one key: the number of keys changes the dimension alone, and not the masks.
func (s *multikeyScheme) params(quorum int, form jobv1.MaskForm) (decrypt.Params, error) {
	if form == jobv1.MaskForm_MASK_FORM_PAPER {
		return decrypt.Params{}, rpc.Errorf(rpc.Invalid, "ask for the exact form", "there are no masks of the paper's form for %s", s.Name)
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

// multikeyCiphertexts are ciphertexts under the same keys, of one bit each.
type multikeyCiphertexts struct {
	*mkdecrypt.Ciphertexts
	s    *mk.Scheme
	keys []mk.KeyID
}

func (s *multikeyScheme) ciphertexts(h *thresholdv1.DecryptHeader, _ uint32) (ciphertexts, error) {
	switch {
	case h.GetForm() != thresholdv1.CiphertextForm_CIPHERTEXT_FORM_MULTIKEY:
		return nil, rpc.Errorf(rpc.Invalid, "say that they are multi-key ciphertexts", "a group for %s decrypts no ciphertexts of form %s", s.Name, h.GetForm())
	case h.GetCoefficients() != 0 || h.GetLevel() != 0 || h.GetFlooding():
		return nil, rpc.Errorf(rpc.Invalid, "", "multi-key ciphertexts have no coefficients and no levels, and are decrypted without flooding")
	case len(h.GetMultikey()) < 1 || len(h.GetMultikey()) > s.Parties:
		return nil, rpc.Errorf(rpc.Invalid, "name the keys that all ciphertexts of the request are under; what everybody can read needs no decryption",
			"%d keys; ciphertexts of %s are under 1 to %d", len(h.GetMultikey()), s.Name, s.Parties)
	}
	keys := make([]mk.KeyID, len(h.GetMultikey()))
	for i, x := range h.GetMultikey() {
		//lodge:check multikey/keys/order [drop=i > 0 && bytes.Compare(x.GetKey(), keys[i-1][:]) <=
		//  0] [run=TestMultikeyRefusals] a request names one key twice
		if len(x.GetKey()) != len(keys[i]) || i > 0 && bytes.Compare(x.GetKey(), keys[i-1][:]) <= 0 {
			return nil, rpc.Errorf(rpc.Invalid, "name each by its digest of 32 bytes, in ascending order", "key %d is none, or not in order", i)
		}
		//lodge:check multikey/owner/quorum [run=TestMultikeyRefusals] an owner of the keys takes no
		//  part in the decryption
		if !slices.Contains(h.GetQuorum(), x.GetOwner()) {
			return nil, rpc.Errorf(rpc.WrongQuorum, "ask the owners of all keys that the ciphertexts are under",
				"party %d, whose multi-key keys %.8x are in the ciphertexts, is not in the quorum %v", x.GetOwner(), x.GetKey(), h.GetQuorum())
		}
		keys[i] = mk.KeyID(x.GetKey())
	}
	return &multikeyCiphertexts{mkdecrypt.NewCiphertexts(s.Scheme, keys), s.Scheme, keys}, nil
}

func (c *multikeyCiphertexts) size() int { return c.s.CiphertextSize(len(c.keys)) }
func (c *multikeyCiphertexts) each() int { return 1 }

// memory is that of a ciphertext as it is decoded, and as it is decrypted.
func (c *multikeyCiphertexts) memory() uint64 { return 12 * uint64(len(c.keys)*c.s.Dim) }

func (c *multikeyCiphertexts) decode(encoded []byte) error {
	if int(encoded[0]) != len(c.keys) {
		return fmt.Errorf("it is under %d keys, and the header names %d", encoded[0], len(c.keys))
	}
	x, err := c.s.DecodeCiphertext(encoded)
	if err != nil {
		return err
	}
	return c.Add(x)
}

func (c *multikeyCiphertexts) prepare() error { return nil }
func (c *multikeyCiphertexts) release()       {}

// owned refuses a request for ciphertexts under keys that this party does not have, or not any more, or not as the request has
// it. Of keys of others it knows what their owners have published.
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

// published refuses keys that this party does not have: those that are named as its own, and others that their owner, as the
// request has it, has revoked. What anybody else says of them keeps nobody from a decryption: their owner looks for itself.
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
		return rpc.Errorf(rpc.UnknownKey, "have the inputs encrypted anew, without it", "the owner of the multi-key keys %.8x, with the signing key %.8x, has left the roster", id[:], r.Signer[:])
	case mine && known && place != s.Keys.Party:
		return wrongOwner(id, place, owner)
	case mine:
		return s.Keys.Unknown(id)
	//lodge:check multikey/published/owner [drop=place == int(owner)] [run=TestPublishedOwners] a
	//  party revokes the keys of another
	case known && place == int(owner) && r.Revoked:
		return rpc.Errorf(rpc.RetiredKey, "have the inputs encrypted anew, under keys that are in use", "version %d of the multi-key keys of party %d (%.8x) is retired", r.Version, place, id[:])
	}
	return nil
}

func wrongOwner(id mk.KeyID, owner int, named uint32) *rpc.Error {
	return rpc.Errorf(rpc.WrongOwner, "name the owners of the keys", "the multi-key keys %.8x are those of party %d, and the request has them as those of party %d", id[:], owner, named)
}

// ownShare is this party's share of the key of a request: its own secrets, in the places of its keys. The caller wipes it.
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
