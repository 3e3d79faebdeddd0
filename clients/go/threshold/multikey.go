package threshold

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/mkdecrypt"
)

// Keys of a set for multi-key ciphertexts belong to a group: its parties have their own keys, and
// share only masks. Programs should use package clients/go/multikey.

// Prepared multi-key schemes of the sets used so far. Ciphertexts depend only on the set, not on
// the common reference string.
var multikeySchemes sync.Map // of *multikey.Scheme, by name

// multikeyOf prepares a set for multi-key ciphertexts; it returns nil if there is no set with this
// name.
func multikeyOf(name string) (*multikey.Scheme, error) {
	if known, ok := multikeySchemes.Load(name); ok {
		return known.(*multikey.Scheme), nil
	}
	set, err := multikey.Lookup(name)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // it may be a set of another package
	}
	scheme, err := multikey.New(set, multikey.StandardSeed())
	if err == nil {
		multikeySchemes.Store(name, scheme)
	}
	return scheme, err
}

// Multikey returns the set of a group for multi-key ciphertexts, or nil for threshold keys.
func (k *Key) Multikey() *multikey.Set {
	if k.multikey == nil {
		return nil
	}
	return k.multikey.Set
}

// encodeMultikey returns the encodings of multi-key ciphertexts, and records their keys.
func (r *Request) encodeMultikey(k *Key) ([]byte, error) {
	switch {
	case k.multikey == nil:
		return nil, lodge.Errorf(lodge.Invalid, "name a group for multi-key ciphertexts", "%s is not a set for multi-key ciphertexts", k.Params)
	case r.Paper || r.Flooding || r.Coefficients != 0:
		return nil, lodge.Errorf(lodge.Invalid, "leave these out", "multi-key ciphertexts are decrypted with exact masks, and have no coefficients")
	}
	var b []byte
	for i, c := range r.Multikey {
		if err := k.multikey.Check(c); err != nil {
			return nil, lodge.Errorf(lodge.Invalid, "", "ciphertext %d: %v", i, err)
		}
		if i == 0 {
			r.keys = c.Keys()
		}
		if !slices.Equal(r.keys, c.Keys()) {
			return nil, lodge.Errorf(lodge.Invalid, "use one request for the ciphertexts under each set of keys", "ciphertext %d and the first one are under different keys", i)
		}
		b = k.multikey.AppendCiphertext(b, c)
	}
	if len(r.keys) == 0 {
		return nil, lodge.Errorf(lodge.Invalid, "read them with multikey.Decrypt", "the ciphertexts are public bits")
	}
	r.owners = nil
	for _, id := range r.keys {
		p, known := r.Owners[id]
		if !known {
			return nil, &lodge.Error{Code: unknownKey, What: fmt.Sprintf("no owner is given for the multi-key keys %.8x", id[:]), Next: "list the parties' keys to find their owners"}
		}
		r.owners = append(r.owners, p)
	}
	return b, nil
}

// unknownKey is the code for keys without a known owner.
const unknownKey lodge.Code = "unknown_key"

// multikeyQuestion adds the data about multi-key ciphertexts to a question.
func (r *Request) multikeyQuestion(q *decrypt.Question) {
	q.Count = len(r.Multikey)
	for i, id := range r.keys {
		q.Multikey = append(q.Multikey, decrypt.KeyOwner{Key: id, Owner: uint32(r.owners[i])})
	}
}

// chooseOwners returns a quorum that includes the owners of the keys: among the group's quorums
// with masks the smallest ones, of these the ones whose members failed least in this call, and of
// these the one with most masks. If no quorum has masks, it returns the owners, who may have
// answered before, plus another party if there is only one owner.
func chooseOwners(k *Key, r *Request, failures map[int]int, empty map[string]bool) ([]int, error) {
	owners := slices.Compact(slices.Sorted(slices.Values(r.owners)))
	for _, p := range owners {
		if !slices.Contains(k.Holders, p) {
			return nil, &lodge.Error{Code: wrongQuorum, What: fmt.Sprintf("party %d, an owner of the ciphertexts' keys, is not in the group of epoch %d", p, k.Epoch),
				Next: "create a group with it, or have the inputs encrypted again without it"}
		}
		if !slices.Contains(k.Up, p) {
			return nil, &lodge.Error{Code: lodge.Unavailable, What: fmt.Sprintf("party %d, an owner of the ciphertexts' keys, cannot be reached; they cannot be decrypted without it", p),
				Next: "retry when it is up"}
		}
	}
	if best := k.bestMasks(r.form(), owners, failures, empty); best != nil {
		return best.Quorum, nil
	}
	for _, p := range slices.Sorted(slices.Values(k.Up)) {
		if len(owners) < 2 && !slices.Contains(owners, p) {
			owners = append(owners, p)
		}
	}
	slices.Sort(owners)
	if len(owners) < 2 || empty[fmt.Sprint(owners)] {
		return nil, &lodge.Error{Code: lodge.OutOfStock, What: fmt.Sprintf("no quorum of epoch %d that is up and includes the owners %v has masks", k.Epoch, r.owners),
			Next: fmt.Sprintf("create masks with `lodge keys masks %d --quorum`", k.Epoch)}
	}
	return owners, nil
}

// combineMultikey returns the bits of plaintext answers, 0 or 1. The error wraps
// [mkdecrypt.ErrNoise] if one is not a bit.
func (a *Answers) combineMultikey() ([]uint64, error) {
	s, err := multikeyOf(a.Params)
	if err != nil || s == nil {
		return nil, lodge.Errorf(lodge.Invalid, "", "%s is not a set for multi-key ciphertexts", a.Params)
	}
	params, err := mkdecrypt.Params(s.Set, len(a.Question.Quorum), len(a.Question.Multikey))
	if err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "", "%v", err)
	}
	opened, err := a.plaintexts(params)
	if err != nil {
		return nil, err
	}
	if _, err := mkdecrypt.Bits(opened); err != nil {
		clear(opened)
		return nil, err
	}
	return opened, nil
}

// ByKeys groups ciphertexts by their keys. It returns lists of indices, each for ciphertexts under
// the same keys, in the order of their first occurrence.
func ByKeys(list []*multikey.Ciphertext) (groups [][]int) {
	found := map[string]int{}
	for i, c := range list {
		var name bytes.Buffer
		for _, id := range c.Keys() {
			name.Write(id[:])
		}
		g, known := found[name.String()]
		if !known {
			g = len(groups)
			found[name.String()], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}
