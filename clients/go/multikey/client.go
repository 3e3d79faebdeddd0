package multikey

import (
	"context"
	"crypto/hpke"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
)

// Client is connected to all parties of a roster.
type Client struct {
	parties *lodge.Parties
	listing time.Duration // time limit for a party to list its keys
	// Threshold is the same client for groups: it lists their masks and sends requests to quorums.
	Threshold *threshold.Client
}

// Dial prepares connections to all parties of a configuration.
func Dial(c lodge.Config) (*Client, error) {
	parties, err := lodge.DialParties(c)
	if err != nil {
		return nil, err
	}
	return over(parties), nil
}

func over(parties *lodge.Parties) *Client {
	return &Client{parties: parties, Threshold: threshold.Over(parties), listing: 15 * time.Second}
}

// Close closes the connections and ends all calls.
func (c *Client) Close() error { return c.parties.Close() }

// OwnKeys describes a version of a party's own keys, as reported by the party.
type OwnKeys struct {
	Party   int            `json:"party"`
	Version uint64         `json:"version"`
	State   string         `json:"state"` // active or retired
	Key     multikey.KeyID `json:"-"`
	Name    string         `json:"key"` // Key in hexadecimal
	Params  string         `json:"params"`
	Bytes   uint64         `json:"bytes"` // of the public part
	Created time.Time      `json:"created"`
	Reason  string         `json:"reason,omitempty"`
	// Pinned reports whether the keys belong to the set and common reference string that the
	// party's roster pins.
	Pinned bool `json:"pinned"`
}

func keysOf(party int, k *multikeyv1.MultikeyKeys) (*OwnKeys, error) {
	out := &OwnKeys{
		Party: party, Version: k.GetVersion(), State: k.GetState(), Params: k.GetParams(), Bytes: k.GetKeyBytes(), Created: k.GetCreated().AsTime(),
		Reason: k.GetReason(), Pinned: k.GetPinned(), Name: fmt.Sprintf("%x", k.GetKey()),
	}
	if len(k.GetKey()) != len(out.Key) {
		return nil, &lodge.Error{Code: lodge.Internal, What: fmt.Sprintf("party %d sent a key name of %d bytes", party, len(k.GetKey()))}
	}
	copy(out.Key[:], k.GetKey())
	return out, nil
}

// at returns the service of a party.
func (c *Client) at(party int) (multikeyv1.KeysServiceClient, error) {
	if err := c.parties.Check(party); err != nil {
		return nil, err
	}
	return multikeyv1.NewKeysServiceClient(c.parties.Conn(party)), nil
}

// MakeKeys makes a party generate its own keys. It needs the permission "operate". It repeats calls
// that time out; the party generates the keys once.
func (c *Client) MakeKeys(ctx context.Context, party int) (*OwnKeys, error) {
	s, err := c.at(party)
	if err != nil {
		return nil, err
	}
	q := &multikeyv1.MakeKeysRequest{RequestId: make([]byte, 16)}
	rand.Read(q.RequestId)
	for {
		r, err := s.MakeKeys(ctx, q)
		if err == nil {
			return keysOf(party, r.GetKeys())
		}
		if ctx.Err() != nil || lodge.FromError(err).Code != lodge.TimedOut {
			return nil, c.parties.Failed(party, err)
		}
	}
}

// ListKeys lists a party's own keys by version, including retired ones.
func (c *Client) ListKeys(ctx context.Context, party int) ([]*OwnKeys, error) {
	if err := c.parties.Check(party); err != nil {
		return nil, err
	}
	list, err := listKeys(ctx, party, c.parties.Conn(party))
	return list, c.parties.Failed(party, err)
}

