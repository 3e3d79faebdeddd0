package ciphertext

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"runtime"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/internal/transfer"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/sample"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
)

// workers returns the number of goroutines to compute with.
func workers() int { return runtime.GOMAXPROCS(0) }

// Encrypt encrypts values on this machine, in the first slots of one ciphertext, and proves that
// this client knows them. The proof holds only for the given context, of up to [MaxContext] bytes.
func (c *Client) Encrypt(ctx context.Context, k *Key, values []*big.Int, bound []byte) (*Ciphertext, error) {
	half, err := c.halved(k, values, bound)
	if err != nil {
		return nil, err
	}
	defer half.Wipe()
	secret := encoded(k.scheme.Field, half)
	defer clear(secret)
	// The values are included so that even a seed drawn twice would not mask two statements alike.
	source, err := sample.Draw(rand.Reader, "client's proof", []byte(c.name), bound, secret)
	if err != nil {
		return nil, err
	}
	defer source.Wipe()
	out := c.empty(k, len(values), bound)
	out.Bytes, out.ProofBytes, err = popk.Prove(ctx, k.agreed(c.name, bound), []field.Vec{half}, source)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// EncryptAt has a party, given by its index, encrypt the values and prove them for this client.
// This saves the client the work and reveals the values to the party.
func (c *Client) EncryptAt(ctx context.Context, party int, k *Key, values []*big.Int, bound []byte) (*Ciphertext, error) {
	if err := c.parties.Check(party); err != nil {
		return nil, err
	}
	half, err := c.halved(k, values, bound)
	if err != nil {
		return nil, err
	}
	defer half.Wipe()
	secret := encoded(k.scheme.Field, half)
	defer clear(secret)
	out := c.empty(k, len(values), bound)
	agreed := k.agreed(c.name, bound)
	if err := prove(ctx, c.parties.Conn(party), out, secret, agreed.CiphertextSize(), agreed.ProofSize()); err != nil {
		return nil, c.parties.Failed(party, err)
	}
	if err := c.Verify(ctx, k, out); err != nil {
		return nil, c.parties.Failed(party, fmt.Errorf("its proof does not verify: %w", err))
	}
	return out, nil
}

// encoded returns the encoding of a vector that is sent to a party. The caller must clear it.
func encoded(f *field.Field, v field.Vec) []byte {
	b := make([]byte, v.Len()*f.Size())
	f.EncodeVec(b, v)
	return b
}

func (c *Client) empty(k *Key, values int, bound []byte) *Ciphertext {
	return &Ciphertext{Epoch: k.Epoch, Params: k.Params, Field: k.Field, Values: values, Prover: c.name, Context: bound}
}

// halved returns half of every value, in the slots of a ciphertext.
func (c *Client) halved(k *Key, values []*big.Int, bound []byte) (field.Vec, error) {
	if len(bound) > MaxContext {
		return field.Vec{}, lodge.Errorf(lodge.Invalid, "", "a context of %d bytes; it has at most %d", len(bound), MaxContext)
	}
	v, err := k.vector(values)
	if err != nil {
		return v, err
	}
	f := k.scheme.Field
	half := f.NewElement()
	f.SetUint64(half, 2)
	f.Inverse(half, half)
	f.ScaleVec(v, v, half)
	return v, nil
}

func (c *Ciphertext) header() *popkv1.ProofHeader {
	return &popkv1.ProofHeader{Epoch: c.Epoch, Field: c.Field, Context: c.Context, Ciphertexts: 1}
}

// prove completes a ciphertext with a party's output for encoded values.
func prove(ctx context.Context, conn *grpc.ClientConn, out *Ciphertext, encoded []byte, size, proofSize int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := popkv1.NewPopkServiceClient(conn).Prove(ctx)
	if err != nil {
		return err
	}
	send := transfer.To(stream)
	send.Send(&popkv1.ProveRequest{Header: out.header()})
	send.Bytes(encoded, func(b []byte) *popkv1.ProveRequest { return &popkv1.ProveRequest{Values: b} })
	if err := send.Close(); err != nil {
		return err
	}
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		out.Bytes, out.ProofBytes = append(out.Bytes, r.GetCiphertexts()...), append(out.ProofBytes, r.GetProof()...)
		if len(out.Bytes) > size || len(out.ProofBytes) > proofSize {
			return &lodge.Error{Code: lodge.Internal, What: fmt.Sprintf("more than a ciphertext of %d bytes with a proof of %d", size, proofSize)}
		}
	}
}

// ErrProof is wrapped by the error for a ciphertext with an invalid proof.
var ErrProof = errors.New("ciphertext: the proof does not hold")

// Verify verifies the proof on this machine, for the client and context named by the ciphertext.
func (c *Client) Verify(ctx context.Context, k *Key, x *Ciphertext) error {
	_, err := k.doubled(ctx, x)
	return err
}

// doubled returns twice the ciphertext, after verifying its proof.
func (k *Key) doubled(ctx context.Context, x *Ciphertext) (*gbfv.Ciphertext, error) {
	if x.Epoch != k.Epoch || x.Field != k.Field || x.Params != k.Params {
		return nil, lodge.Errorf(lodge.Invalid, "fetch the key of its epoch", "the ciphertext is of epoch %d over %s with %s, but the key is of epoch %d over %s with %s",
			x.Epoch, x.Field, x.Params, k.Epoch, k.Field, k.Params)
	}
	if x.Values < 0 || x.Values > k.Slots() {
		return nil, lodge.Errorf(lodge.Invalid, "", "%d values; a ciphertext over %s holds %d", x.Values, k.Field, k.Slots())
	}
	list, err := popk.Verify(ctx, k.agreed(x.Prover, x.Context), x.Bytes, x.ProofBytes)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return list[0], nil
}

// VerifyAt has a party, given by its index, verify the proof. Parties verify only proofs of the
// requesting client.
func (c *Client) VerifyAt(ctx context.Context, party int, x *Ciphertext) error {
	if err := c.parties.Check(party); err != nil {
		return err
	}
	stream, err := popkv1.NewPopkServiceClient(c.parties.Conn(party)).Verify(ctx)
	if err != nil {
		return c.parties.Failed(party, err)
	}
	send := transfer.To(stream)
	send.Send(&popkv1.VerifyRequest{Header: x.header()})
	send.Bytes(x.Bytes, func(b []byte) *popkv1.VerifyRequest { return &popkv1.VerifyRequest{Ciphertexts: b} })
	send.Bytes(x.ProofBytes, func(b []byte) *popkv1.VerifyRequest { return &popkv1.VerifyRequest{Proof: b} })
	if err := send.Close(); err != nil {
		return c.parties.Failed(party, err)
	}
	r, err := stream.CloseAndRecv()
	if err != nil {
		return c.parties.Failed(party, err)
	}
	if !r.GetAccepted() {
		return fmt.Errorf("%w: party %s: %s: %s", ErrProof, c.parties.Name(party), r.GetCheck(), r.GetReason())
	}
	return nil
}
