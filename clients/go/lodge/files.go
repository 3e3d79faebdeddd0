package lodge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/engine/kind"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
)

// Origin holds what the client knows about tuples in addition to the party's description.
type Origin struct {
	Parties, Party int
	KeygenSecurity string
	// Pooled states that the caller adds up all parties' shares of the MAC key to check the tuples,
	// and retires the epoch.
	Pooled bool
}

// FetchDir draws a reservation, with the MAC-key share, from the party at conn and writes it to dir
// (see package [tuplefile]). The party gives a reservation to one client only; the same client may
// draw it again while the lease lasts.
func FetchDir(ctx context.Context, conn grpc.ClientConnInterface, reservation, dir string, o Origin) (err error) {
	client := tuplesv1.NewTuplesServiceClient(conn)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := client.Fetch(ctx, &tuplesv1.FetchRequest{ReservationId: reservation})
	if err != nil {
		return err
	}
	head, err := stream.Recv()
	if err != nil {
		return err
	}
	key, err := client.DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: head.GetReservation().GetMacKeyId(), Purpose: tuplesv1.Purpose_PURPOSE_ONLINE})
	if err != nil {
		return err
	}
	if len(key.GetShare()) == 0 {
		return Errorf(BadShares, "", "the party sent no share of the MAC key")
	}
	defer clear(key.GetShare())
	m, size, err := ManifestOf(head.GetReservation(), key.GetShare(), o)
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

// ClassOf returns the class of the tuples that a job produces.
func ClassOf(q *coordinatorv1.JobRequest) *tuplesv1.Class {
	return &tuplesv1.Class{
		Tenant: q.GetTenant(), Kind: q.GetKind(), Params: q.GetParams(), Field: q.GetField(), Shape: q.GetShape(), InputParty: q.GetInputParty(),
		NoSacrifice: q.GetNoSacrifice(),
	}
}

// ManifestOf describes a party's shares of a reservation in the format of package tuplefile. size
// is the size of an element in bytes. key is the party's share of the MAC key, or nil to omit it.
func ManifestOf(r *tuplesv1.Reservation, key []byte, o Origin) (m tuplefile.Manifest, size int, err error) {
	c := r.GetClass()
	k, shape := wire.Kind(c.GetKind()), wire.Shape(c.GetShape())
	if !k.Known() {
		return m, 0, fmt.Errorf("lodge: tuples of kind %s are not supported by this client", c.GetKind())
	}
	p, err := verify.Modulus(c.GetParams(), c.GetField())
	if err != nil {
		return m, 0, err
	}
	size = (p.BitLen() + 7) / 8
	if key != nil && len(key) != size {
		return m, 0, fmt.Errorf("lodge: a MAC-key share of %d bytes has the wrong length", len(key))
	}
	m = tuplefile.Manifest{
		FormatVersion: tuplefile.FormatVersion, Kind: k.String(), Params: c.GetParams(), Field: c.GetField(), Modulus: p.String(),
		Parties: o.Parties, Party: o.Party, Epoch: r.GetEpoch(), Batch: r.GetId(), Tuples: int64(r.GetCount()),
		Dims: tuplefile.Dims{M: 1, K: 1, N: 1}, KeygenSecurity: o.KeygenSecurity, InputParty: int(c.GetInputParty()), NoSacrifice: c.GetNoSacrifice(),
	}
	if key != nil {
		m.MACKeyShare, m.MACKeyPooled = Element(key).Int().String(), o.Pooled
	}
	switch k.Describe().Form {
	case kind.Convolutions:
		m.Convolution = &shape.Convolution
	case kind.Matrices:
		m.Dims = tuplefile.Dims{M: shape.Matrix.Rows, K: shape.Matrix.Inner, N: shape.Matrix.Cols}
	}
	return m, size, nil
}
