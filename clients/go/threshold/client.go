package threshold

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvdecrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/mkdecrypt"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
)

// Client is connected to all parties; [Dial] creates one. It may be used by several goroutines
// concurrently.
type Client struct {
	parties *lodge.Parties
	// Patience is how long a party may take to respond before the client uses others instead; 0
	// means 3 s.
	Patience time.Duration

	mu     sync.Mutex
	waited map[int]time.Time // when the client last waited for each unreachable party
}

// reconnect is how long the client waits for an unreachable party: long enough for a connection
// over a slow link, and not longer, because every client waits for a party that is down.
const reconnect = 300 * time.Millisecond

// waitAgain is how long the client does not wait again for an unreachable party.
const waitAgain = 10 * time.Second

// waits reports whether to wait for an unreachable party.
func (c *Client) waits(party int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.waited[party]) < waitAgain {
		return false
	}
	if c.waited == nil {
		c.waited = map[int]time.Time{}
	}
	c.waited[party] = time.Now()
	return true
}

const defaultPatience = 3 * time.Second

// Dial returns a client of all parties in the configuration. It connects on first use.
func Dial(c lodge.Config) (*Client, error) {
	parties, err := lodge.DialParties(c)
	if err != nil {
		return nil, err
	}
	return Over(parties), nil
}

// Over returns a client over existing connections. Close closes them.
func Over(parties *lodge.Parties) *Client { return &Client{parties: parties} }

// Close closes the connections and ends all calls.
func (c *Client) Close() error { return c.parties.Close() }

// Key describes the keys of an epoch, as reported by the holders ([Client.Keys]).
type Key struct {
	Epoch     uint64   `json:"epoch"`
	State     string   `json:"state"`
	Params    string   `json:"params"`
	Digest    [32]byte `json:"-"`
	Threshold int      `json:"threshold"` // any Threshold + 1 of the holders decrypt
	Holders   []int    `json:"holders"`   // places in the roster, by the number of their share; -1 for a holder that has left
	Security  string   `json:"keygen_security"`
	Created   time.Time
	KeyBytes  uint64 `json:"key_bytes"`
	// Up lists the holders that responded, and Decrypted the number of ciphertexts that each has
	// answered for.
	Up        []int          `json:"up"`
	Decrypted map[int]uint64 `json:"decrypted"`
	Masks     []Masks        `json:"masks"`
	// Dispute is the disagreement of the parties about the keys, if any; the other fields are then
	// unreliable.
	Dispute error `json:"-"`

	// Galois lists the automorphisms X -> X^g of BGV keys. Flooded is the largest number of
	// ciphertexts for which a holder has answered, or begun to answer, with flooding; FloodingLimit
	// is the limit for each holder, 0 for none. Flooders lists the parties of Up that may flood:
	// holders of new shares may not if they held no share when the keys were generated.
	Galois        []uint64 `json:"galois,omitempty"`
	Flooded       uint64   `json:"flooded,omitempty"`
	FloodingLimit uint64   `json:"flooding_limit,omitempty"`
	Flooders      []int    `json:"flooders,omitempty"`

	scheme   *lwe.Scheme // or
	bgv      *bgv.Scheme // or
	multikey *multikey.Scheme
}

// Masks describes a quorum's stock of masks: the smallest number that one of its members has.
type Masks struct {
	Quorum             []int   `json:"quorum"`
	Form               string  `json:"form"`
	Free               uint64  `json:"free"`
	FailureProbability float64 `json:"failure_probability"`
	NoiseBound         float64 `json:"noise_bound"` // as a fraction of the modulus
}

// Scheme returns the scheme of the keys' parameter set, or nil for a set of BGV.
func (k *Key) Scheme() *lwe.Scheme { return k.scheme }

// Forms of masks by name.
var forms = map[string]jobv1.MaskForm{"exact": jobv1.MaskForm_MASK_FORM_EXACT, "paper": jobv1.MaskForm_MASK_FORM_PAPER}

// said is one party's description of a key.
type said struct {
	party int
	key   *thresholdv1.ThresholdKey
}

