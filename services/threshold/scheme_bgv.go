package threshold

import (
	"context"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvdecrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvkeys"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// bgvScheme is the scheme of package bgv.
type bgvScheme struct{ *bgv.Scheme }

func (s *bgvScheme) name() string   { return s.Name }
func (s *bgvScheme) hash() [32]byte { return s.Hash() }

func elements(galois []uint32) (list []uint64) {
	for _, g := range galois {
		list = append(list, uint64(g))
	}
	return list
}

func (s *bgvScheme) check(holders int, galois []uint32) error {
	//lodge:check threshold/bgv/automorphisms [swap=elements(galois)=>nil]
	//  [run=TestBGVReshareRefusals] keys are made for invalid automorphisms
	if err := s.CheckGalois(elements(galois)); err != nil {
		return rpc.Errorf(rpc.Invalid, fmt.Sprintf("name odd numbers above 1 and below %d, in ascending order", 2*s.N()), "%v", err)
	}
	//lodge:check threshold/reshare/size [run=TestBGVHolders] keys are reshared among too many
	//  holders
	if holders > bgv.MaxParties {
		return rpc.Errorf(rpc.Invalid, "use fewer holders", "%d holders; keys of %s have %d at most", holders, s.Name, bgv.MaxParties)
	}
	return nil
}

func (s *bgvScheme) keysMemory(spec *jobv1.SessionSpec, holders int) (uint64, error) {
	if err := s.check(holders, spec.GetGalois()); err != nil {
		return 0, err
	}
	return uint64(bgvkeys.MemoryBytes(s.Scheme, holders, int(spec.GetThreshold()), len(spec.GetGalois()))), nil
}

func (s *bgvScheme) startKeys(c keysConfig) (round.Transition[*made], error) {
	t, err := bgvkeys.Start(bgvkeys.Config{
		Session: c.session, Scheme: s.Scheme, Threshold: int(c.spec.GetThreshold()), Galois: elements(c.spec.GetGalois()), Source: c.source,
		Workers: c.workers,
	})
	if err != nil {
		return round.Transition[*made]{}, err
	}
	return round.Then(t, func(_ context.Context, r bgvkeys.Result) (round.Transition[*made], error) {
		return round.Done(&made{[]secret.Box[share.Vec]{r.Share}, s.public(r.Keys)}), nil
	}), nil
}

func (s *bgvScheme) public(k *bgv.Keys) *publicKeys {
	head := keyset.Head{Header: s.KeysHeader(k), Digests: s.ChunkDigests(k)}
	var galois []uint32
	for _, g := range k.Galois {
		galois = append(galois, uint32(g))
	}
	return &publicKeys{head, bgv.DigestOf(head.Header, head.Digests), func(dst []byte, i int) []byte { return s.AppendChunk(dst, k, i) }, galois}
}

func (s *bgvScheme) layout(galois int) layout {
	return layout{bgv.HeaderSize(galois), s.Samples(galois), func(int) int { return s.ChunkSize() }}
}

// bgvReceiver receives keys of package bgv.
type bgvReceiver struct {
	*bgv.Receiver
	s *bgvScheme
}

func (s *bgvScheme) receive(header []byte, galois []uint32) (receiver, error) {
	if len(header) != bgv.HeaderSize(len(galois)) { // checked before memory is allocated
		return nil, fmt.Errorf("%w: a header of %d bytes for %d automorphisms", bgv.ErrKeys, len(header), len(galois))
	}
	in, err := s.Receive(header)
	return bgvReceiver{in, s}, err
}

func (r bgvReceiver) finish(digest [32]byte) (*publicKeys, error) {
	keys, err := r.Finish(digest)
	if err != nil {
		return nil, err
	}
	return r.s.public(keys), nil
}

// parts returns the shares of the secret, modulo each prime.
func (s *bgvScheme) parts() (list []part) {
	for _, q := range s.QP() {
		list = append(list, part{q, s.N()})
	}
	return list
}

func (s *bgvScheme) own() bool { return false }

func (s *bgvScheme) params(quorum int, form jobv1.MaskForm) (decrypt.Params, error) {
	if form == jobv1.MaskForm_MASK_FORM_PAPER {
		return decrypt.Params{}, rpc.Errorf(rpc.Invalid, "use the exact form", "there are no masks of the paper's form for %s", s.Name)
	}
	p, err := bgvdecrypt.Params(s.Scheme, quorum-1)
	if err != nil {
		return p, rpc.Errorf(rpc.Invalid, "use another parameter set, or a smaller threshold", "%v", err)
	}
	return p, nil
}

func (s *bgvScheme) failure(decrypt.Params, int, int) float64 { return 0 }

// floods returns a holder's share of the number of decryptions that the set allows. In each run at
// least one of the holders is honest and counts it. At most holders - threshold holders can be
// such, whatever the others do.
func (s *bgvScheme) floods(holders int, threshold uint32) uint64 {
	if _, err := bgvdecrypt.NewFlooding(s.Scheme, int(threshold)+1); err != nil {
		return 0
	}
	//lodge:check threshold/bgv/share-of-limit [swap=1 << s.LogDecryptions /
	//  uint64(holders-int(threshold))=>1 << s.LogDecryptions] [run=TestBGV$] all holders together
	//  answer more often than the set allows
	return 1 << s.LogDecryptions / uint64(holders-int(threshold))
}

// bgvCiphertexts holds ciphertexts of one level, of which the first coefficients are opened under
// masks, or all with flooding.
type bgvCiphertexts struct {
	s            *bgv.Scheme
	level        int
	coefficients int
	flooding     *bgvdecrypt.Flooding // or nil
	list         []*bgv.Ciphertext
	chosen       *bgvdecrypt.Coefficients
}

func (s *bgvScheme) ciphertexts(h *thresholdv1.DecryptHeader, threshold uint32) (ciphertexts, error) {
	n := uint32(s.N())
	c := &bgvCiphertexts{s: s.Scheme, level: int(h.GetLevel()), coefficients: int(h.GetCoefficients())}
	switch {
	//lodge:check threshold/bgv/form [run=TestBGVRefusals] BGV keys decrypt ciphertexts of another
	//  scheme
	case h.GetForm() != thresholdv1.CiphertextForm_CIPHERTEXT_FORM_BGV:
		return nil, rpc.Errorf(rpc.Invalid, fmt.Sprintf("keys of %s decrypt BGV and BFV ciphertexts", s.Name), "ciphertexts of form %s", h.GetForm())
	//lodge:check threshold/bgv/no-level [swap=uint32(s.MaxLevel())=>uint32(s.MaxLevel()) + 9]
	//  [run=TestBGVRefusals] an unknown level makes the size of ciphertexts unknown
	case h.GetLevel() > uint32(s.MaxLevel()):
		return nil, rpc.Errorf(rpc.Invalid, "", "ciphertexts of level %d; those of %s have levels from 0 to %d", h.GetLevel(), s.Name, s.MaxLevel())
	//lodge:check threshold/bgv/coefficients [drop=h.GetFlooding() != (h.GetCoefficients() == 0)]
	//  [run=TestBGVRefusals] one request has two meanings of what is opened
	case h.GetFlooding() != (h.GetCoefficients() == 0) || h.GetCoefficients() > n:
		return nil, rpc.Errorf(rpc.Invalid, "", "%d coefficients of each; 1 to %d are supported under masks, and 0, for all, with flooding", h.GetCoefficients(), n)
	case h.GetFlooding() && h.GetMasks() != jobv1.MaskForm_MASK_FORM_UNSPECIFIED:
		return nil, rpc.Errorf(rpc.Invalid, "omit the form of masks", "flooding uses no masks")
	case !h.GetFlooding():
		return c, nil
	}
	c.coefficients = int(n)
	var err error
	if c.flooding, err = bgvdecrypt.NewFlooding(s.Scheme, int(threshold)+1); err != nil {
		return nil, rpc.Errorf(rpc.Invalid, "open coefficients under masks", "%v", err)
	}
	//lodge:check threshold/bgv/low [run=TestBGVRefusals] ciphertexts without modulus for flooding
	//  are accepted
	if c.level < s.FloodLevel {
		return nil, rpc.Errorf(rpc.Invalid, "open coefficients under masks, or decrypt the ciphertexts before they are switched to so low a level",
			"ciphertexts of level %d; flooding requires level %d or more", c.level, s.FloodLevel)
	}
	return c, nil
}

func (c *bgvCiphertexts) size() int { return c.s.CiphertextSize(c.level) }
func (c *bgvCiphertexts) each() int { return c.coefficients }

// memory returns the bytes for a ciphertext at its level and for its messages. Under masks it adds
// the ciphertext at level 0 and its coefficients in the order of the products. With flooding it
// adds the ciphertext at the level of flooding, the intermediate values, and the answer as it is
// made, stored and sent.
func (c *bgvCiphertexts) memory() uint64 {
	row := 8 * c.s.N()
	rows := 2 * (c.level + 1)
	if c.flooding == nil {
		rows += 2 + 2
	} else {
		rows += (2 + 4 + 3) * c.flooding.Primes()
	}
	return uint64(row * rows)
}

func (c *bgvCiphertexts) decode(encoded []byte) error {
	//lodge:check threshold/bgv/level [run=TestBGVRefusals] ciphertexts of another level than agreed
	//  are accepted
	if int(encoded[0]) != c.level {
		return fmt.Errorf("it has level %d, but the header announces %d", encoded[0], c.level)
	}
	x, err := c.s.DecodeCiphertext(encoded)
	if err == nil {
		c.list = append(c.list, x)
	}
	return err
}

// key returns a digest of the part of the last ciphertext on which answers with flooding depend.
func (c *bgvCiphertexts) key() ([32]byte, error) { return c.flooding.Key(c.list[len(c.list)-1]) }

func (c *bgvCiphertexts) prepare() (err error) {
	if c.flooding != nil {
		return nil
	}
	degrees := make([]int, c.coefficients)
	for k := range degrees {
		degrees[k] = k
	}
	list := make([]bgvdecrypt.Chosen, len(c.list))
	for i, x := range c.list {
		list[i] = bgvdecrypt.Chosen{Ciphertext: x, Degrees: degrees}
	}
	c.chosen, err = bgvdecrypt.Select(c.s, list)
	return err
}

func (c *bgvCiphertexts) release() {}

func (c *bgvCiphertexts) Len() int { return len(c.list) * c.coefficients }

func (c *bgvCiphertexts) At(i int) (a []uint64, b uint64) { return c.chosen.At(i) }
