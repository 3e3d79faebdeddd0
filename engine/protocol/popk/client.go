package popk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// ClientConfig is the configuration on which a single prover and its verifiers agree. The proof is
// bound to the prover's name, so that nobody can present a copy as its own proof, and to a context
// that the application chooses.
type ClientConfig struct {
	Scheme   *gbfv.Scheme
	Instance *params.Instance // of U ciphertexts; see ClientInstance
	Key      *gbfv.PublicKey
	KeyHash  round.Digest
	Prover   string
	Context  []byte
	Workers  int
}

// ClientInstance returns the instance for proofs of u ciphertexts by one client under the key of n
// parties.
func ClientInstance(set *params.Set, fieldName string, parties, u int) (*params.Instance, error) {
	return params.Resolve(set, fieldName, params.Use{Parties: parties, Dim: 1, U: u})
}

// CiphertextSize returns the length in bytes of the ciphertexts that Prove returns.
func (c *ClientConfig) CiphertextSize() int {
	return 2 * c.Instance.U * codec.PolySize(c.Scheme.N(), c.Scheme.Q.Primes())
}

// ProofSize returns the length in bytes of the proof: the digests of V masks and V responses.
func (c *ClientConfig) ProofSize() int {
	p := c.Instance.Proof
	return digestsSize(p) + p.V*responseSize(c.Scheme.N(), p)
}

// MemoryBytes estimates the peak memory in bytes of Prove or Verify, including the messages.
func (c *ClientConfig) MemoryBytes() int64 {
	return MemoryBytes(c.Instance, 2, false, c.Workers)*5/4 + 2*int64(c.CiphertextSize()+c.ProofSize())
}

func (c *ClientConfig) check() error {
	if c.Scheme == nil || c.Instance == nil || c.Key == nil {
		return errors.New("popk: configuration without scheme, instance or key")
	}
	//lodge:check popk/client/serves [swap=c.Scheme.Serves(c.Instance, c.Instance.Use.Parties)=>nil]
	//  [run=TestStartRefuses] a client's proof uses an instance of another scheme
	return c.Scheme.Serves(c.Instance, c.Instance.Use.Parties)
}

func (c *ClientConfig) challenge(statement []byte) (sigma.Challenge, error) {
	h := c.Instance.Hash()
	//lodge:check popk/client/challenge/context [swap=c.Context=>nil] [run=Client|FuzzVerify] a
	//  client's proof can be replayed in another context
	//lodge:check popk/client/challenge/instance [drop=h[:]] [run=Client|FuzzVerify] a client's
	//  challenge does not bind the parameters
	//lodge:check popk/client/challenge/key [drop=c.KeyHash[:]] [run=Client|FuzzVerify] a client's
	//  proof for one key passes for another
	//lodge:check popk/client/challenge/statement [swap=statement=>statement[:0]]
	//  [run=Client|FuzzVerify] a client knows the challenge before it chooses ciphertexts and masks
	return newChallenge(c.Scheme, c.Instance.Proof, round.XOF("lodge popk client challenge",
		//lodge:check popk/client/challenge/prover [drop=[]byte(c.Prover)] [run=Client|FuzzVerify]
		//  one client's proof passes for another client
		[]byte(c.Prover), c.Context, h[:], c.KeyHash[:], statement))
}