// ask lists the keys of all parties, and returns the responses that arrive in time; down holds the
// other parties, with the reason.
func (c *Client) ask(ctx context.Context) (keys map[uint64][]said, down map[int]error) {
	patience := c.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lists := make([][]*thresholdv1.ThresholdKey, c.parties.Len())
	errs := c.parties.Each(func(i int, conn *grpc.ClientConn) error {
		r, err := thresholdv1.NewThresholdServiceClient(conn).ListKeys(ctx, &thresholdv1.ListKeysRequest{})
		if err != nil && lodge.FromError(err).Code == lodge.Unavailable { // the party may be back without having been tried
			conn.ResetConnectBackoff()
			if c.waits(i) {
				r, err = waitFor(ctx, conn, min(reconnect, patience), r, err)
			}
		}
		lists[i] = r.GetKeys()
		return err
	})
	keys, down = map[uint64][]said{}, map[int]error{}
	for i, list := range lists {
		if errs[i] != nil {
			down[i] = errs[i]
		}
		for _, k := range list {
			if by := keys[k.GetEpoch()]; len(by) == 0 || by[len(by)-1].party != i { // each party counts once
				keys[k.GetEpoch()] = append(by, said{i, k})
			}
		}
	}
	return keys, down
}

// waitFor sends the request once more to a party that could not be reached, and returns its
// response, or else the previous error.
func waitFor(ctx context.Context, conn *grpc.ClientConn, patience time.Duration, r *thresholdv1.ListKeysResponse, err error) (*thresholdv1.ListKeysResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	late, failed := thresholdv1.NewThresholdServiceClient(conn).ListKeys(ctx, &thresholdv1.ListKeysRequest{}, grpc.WaitForReady(true))
	if failed == nil {
		return late, nil
	}
	return r, err
}

// Keys lists the threshold keys that the parties know, by epoch. down holds the parties that could
// not be reached.
func (c *Client) Keys(ctx context.Context) (list []*Key, down map[int]error, err error) {
	keys, down := c.ask(ctx)
	if len(down) == c.parties.Len() {
		return nil, down, down[0]
	}
	for epoch, by := range keys {
		k, err := c.merge(by)
		if err != nil { // the parties may agree about other keys
			k = &Key{Epoch: epoch, State: "disputed", Dispute: err}
		}
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b *Key) int { return int(int64(a.Epoch) - int64(b.Epoch)) })
	return list, down, nil
}

// Key returns the keys of an epoch; 0 is the newest active epoch, except groups. More than
// Threshold of the holders must agree, so that at least one of them is honest.
func (c *Client) Key(ctx context.Context, epoch uint64) (*Key, error) {
	list, down, err := c.Keys(ctx)
	if err != nil {
		return nil, err
	}
	var found *Key
	for _, k := range list {
		if k.Epoch == epoch || epoch == 0 && k.State == "active" && k.multikey == nil && (found == nil || len(k.Up) > k.Threshold) {
			found = k
		}
	}
	if found == nil {
		return nil, &lodge.Error{Code: lodge.NotFound, What: fmt.Sprintf("no reachable party has such threshold keys (%d of %d are reachable)", c.parties.Len()-len(down), c.parties.Len()),
			Next: "`lodge keys list` lists the keys, `lodge keys generate` creates keys"}
	}
	if found.Dispute != nil {
		return nil, found.Dispute
	}
	if len(found.Up) <= found.Threshold {
		return nil, c.tooFew(found, down)
	}
	return found, nil
}

// tooFew returns an error that names the missing holders.
func (c *Client) tooFew(k *Key, down map[int]error) error {
	what := fmt.Sprintf("%d of the holders of epoch %d can be reached, but %d must decrypt", len(k.Up), k.Epoch, k.Threshold+1)
	for _, p := range k.Holders {
		if err := down[p]; err != nil {
			what += "; " + lodge.FromError(err).What
		}
	}
	return &lodge.Error{Code: lodge.Unavailable, What: what, Next: "start them again"}
}

