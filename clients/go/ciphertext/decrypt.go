package ciphertext

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/internal/transfer"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	decryptionv1 "github.com/lodge-mpc/lodge/proto/lodge/decryption/v1"
)

// Decryption is the result of [Client.Decrypt].
type Decryption struct {
	Values  []*big.Int
	Answers [][]byte // the parties' messages, in the order of the roster
}

// Decrypt requests the messages of all parties concurrently and combines them. It fails if any
// party does not respond. Parties give the same answers to a repeated request, so a failed call may
// be retried.
func (c *Client) Decrypt(ctx context.Context, k *Key, x *Ciphertext) (*Decryption, error) {
	doubled, err := k.doubled(ctx, x)
	if err != nil {
		return nil, err
	}
	size := codec.PolySize(k.scheme.N(), k.scheme.Prefix(k.instance.DDecPrimes).Primes())
	answers, err := lodge.FromAll(ctx, c.parties, func(ctx context.Context, conn *grpc.ClientConn) ([]byte, error) {
		return c.answer(ctx, conn, x, size)
	})
	if err != nil {
		return nil, err
	}
	slots, err := ddec.Combine(k.scheme, k.instance, doubled, answers)
	if err != nil {
		return nil, fmt.Errorf("ciphertext: %w", err)
	}
	out := &Decryption{Answers: answers}
	for i := range x.Values {
		out.Values = append(out.Values, k.scheme.Field.Big(slots.At(i)))
	}
	slots.Wipe()
	return out, nil
}

// quorum lists all parties, because the keys need all of them.
func (c *Client) quorum() []uint32 {
	all := make([]uint32, c.parties.Len())
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

// answer sends the ciphertext and its proof to one party and returns the party's message of size
// bytes.
func (c *Client) answer(ctx context.Context, conn *grpc.ClientConn, x *Ciphertext, size int) ([]byte, error) {
	stream, err := decryptionv1.NewDecryptionServiceClient(conn).DecryptShare(ctx)
	if err != nil {
		return nil, err
	}
	send := transfer.To(stream)
	send.Send(&decryptionv1.DecryptShareRequest{Header: &decryptionv1.DecryptShareHeader{
		Epoch: x.Epoch, Field: x.Field, Quorum: c.quorum(), Context: x.Context,
	}})
	send.Bytes(x.Bytes, func(b []byte) *decryptionv1.DecryptShareRequest {
		return &decryptionv1.DecryptShareRequest{Ciphertext: b}
	})
	send.Bytes(x.ProofBytes, func(b []byte) *decryptionv1.DecryptShareRequest {
		return &decryptionv1.DecryptShareRequest{Proof: b}
	})
	if err := send.Close(); err != nil {
		return nil, err
	}
	answer, err := transfer.Collect(stream.Recv, size)
	if err != nil {
		return nil, err
	}
	if len(answer) != size {
		return nil, &lodge.Error{Code: lodge.Internal, What: fmt.Sprintf("an answer of %d bytes, want %d", len(answer), size)}
	}
	return answer, nil
}

// Answered is the entry for a ciphertext in a party's ledger.
type Answered struct {
	Party    string    `json:"party"`
	Answered bool      `json:"answered"`
	When     time.Time `json:"when,omitzero"`
	ToUs     bool      `json:"to_us"` // to this client, which may request it again
}

// Answers requests from every party whether it has answered for a ciphertext. Nothing is decrypted.
func (c *Client) Answers(ctx context.Context, k *Key, x *Ciphertext) ([]Answered, error) {
	doubled, err := k.doubled(ctx, x)
	if err != nil {
		return nil, err
	}
	digest := ddec.ClientKey(k.scheme, k.instance, doubled)
	q := &decryptionv1.GetDecryptionRequest{Epoch: x.Epoch, CiphertextDigest: digest[:], Quorum: c.quorum()}
	list, err := lodge.FromAll(ctx, c.parties, func(ctx context.Context, conn *grpc.ClientConn) (a Answered, err error) {
		r, err := decryptionv1.NewDecryptionServiceClient(conn).GetDecryption(ctx, q)
		if a = (Answered{Answered: r.GetAnswered(), ToUs: r.GetToCaller()}); a.Answered {
			a.When = r.GetWhen().AsTime()
		}
		return a, err
	})
	for i := range list {
		list[i].Party = c.parties.Name(i)
	}
	return list, err
}