// Prove encrypts U messages, given by their slots, and proves knowledge of them without
// interaction. The ciphertexts decrypt to the messages; Verify returns them doubled.
func Prove(ctx context.Context, c ClientConfig, messages []field.Vec, source *sample.Source) (ciphertexts, proof []byte, err error) {
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	sizes := c.Instance.Proof
	if len(messages) != sizes.U {
		return nil, nil, fmt.Errorf("popk: %d messages, want %d", len(messages), sizes.U)
	}
	for i, m := range messages {
		if len(m.W) != len(c.Scheme.Field.NewVec(c.Scheme.Slots()).W) {
			return nil, nil, fmt.Errorf("popk: message %d does not have %d slots", i, c.Scheme.Slots())
		}
	}
	p := &prover{scheme: c.Scheme, sizes: sizes, key: c.Key, source: source, workers: c.Workers,
		message: func(i int, slots, coeffs field.Vec, _ *sample.Stream) {
			copy(slots.W, messages[i].W)
			c.Scheme.Pack.Pack(coeffs, slots)
		}}
	defer p.Wipe()
	if err := p.sample(ctx); err != nil {
		return nil, nil, err
	}
	frames := make([][]byte, 2*sizes.U)
	masks, err := p.encrypt(ctx, func(i int, ct *gbfv.Ciphertext) {
		frames[2*i], frames[2*i+1] = packed(c.Scheme, ct)
		ct.Free()
	})
	if err != nil {
		return nil, nil, err
	}
	statement := append(slices.Concat(frames...), masks...)
	w, err := c.challenge(statement)
	if err != nil {
		return nil, nil, err
	}
	responses, err := p.respond(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	at := c.CiphertextSize()
	ciphertexts, proof = statement[:at:at], statement[at:]
	for _, r := range responses {
		frame, err := r.encode(sizes)
		if err != nil {
			return nil, nil, err
		}
		proof = append(proof, frame...)
	}
	return ciphertexts, proof, nil
}

// ErrProof is wrapped by the error of Verify if a well-formed proof is invalid.
var ErrProof = errors.New("popk: proof refused")

// Verify checks a proof and returns twice the ciphertexts, because the proof is about twice the
// ciphertexts. They decrypt to twice the messages, with the noise bound of the instance. The error
// wraps an error of package codec, or ErrProof.
func Verify(ctx context.Context, c ClientConfig, ciphertexts, proof []byte) ([]*gbfv.Ciphertext, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	sizes := c.Instance.Proof
	primes := c.Scheme.Q.Primes()
	poly := codec.PolySize(c.Scheme.N(), primes)
	//lodge:check popk/client/lengths [swap=len(ciphertexts) != c.CiphertextSize()=>len(ciphertexts)
	//  < c.CiphertextSize()] [swap=len(proof) != c.ProofSize()=>len(proof) < c.ProofSize()]
	//  [run=Client|FuzzVerify] a client's ciphertexts or proof can be longer than expected
	if len(ciphertexts) != c.CiphertextSize() || len(proof) != c.ProofSize() {
		return nil, fmt.Errorf("popk: %w: %d and %d bytes, want %d and %d", codec.ErrTruncated,
			len(ciphertexts), len(proof), c.CiphertextSize(), c.ProofSize())
	}
	digests, answers := proof[:digestsSize(sizes)], proof[digestsSize(sizes):]
	list := make([]*gbfv.Ciphertext, sizes.U)
	for i := range list {
		list[i] = c.Scheme.NewCiphertext()
		for half := range 2 {
			f := 2*i + half
			//lodge:check popk/client/ciphertext-decodes [run=Client|FuzzVerify] a client's
			//  ciphertexts that are not canonical pass
			if err := codec.DecodePoly(part(list, f), primes, ciphertexts[f*poly:(f+1)*poly]); err != nil {
				return nil, err
			}
		}
	}
	//lodge:check popk/client/challenge/masks [drop=digests] [run=Client|FuzzVerify] a client knows
	//  the challenge before it chooses its masks
	w, err := c.challenge(slices.Concat(ciphertexts, digests))
	if err != nil {
		return nil, err
	}
	size := responseSize(c.Scheme.N(), sizes)
	r := newResponse(c.Scheme.N(), sizes)
	//lodge:check popk/client/every-repetition [swap=sizes.V=>sizes.V - 1]
	//  [run=Client|FuzzVerify|TestEvery] the last repetition of a client's proof is not verified
	for j := range sizes.V {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		//lodge:check popk/client/response-decodes [run=Client|FuzzVerify] [redundant=N coefficients
		//  have no padding and the length is checked before, so every frame decodes] a client's
		//  responses that are not canonical pass
		if err := r.decode(sizes, answers[j*size:(j+1)*size]); err != nil {
			return nil, err
		}
		//lodge:check popk/client/bound [run=Client|FuzzVerify] a client's long witnesses pass
		if check := r.fault(sizes); check != "" {
			return nil, fmt.Errorf("%w: %s in repetition %d", ErrProof, check, j)
		}
		subtract := func(mask *gbfv.Ciphertext) { subtractCombination(c.Scheme, mask, w, list, j) }
		//lodge:check popk/client/equation [run=Client|FuzzVerify] a client's response for other
		//  ciphertexts passes
		if !opens(c.Scheme, sizes, c.Key, r, digestAt(digests, j), subtract) {
			return nil, fmt.Errorf("%w: %s in repetition %d", ErrProof, CheckEquation, j)
		}
	}
	for _, ct := range list {
		//lodge:check popk/client/doubled [run=Client|FuzzVerify] the parties decrypt ciphertexts
		//  that are not the ones proved (twice the client's)
		c.Scheme.Double(ct, ct)
	}
	return list, nil
}
