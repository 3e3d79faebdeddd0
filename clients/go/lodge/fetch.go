// Package lodge is what Go clients of Lodge's services need beyond the generated code: drawing a batch of
// tuple shares from a party into files.
package lodge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
)

// Origin is what a client knows about a batch beyond what the party says.
type Origin struct {
	Parties, Party int
	KeygenSecurity string
}

// Fetch draws a batch, with the MAC-key share, from the party at conn and writes it to dir (see package
// tuplefile). The party gives a batch to one client; the same client may ask again.
func Fetch(ctx context.Context, conn grpc.ClientConnInterface, batch, dir string, o Origin) (err error) {
	stream, err := triplesv1.NewTriplesServiceClient(conn).Fetch(ctx, &triplesv1.FetchRequest{BatchId: batch, WithMacKey: true})
	if err != nil {
		return err
	}
	head, err := stream.Recv()
	if err != nil {
		return err
	}
	m, size, err := manifest(head, o)
	if err != nil {
		return err
	}
	w, err := tuplefile.Create(dir, m, size)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	sum := sha256.New()
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return errors.New("lodge: the stream ended without its checksum")
		}
		if err != nil {
			return err
		}
		sum.Write(r.GetChunk())
		if _, err := w.Write(r.GetChunk()); err != nil {
			return err
		}
		if len(r.GetSha256()) == 0 {
			continue
		}
		if !bytes.Equal(r.GetSha256(), sum.Sum(nil)) {
			return errors.New("lodge: the share data differs from its checksum")
		}
		return w.Close()
	}
}

var kinds = map[jobv1.Kind]string{
	jobv1.Kind_KIND_SCALAR: tuplefile.Scalar, jobv1.Kind_KIND_MATRIX: tuplefile.Matrix, jobv1.Kind_KIND_SQUARE: tuplefile.Square,
	jobv1.Kind_KIND_RANDOM: tuplefile.Random, jobv1.Kind_KIND_BIT: tuplefile.Bit, jobv1.Kind_KIND_INVERSE: tuplefile.Inverse,
	jobv1.Kind_KIND_INPUT: tuplefile.Input,
}

// manifest describes a batch; size is the bytes of an element.
func manifest(r *triplesv1.FetchResponse, o Origin) (m tuplefile.Manifest, size int, err error) {
	b := r.GetBatch()
	kind, ok := kinds[b.GetKind()]
	if !ok {
		return m, 0, fmt.Errorf("lodge: tuples of kind %s, which this client does not know", b.GetKind())
	}
	p, err := verify.Modulus(b.GetParams(), b.GetField())
	if err != nil {
		return m, 0, err
	}
	size = (p.BitLen() + 7) / 8
	if len(r.GetMacKeyShare()) != size {
		return m, 0, fmt.Errorf("lodge: a MAC-key share of %d bytes", len(r.GetMacKeyShare()))
	}
	share := slices.Clone(r.GetMacKeyShare())
	slices.Reverse(share) // little-endian
	m = tuplefile.Manifest{
		FormatVersion: tuplefile.FormatVersion, Kind: kind, Params: b.GetParams(), Field: b.GetField(), Modulus: p.String(),
		Parties: o.Parties, Party: o.Party, Epoch: b.GetEpoch(), Batch: b.GetId(), Tuples: int64(b.GetCount()),
		Dims: tuplefile.Dims{M: 1, K: 1, N: 1}, MACKeyShare: new(big.Int).SetBytes(share).String(), KeygenSecurity: o.KeygenSecurity,
		InputParty: int(b.GetInputParty()),
	}
	if b.GetKind() == jobv1.Kind_KIND_MATRIX {
		s := b.GetShape()
		m.Dims = tuplefile.Dims{M: int(s.GetRows()), K: int(s.GetInner()), N: int(s.GetColumns())}
	}
	return m, size, nil
}
