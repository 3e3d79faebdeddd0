package ciphertext

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/big"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
)

// Client is connected to all parties; [Dial] creates one. It may be used by several goroutines
// concurrently.
type Client struct {
	name    string
	parties *lodge.Parties
}

// Dial returns a client of all parties in the configuration. It connects on first use.
func Dial(c lodge.Config) (*Client, error) {
	if c.Name == "" {
		return nil, lodge.Errorf(lodge.Invalid, "`lodge init` writes configurations of clients", "the configuration names no client")
	}
	parties, err := lodge.DialParties(c)
	if err != nil {
		return nil, err
	}
	return &Client{c.Name, parties}, nil
}

// Close closes the connections and ends all calls.
func (c *Client) Close() error { return c.parties.Close() }

// Key is the public key of an epoch, for vectors over one field. [Client.Key] fetches it.
type Key struct {
	Epoch  uint64
	Params string // parameter set
	Field  string // as p128

	scheme   *gbfv.Scheme
	instance *params.Instance
	public   *gbfv.PublicKey
	hash     round.Digest
}

// Slots returns the number of values in one ciphertext.
func (k *Key) Slots() int { return k.scheme.Slots() }

// Modulus returns the prime of the field.
func (k *Key) Modulus() *big.Int { return k.scheme.Field.Modulus() }

// SecurityBits returns the statistical security of the answers' flooding, after 2^20 decrypted
// ciphertexts.
func (k *Key) SecurityBits() int { return k.instance.StatSecurityBits }

// CiphertextBytes returns the number of bytes sent to every party for one decryption: the
// ciphertext and its proof.
func (k *Key) CiphertextBytes() int {
	c := k.agreed("", nil)
	return c.CiphertextSize() + c.ProofSize()
}

// MemoryBytes estimates the peak of encrypting or checking.
func (k *Key) MemoryBytes() int64 {
	c := k.agreed("", nil)
	return c.MemoryBytes()
}

// Key downloads an epoch's public key from every party. All must have the same key.
func (c *Client) Key(ctx context.Context, epoch uint64, fieldName string) (*Key, error) {
	p, err := lodge.Agreed(ctx, c.parties, fmt.Sprintf("the public key of epoch %d", epoch), "ask the parties' operators; encrypt nothing until they agree",
		func(a, b *published) bool {
			return a.epoch.GetParams() == b.epoch.GetParams() && bytes.Equal(a.epoch.GetParamsHash(), b.epoch.GetParamsHash()) &&
				bytes.Equal(a.seed, b.seed) && bytes.Equal(a.frame, b.frame)
		},
		func(ctx context.Context, conn *grpc.ClientConn) (*published, error) {
			return publicKey(ctx, conn, epoch)
		})
	if err != nil {
		return nil, err
	}
	k, err := newKey(p.epoch, fieldName, c.parties.Len())
	if err != nil {
		return nil, err
	}
	if k.public, k.hash, err = keygen.DecodePublic(k.scheme, p.seed, p.frame); err != nil {
		return nil, c.parties.Failed(0, err)
	}
	return k, nil
}

// published is a public key as a party sends it.
type published struct {
	epoch       *keygenv1.Epoch
	seed, frame []byte
}

// newKey derives the rest of a Key from the parameter set.
func newKey(e *keygenv1.Epoch, fieldName string, parties int) (*Key, error) {
	set, err := params.Lookup(e.GetParams())
	if err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "use the release of Lodge that the parties run", "%v", err)
	}
	if hash := set.Hash(); !bytes.Equal(hash[:], e.GetParamsHash()) {
		return nil, lodge.Errorf(lodge.Invalid, "use the release of Lodge that the parties run", "the parties have different parameters under the name %s", set.Name)
	}
	spec, err := set.Field(fieldName)
	if err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "", "%v", err)
	}
	if e.GetPurpose() != jobv1.Purpose_PURPOSE_DECRYPTION {
		return nil, &lodge.Error{Code: lodge.KeyPurpose, What: fmt.Sprintf("the keys of epoch %d do not decrypt for clients", e.GetEpoch()),
			Next: "use an epoch that was made for decryption"}
	}
	k := &Key{Epoch: e.GetEpoch(), Params: set.Name, Field: fieldName}
	if k.scheme, err = gbfv.New(set, spec); err != nil {
		return nil, err
	}
	if e.GetKeygenSecurity() == params.Proved {
		set = set.Proved() // the bounds of the proofs
	}
	if k.instance, err = popk.ClientInstance(set, fieldName, parties, 1); err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "", "%v", err)
	}
	return k, nil
}

// publicKey downloads the two pieces of a public key from one party.
func publicKey(ctx context.Context, conn *grpc.ClientConn, epoch uint64) (*published, error) {
	stream, err := keygenv1.NewKeygenServiceClient(conn).GetPublicKey(ctx, &keygenv1.GetPublicKeyRequest{Epoch: epoch})
	if err != nil {
		return nil, err
	}
	var e *keygenv1.Epoch
	var frames [][]byte
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if e == nil {
			e = r.GetEpoch()
		}
		if frames = append(frames, r.GetChunk()); len(frames) > 2 {
			break
		}
	}
	if len(frames) != 2 {
		return nil, &lodge.Error{Code: lodge.Internal, What: fmt.Sprintf("a public key in %d pieces, want 2", len(frames))}
	}
	return &published{e, frames[0], frames[1]}, nil
}

// agreed returns the data on which prover and verifiers must agree.
func (k *Key) agreed(prover string, bound []byte) popk.ClientConfig {
	return popk.ClientConfig{
		Scheme: k.scheme, Instance: k.instance, Key: k.public, KeyHash: k.hash, Prover: prover, Context: bound, Workers: workers(),
	}
}

// vector puts values into slots and fills the rest with zeros. Values are from 0 to the modulus
// less 1.
func (k *Key) vector(values []*big.Int) (field.Vec, error) {
	f := k.scheme.Field
	if len(values) > k.Slots() {
		return field.Vec{}, lodge.Errorf(lodge.Invalid, "encrypt them in several ciphertexts", "%d values; a ciphertext over %s holds %d", len(values), k.Field, k.Slots())
	}
	v := f.NewVec(k.Slots())
	for i, x := range values {
		if x.Sign() < 0 || x.Cmp(f.Modulus()) >= 0 {
			v.Wipe()
			return field.Vec{}, lodge.Errorf(lodge.Invalid, "values are from 0 to the field's modulus less 1", "value %d is out of range", i)
		}
		f.SetBig(v.At(i), x)
	}
	return v, nil
}

// NewestEpoch returns the first party's newest epoch that decrypts for clients. The client needs
// the permission status.
func (c *Client) NewestEpoch(ctx context.Context) (uint64, error) {
	r, err := keygenv1.NewKeygenServiceClient(c.parties.Conn(0)).ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
	if err != nil {
		return 0, c.parties.Failed(0, err)
	}
	newest := uint64(0)
	for _, e := range r.GetEpochs() {
		if e.GetState() == keygenv1.EpochState_EPOCH_STATE_ACTIVE && e.GetPurpose() == jobv1.Purpose_PURPOSE_DECRYPTION {
			newest = max(newest, e.GetEpoch())
		}
	}
	if newest == 0 {
		return 0, &lodge.Error{Code: lodge.NotFound, What: "the parties have no keys for decryption",
			Next: "`lodge jobs submit --kind keys --purpose decryption` makes them"}
	}
	return newest, nil
}
