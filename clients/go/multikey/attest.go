package multikey

import (
	"context"
	"crypto/ed25519"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/multikey"
)

// Attest signs the origin of ciphertexts, as an attester that the parties' policies name, for their
// decryption by a group: that of an epoch, or the newest active group if epoch is 0. It requests
// the group and the owners of the keys from the parties.
func (c *Client) Attest(ctx context.Context, list []*multikey.Ciphertext, epoch uint64, attester, circuit string, key ed25519.PrivateKey) (*threshold.Provenance, error) {
	requests := requestsOf(list)
	if len(requests) == 0 {
		return nil, &lodge.Error{Code: lodge.Invalid, What: "these bits are public", Next: "decrypt them without an attester's signature"}
	}
	o := c.owners(ctx)
	k, err := c.group(ctx, epoch)
	if err != nil {
		return nil, err
	}
	p := &threshold.Provenance{Attester: attester, Circuit: circuit, Epoch: k.Epoch, Batch: len(list)}
	for _, some := range requests {
		if err := c.known(some[0], o); err != nil {
			return nil, err
		}
		q := &threshold.Request{Multikey: some, Owners: o.of}
		if err := q.Sign(k, attester, circuit, key); err != nil {
			return nil, err
		}
		p.Signatures = append(p.Signatures, q.Signature)
	}
	return p, nil
}

// requestsOf returns the ciphertexts of each request, without public bits.
func requestsOf(list []*multikey.Ciphertext) (requests [][]*multikey.Ciphertext) {
	for _, places := range threshold.ByKeys(list) {
		var some []*multikey.Ciphertext
		for _, i := range places {
			some = append(some, list[i])
		}
		if len(some[0].Parts) > 0 {
			requests = append(requests, some)
		}
	}
	return requests
}

// epoch returns the epoch of the provenance, if it was signed for this number of requests.
func (r *Decryption) epoch() (uint64, error) {
	p := r.Provenance
	if p == nil {
		return r.Epoch, nil
	}
	if n := len(requestsOf(r.Ciphertexts)); n != len(p.Signatures) || r.Epoch != 0 && r.Epoch != p.Epoch {
		return 0, &lodge.Error{Code: lodge.Invalid, What: "the attester signed other ciphertexts, or another epoch", Next: "have these ciphertexts signed"}
	}
	return p.Epoch, nil
}
