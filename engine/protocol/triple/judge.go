package triple

import (
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// The steps of the proofs: of a MAC key, and of the ciphertexts of a batch.
const (
	StepMACKey = "mackey"
	StepBatch  = "triple"
	StepPair   = "checkpair" // of what the MAC check of input masks consumes
)

const stepMAC = "triple/mac"

// Digest returns the digest of a batch of count tuples under this plan. transcript is the hash of
// the session's broadcasts up to those of the MAC check. The digest is the same at every honest
// party.
func (p *Plan) Digest(id, key round.Digest, count int, transcript round.Digest) round.Digest {
	h := p.Instance.Hash()
	//lodge:check triple/digest/session [drop=id[:]] [run=TestDigestOfABatch] the digest of a batch
	//  does not bind the session
	//lodge:check triple/digest/instance [drop=h[:]] [run=TestDigestOfABatch] the digest of a batch
	//  does not bind the parameters
	//lodge:check triple/digest/key [drop=key[:]] [run=TestDigestOfABatch] the digest of a batch
	//  does not bind the key
	//lodge:check triple/digest/kind [drop=round.Uint(uint64(p.Kind))] [run=TestDigestOfABatch] the
	//  digest of a batch does not bind the kind of tuples
	//lodge:check triple/digest/count [drop=round.Uint(uint64(count))] [run=TestDigestOfABatch] the
	//  digest of a batch does not bind the number of tuples
	//lodge:check triple/digest/transcript [drop=transcript[:]] [run=TestDigestOfABatch] the digest
	//  of a batch does not bind the broadcasts
	fields := [][]byte{id[:], h[:], key[:], round.Uint(uint64(p.Kind)), round.Uint(uint64(count)), transcript[:]}
	switch {
	case p.Kind.Owned():
		//lodge:check triple/digest/owner [run=TestDigestOfABatch] the digest of a batch does not
		//  bind the owner of input masks
		fields = append(fields, round.Uint(uint64(p.Owner)))
	case p.Sacrifice:
		//lodge:check triple/digest/sacrifice [run=TestDigestOfABatch|TestTrusting] the digest of a
		//  batch does not bind whether products were sacrificed
		fields = append(fields, []byte("sacrificed"))
	}
	//lodge:check triple/digest/convolution [run=TestDigestOfABatch|TestConvolutionShapes] the
	//  digest of a batch does not bind the shape of convolutions
	if c := p.Shape.Convolution; p.windowed() {
		for _, n := range []int{
			c.Channels, c.Height, c.Width, c.Outputs, c.KernelHeight, c.KernelWidth,
			c.StrideHeight, c.StrideWidth, c.PaddingHeight, c.PaddingWidth,
		} {
			fields = append(fields, round.Uint(uint64(n)))
		}
	}
	return round.Hash("lodge batch", fields...)
}

// Counts returns the smallest and the largest number of tuples that a batch yields: kinds that open
// products drop tuples whose product is zero.
func (p *Plan) Counts() (least, most int) {
	//lodge:check evidence/verdict/counts [tests=./services/session/evidence] [run=TestRefereeOfCounts] a
	//  party is convicted for a batch without the tuples that opened to zero
	if p.Kind.Opens() {
		return 0, p.Count
	}
	return p.Count, p.Count
}

// Shapes returns the shapes of a batch's broadcasts before and after its proofs.
func (p *Plan) Shapes(s *gbfv.Scheme) map[string]round.Shape {
	digest, coin := round.Bare(len(round.Digest{})), round.Bare(2*round.NonceSize)
	shapes := map[string]round.Shape{nameMACKey: digest, compareName: digest}
	for name, shape := range maccheck.Shapes(stepMAC, s.Field) {
		shapes[name] = shape
	}
	elements := func(name string, count int) {
		size := count * s.Field.Size()
		if count == 0 || size > round.MaxFrame {
			return
		}
		v := s.Field.NewVec(count)
		shapes[name] = round.Of(size, func(b []byte) error { return s.Field.DecodeVec(v, b) })
	}
	if p.Sacrifice {
		shapes[round.CommitName(sacrificeCoin)], shapes[round.OpenName(sacrificeCoin)] = digest, coin
		elements(sacrificeName, p.maskedElements())
	}
	if p.Kind.Opens() {
		elements(productsName, p.Count)
	}
	return shapes
}