// merge combines the descriptions of a key by several parties, who must agree.
func (c *Client) merge(by []said) (*Key, error) {
	by = living(by)
	first := by[0].key
	k := &Key{
		Epoch: first.GetEpoch(), State: first.GetState(), Params: first.GetParams(), Threshold: int(first.GetThreshold()), Security: first.GetKeygenSecurity(),
		Created: first.GetCreated().AsTime(), KeyBytes: first.GetKeyBytes(), Decrypted: map[int]uint64{},
	}
	copy(k.Digest[:], first.GetDigest())
	for _, p := range first.GetHolders() {
		if p < -1 || int(p) >= c.parties.Len() {
			return nil, &lodge.Error{Code: lodge.Conflict, What: fmt.Sprintf("party %s names holders that this client does not know", c.parties.Name(by[0].party)), Next: "check that the configuration lists the parties of the roster in order"}
		}
		k.Holders = append(k.Holders, int(p))
	}
	var err error
	if k.multikey, err = multikeyOf(k.Params); err != nil {
		return nil, err
	}
	if err := k.plausible(first.GetAnyQuorum()); err != nil {
		return nil, err
	}
	for _, g := range first.GetGalois() {
		k.Galois = append(k.Galois, uint64(g))
	}
	hash, err := k.load()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(hash[:], first.GetParamsHash()) {
		return nil, lodge.Errorf(lodge.Invalid, "use the release of Lodge that the parties run", "the parties have different parameters under the name %s", k.Params)
	}
	for _, s := range by {
		if s.key.GetParams() != first.GetParams() || !bytes.Equal(s.key.GetDigest(), first.GetDigest()) || s.key.GetThreshold() != first.GetThreshold() ||
			!slices.Equal(s.key.GetHolders(), first.GetHolders()) || !slices.Equal(s.key.GetGalois(), first.GetGalois()) {
			return nil, &lodge.Error{Code: lodge.Conflict, Next: "ask the parties' operators; encrypt nothing until they agree",
				What: fmt.Sprintf("parties %[1]s and %[3]s disagree about the keys of epoch %[2]d: keys %.8[4]x with a threshold of %[5]d, and keys %.8[6]x with %[7]d", c.parties.Name(s.party), k.Epoch,
					c.parties.Name(by[0].party), s.key.GetDigest(), s.key.GetThreshold(), first.GetDigest(), first.GetThreshold())}
		}
		if s.key.GetState() != "active" {
			k.State = s.key.GetState()
		}
		if slices.Contains(k.Holders, s.party) {
			k.Up, k.Decrypted[s.party] = append(k.Up, s.party), s.key.GetDecrypted()
			k.Flooded = max(k.Flooded, s.key.GetFlooded())
			if limit := s.key.GetFloodingLimit(); limit > 0 {
				if k.Flooders = append(k.Flooders, s.party); len(k.Flooders) == 1 || limit < k.FloodingLimit {
					k.FloodingLimit = limit
				}
			}
		}
	}
	k.Masks = stock(by, k.Threshold+1, k.multikey != nil)
	return k, nil
}

// load prepares the scheme of the keys' set, and returns the set's hash.
func (k *Key) load() (hash [32]byte, err error) {
	if k.multikey != nil {
		return k.multikey.Hash(), nil
	}
	if k.bgv, err = bgvOf(k.Params); err != nil {
		return hash, err
	}
	if k.bgv != nil {
		if err := k.bgv.CheckGalois(k.Galois); err != nil {
			return hash, lodge.Errorf(lodge.Invalid, "use the release of Lodge that the parties run", "%v", err)
		}
		return k.bgv.Hash(), nil
	}
	if k.scheme, err = schemeOf(k.Params); err != nil {
		return hash, err
	}
	return k.scheme.Hash(), nil
}

// layout describes how the public keys are split: the bytes of the header, the number of chunks,
// and the bytes of each.
func (k *Key) layout() (header, chunks int, size func(i int) int) {
	if k.multikey != nil {
		return 0, 0, func(int) int { return 0 }
	}
	if k.bgv != nil {
		return bgv.HeaderSize(len(k.Galois)), k.bgv.Samples(len(k.Galois)), func(int) int { return k.bgv.ChunkSize() }
	}
	return lwe.HeaderSize, k.scheme.Chunks(), k.scheme.ChunkSize
}