func listKeys(ctx context.Context, party int, conn *grpc.ClientConn) (list []*OwnKeys, err error) {
	r, err := multikeyv1.NewKeysServiceClient(conn).ListKeys(ctx, &multikeyv1.ListKeysRequest{})
	if err != nil {
		return nil, err
	}
	for _, k := range r.GetKeys() {
		x, err := keysOf(party, k)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}

// DestroyKeys makes a party erase a version of its keys permanently. It needs the permission
// "retire". Ciphertexts under these keys can never be decrypted again.
func (c *Client) DestroyKeys(ctx context.Context, party int, version uint64, reason string) (*OwnKeys, error) {
	s, err := c.at(party)
	if err != nil {
		return nil, err
	}
	r, err := s.DestroyKeys(ctx, &multikeyv1.DestroyKeysRequest{Version: version, Reason: reason})
	if err != nil {
		return nil, c.parties.Failed(party, err)
	}
	return keysOf(party, r.GetKeys())
}

// MaxBits is the maximal number of bits that a party encrypts in one call.
const MaxBits = 1 << 18

// Encrypt makes a party encrypt at most MaxBits bits under a version of its keys. It needs the
// permission "encrypt". Version 0 is the newest version in use. The party sees the bits, so use a
// party that may see them.
func (c *Client) Encrypt(ctx context.Context, scheme *multikey.Scheme, party int, version uint64, bits []bool) (*multikey.Batch, error) {
	s, err := c.at(party)
	if err != nil {
		return nil, err
	}
	packed := make([]byte, (len(bits)+7)/8)
	defer clear(packed)
	for i, b := range bits {
		if b {
			packed[i/8] |= 1 << (i % 8)
		}
	}
	r, err := s.Encrypt(ctx, &multikeyv1.EncryptRequest{Version: version, Count: uint32(len(bits)), Bits: packed})
	if err != nil {
		return nil, c.parties.Failed(party, err)
	}
	batch, err := scheme.DecodeBatch(r.GetBatch())
	if err != nil {
		return nil, fmt.Errorf("multikey: party %s: %w", c.parties.Name(party), err)
	}
	if batch.Len() != len(bits) || string(batch.Key[:]) != string(r.GetKeys().GetKey()) {
		return nil, &lodge.Error{Code: lodge.Internal, What: fmt.Sprintf("party %s returned a batch with a different number of bits or under different keys", c.parties.Name(party))}
	}
	return batch, nil
}

// Owners requests the keys of all parties, and omits keys that several parties claim. down holds
// the parties that do not respond, with the reason.
func (c *Client) Owners(ctx context.Context) (owners map[multikey.KeyID]int, down map[int]error) {
	o := c.owners(ctx)
	return o.of, o.down
}

// owners holds the parties' claims about their keys.
type owners struct {
	of       map[multikey.KeyID]int
	disputed map[multikey.KeyID][]int // keys that several parties claim
	down     map[int]error
}

// owners requests the keys of all parties concurrently, with a short time limit: a missing party
// does not affect ciphertexts that are not under its keys.
func (c *Client) owners(ctx context.Context) *owners {
	ctx, cancel := context.WithTimeout(ctx, c.listing)
	defer cancel()
	lists := make([][]*OwnKeys, c.parties.Len())
	errs := c.parties.Each(func(i int, conn *grpc.ClientConn) (err error) {
		lists[i], err = listKeys(ctx, i, conn)
		return err
	})
	o := &owners{map[multikey.KeyID]int{}, map[multikey.KeyID][]int{}, map[int]error{}}
	claims := map[multikey.KeyID][]int{}
	for i, keys := range lists {
		if errs[i] != nil {
			o.down[i] = errs[i]
		}
		for _, k := range keys {
			if !slices.Contains(claims[k.Key], i) {
				claims[k.Key] = append(claims[k.Key], i)
			}
		}
	}
	for id, list := range claims {
		if len(list) > 1 {
			o.disputed[id] = list
			continue
		}
		o.of[id] = list[0]
	}
	return o
}

// Decryption describes ciphertexts to decrypt and the way to decrypt them.
type Decryption struct {
	Ciphertexts []*multikey.Ciphertext
	Epoch       uint64 // of the group; 0: the newest active one
	// Recipient is the public key to which the parties encrypt their answers; nil means this
	// client.
	Recipient hpke.PublicKey
	// Quorum lists the parties that decrypt, which must include the owners; nil lets the client
	// choose.
	Quorum []int
	// Provenance is an attester's signature for these ciphertexts, or nil. It determines the epoch.
	Provenance *threshold.Provenance
	// Prepare is called with each request, for ciphertexts under the same keys, and may sign their
	// origin.
	Prepare func(*threshold.Key, *threshold.Request) error
}

// Decrypted is the result of Decrypt.
type Decrypted struct {
	Bits    []bool // in the order of the ciphertexts; nil if the answers are encrypted to another recipient
	Epoch   uint64
	Quorums [][]int
	// Answers holds the answers to each request, and Places the indices of its ciphertexts.
	Answers []*threshold.Answers
	Places  [][]int
}

// Decrypt has the owners of the keys decrypt ciphertexts, with one request for all ciphertexts
// under the same keys. Public bits are read without a request.
func (c *Client) Decrypt(ctx context.Context, r *Decryption) (*Decrypted, error) {
	o := c.owners(ctx)
	out := &Decrypted{Bits: make([]bool, len(r.Ciphertexts))}
	epoch, err := r.epoch()
	if err != nil {
		return nil, err
	}
	for _, places := range threshold.ByKeys(r.Ciphertexts) {
		var list []*multikey.Ciphertext
		for _, i := range places {
			list = append(list, r.Ciphertexts[i])
		}
		if len(list[0].Parts) == 0 {
			for k, i := range places {
				out.Bits[i] = multikey.Decode(list[k].B)
			}
			continue
		}
		if err := c.known(list[0], o); err != nil {
			return nil, err
		}
		k, err := c.group(ctx, epoch)
		if err != nil {
			return nil, err
		}
		q := &threshold.Request{Multikey: list, Owners: o.of, Quorum: r.Quorum, Recipient: r.Recipient}
		if p := r.Provenance; p != nil {
			q.Attester, q.Circuit, q.Signature = p.Attester, p.Circuit, p.Signatures[len(out.Answers)]
		}
		if r.Prepare != nil {
			if err := r.Prepare(k, q); err != nil {
				return nil, err
			}
		}
		got, err := c.Threshold.Decrypt(ctx, k, q)
		if err != nil {
			return nil, err
		}
		for n, m := range got.Messages {
			out.Bits[places[n]] = m == 1
		}
		out.Epoch, out.Quorums, out.Answers, out.Places = k.Epoch, append(out.Quorums, got.Quorum), append(out.Answers, got.Answers), append(out.Places, places)
	}
	if r.Recipient != nil {
		out.Bits = nil
	}
	return out, nil
}

// known returns an error for ciphertexts under keys that no party, or several parties, claim.
func (c *Client) known(x *multikey.Ciphertext, o *owners) error {
	for _, id := range x.Keys() {
		if _, known := o.of[id]; known {
			continue
		}
		if list := o.disputed[id]; len(list) > 0 {
			var names []string
			for _, p := range list {
				names = append(names, c.parties.Name(p))
			}
			return &lodge.Error{Code: lodge.Conflict, What: fmt.Sprintf("several parties claim the multi-key keys %.8x: %s", id[:], strings.Join(names, ", ")),
				Next: "ask their operators: `lodge mk registry list` shows the owner at every party"}
		}
		if len(o.down) == 0 {
			return &lodge.Error{Code: "unknown_key", What: fmt.Sprintf("no party of the roster owns the multi-key keys %.8x", id[:]),
				Next: "have the inputs encrypted again, under keys of parties of the roster"}
		}
		var away []string
		for i, name := range c.parties.Names() {
			if err := o.down[i]; err != nil {
				away = append(away, fmt.Sprintf("%s (%s)", name, lodge.FromError(err).Code))
			}
		}
		return &lodge.Error{Code: lodge.Unavailable, What: fmt.Sprintf("no party that responded owns the multi-key keys %.8x; no answer of %s", id[:], strings.Join(away, ", ")),
			Next: "retry when all parties are up: ciphertexts can only be decrypted with the owner of their keys"}
	}
	return nil
}

// group returns a group: that of an epoch, or the newest active one.
func (c *Client) group(ctx context.Context, epoch uint64) (*threshold.Key, error) {
	if epoch > 0 {
		return c.Threshold.Key(ctx, epoch)
	}
	list, _, err := c.Threshold.Keys(ctx)
	if err != nil {
		return nil, err
	}
	var found *threshold.Key
	for _, k := range list {
		if k.Multikey() != nil && k.State == "active" {
			found = k
		}
	}
	if found == nil {
		return nil, &lodge.Error{Code: lodge.NotFound, What: "no reachable party is in a group for multi-key ciphertexts", Next: "create one with `lodge keys generate --params` and a multi-key set"}
	}
	return found, nil
}