// digestOf returns the digest of keys of the set with this header and these digests of chunks.
func (k *Key) digestOf(h keyset.Head) [32]byte {
	if k.bgv != nil {
		return bgv.DigestOf(h.Header, h.Digests)
	}
	return lwe.DigestOf(h.Header, h.Digests)
}

// living removes descriptions of erased keys if other parties have different keys under the same
// number.
func living(by []said) []said {
	i := slices.IndexFunc(by, func(s said) bool { return s.key.GetState() != retired })
	if i < 0 {
		return by
	}
	return slices.DeleteFunc(slices.Clone(by), func(s said) bool {
		return s.key.GetState() == retired && !bytes.Equal(s.key.GetDigest(), by[i].key.GetDigest())
	})
}

// retired is the state of an epoch whose shares are erased.
const retired = "retired"

// plausible returns an error for keys for which a single party could pass for the majority of the
// holders.
func (k *Key) plausible(anyQuorum bool) error {
	n := len(k.Holders)
	if k.multikey != nil && anyQuorum && k.Threshold == 1 && n >= 2 { // no party holds another's secrets
		n = math.MaxInt
	}
	present := slices.DeleteFunc(slices.Sorted(slices.Values(k.Holders)), func(p int) bool { return p < 0 })
	if k.Threshold < 1 || 2*k.Threshold >= n || anyQuorum != (k.multikey != nil) || len(slices.Compact(slices.Clone(present))) != len(present) {
		return &lodge.Error{Code: lodge.Conflict, Next: "ask the parties' operators; encrypt nothing until they agree",
			What: fmt.Sprintf("a party lists keys of epoch %d with the impossible threshold %d and holders %v", k.Epoch, k.Threshold, k.Holders)}
	}
	return nil
}

// stock returns the masks that all members of a quorum have: the minimum over the reachable
// members.
func stock(by []said, quorum int, larger bool) (list []Masks) {
	type entry struct {
		Masks
		seen int
	}
	found := map[string]*entry{}
	var order []string
	for _, s := range by {
		for _, m := range s.key.GetMasks() {
			name := fmt.Sprint(m.GetForm(), m.GetQuorum())
			e := found[name]
			if e == nil {
				e = &entry{Masks: Masks{Free: m.GetFree(), FailureProbability: m.GetFailureProbability(), NoiseBound: m.GetNoiseBound()}}
				for form, x := range forms {
					if x == m.GetForm() {
						e.Form = form
					}
				}
				for _, p := range m.GetQuorum() {
					e.Quorum = append(e.Quorum, int(p))
				}
				found[name], order = e, append(order, name)
			}
			e.seen++
			e.Free = min(e.Free, m.GetFree())
		}
	}
	for _, name := range order {
		e := found[name]
		if fits := len(e.Quorum) == quorum || larger && len(e.Quorum) > quorum; fits && e.seen == len(e.Quorum) { // all of its members have responded
			list = append(list, e.Masks)
		}
	}
	slices.SortStableFunc(list, func(a, b Masks) int { return slices.Compare(a.Quorum, b.Quorum) })
	return list
}

// MaskParams returns the parameters with which a quorum decrypts under masks, of the paper's form
// or exact ones. BGV keys and groups use exact masks. The number of parties in the quorum matters
// only for groups, and the parameters are for ciphertexts under one key.
func (k *Key) MaskParams(quorum int, paper bool) (decrypt.Params, error) {
	if k.scheme == nil && paper {
		return decrypt.Params{}, lodge.Errorf(lodge.Invalid, "ask for exact masks", "%s does not support masks of the paper's form", k.Params)
	}
	if k.multikey != nil {
		return mkdecrypt.Params(k.multikey.Set, quorum, 1)
	}
	if k.bgv != nil {
		return bgvdecrypt.Params(k.bgv, k.Threshold)
	}
	return decrypt.ParamsOf(k.scheme, k.Threshold, paper)
}
