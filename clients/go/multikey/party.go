// Package multikey is a client for multi-key ciphertexts. A [Party] lists and downloads the
// public keys of all parties, and computes a [Request]: a netlist on bits that several parties
// encrypted under their own keys (docs/guides/multikey.md). A [Client] has the parties encrypt
// ([Client.Encrypt]) and decrypt results together ([Client.Decrypt]).
package multikey

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
)

// Party is a connection to one party. It may be used by several goroutines concurrently.
type Party struct {
	scheme     *multikey.Scheme
	registry   multikeyv1.RegistryServiceClient
	evaluation multikeyv1.EvaluationServiceClient
	stall      time.Duration // longest wait for more of the keys being downloaded
}

// At returns a client of the party at a connection, which Connect of a [lodge.Config] creates. The
// scheme has the set and the common reference string that the roster pins.
func At(conn grpc.ClientConnInterface, s *multikey.Scheme) *Party {
	return &Party{s, multikeyv1.NewRegistryServiceClient(conn), multikeyv1.NewEvaluationServiceClient(conn), 30 * time.Second}
}

// wrong returns the error for an invalid response.
func wrong(format string, args ...any) error {
	return &lodge.Error{Code: lodge.Conflict, What: "the party sent an invalid response: " + fmt.Sprintf(format, args...), Next: "use another party, and tell the operator of this one"}
}

// Published lists the versions of all parties' keys that this party stores, by owner and version.
func (p *Party) Published(ctx context.Context) ([]*multikeyv1.PublishedKey, error) {
	m, err := p.registry.ListPublished(ctx, &multikeyv1.ListPublishedRequest{})
	if err != nil {
		return nil, lodge.FromError(err)
	}
	hash, crs := p.scheme.Hash(), p.scheme.CRS()
	if !bytes.Equal(m.GetParamsHash(), hash[:]) || !bytes.Equal(m.GetCrsDigest(), crs[:]) {
		return nil, &lodge.Error{Code: lodge.Conflict, What: "the party has another set or common reference string", Next: "compare the rosters"}
	}
	return m.GetKeys(), nil
}

// Keys downloads the public keys with the given name and verifies them. It resumes after broken
// connections. It calls receive, which may be nil, with the number of chunks received. A party that
// sends nothing for half a minute is unavailable.
func (p *Party) Keys(ctx context.Context, id multikey.KeyID, receive func(chunks, of int)) (*multikey.Keys, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := &lodge.Error{Code: lodge.Unavailable, What: fmt.Sprintf("no data received for %v", p.stall), Next: "use another party"}
	idle := time.AfterFunc(p.stall, func() { cancel(stalled) })
	defer idle.Stop()
	k, err := p.keys(ctx, id, func(chunks, of int) {
		idle.Reset(p.stall)
		if receive != nil && chunks > 0 {
			receive(chunks, of)
		}
	})
	if err != nil && errors.Is(context.Cause(ctx), stalled) {
		return nil, stalled
	}
	return k, err
}

// keys resumes the download after broken connections while data arrives.
func (p *Party) keys(ctx context.Context, id multikey.KeyID, came func(chunks, of int)) (*multikey.Keys, error) {
	d := &download{scheme: p.scheme, id: id, came: came}
	for {
		before := d.next
		err := d.some(ctx, p.registry)
		if err == nil {
			break
		}
		if e := lodge.FromError(err); e.Code != lodge.Unavailable || d.next == before {
			return nil, err
		}
	}
	k, err := d.in.Finish(id)
	if err != nil {
		return nil, wrong("%v", err)
	}
	return k, nil
}

// download is the state of a download of keys.
type download struct {
	scheme *multikey.Scheme
	id     multikey.KeyID
	came   func(chunks, of int)
	in     *multikey.Receiver // nil until the header has been received
	next   int                // the next missing chunk
}

// some downloads the missing chunks.
func (d *download) some(ctx context.Context, registry multikeyv1.RegistryServiceClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := registry.GetPublished(ctx, &multikeyv1.GetPublishedRequest{Key: d.id[:], First: uint32(d.next)})
	if err != nil {
		return lodge.FromError(err)
	}
	head, err := stream.Recv()
	if err != nil {
		return ended(err)
	}
	h, err := d.begin(head)
	if err != nil {
		return err
	}
	d.came(d.next, len(h.Digests))
	for d.next < len(h.Digests) {
		m, err := stream.Recv()
		if err != nil {
			return ended(err)
		}
		if int(m.GetIndex()) != d.next || h.Check(d.next, m.GetChunk()) != nil {
			return wrong("chunk %d does not match its digest", d.next)
		}
		if err := d.in.Put(d.next, m.GetChunk()); err != nil {
			return wrong("%v", err)
		}
		d.next++
		d.came(d.next, len(h.Digests))
	}
	return nil
}

// begin reads the header, and returns the digests of the chunks.
func (d *download) begin(head *multikeyv1.GetPublishedResponse) (keyset.Head, error) {
	h, err := keyset.HeadOf(head.GetHeader(), head.GetChunkDigests())
	if err != nil || len(h.Header) != multikey.HeaderSize || len(h.Digests) != d.scheme.Chunks() || multikey.IDOf(h.Header, h.Digests) != d.id {
		return h, wrong("other keys")
	}
	if d.in != nil {
		return h, nil
	}
	// The header states the owner, and the name is a digest over the header.
	if d.in, err = d.scheme.Receive(binary.LittleEndian.Uint32(h.Header[64:]), h.Header); err != nil {
		return h, wrong("%v", err)
	}
	return h, nil
}

// Group holds consecutive ciphertexts under the same keys: a batch as a party encrypted it, or
// results of evaluations.
type Group struct {
	Batch       *multikey.Batch
	Ciphertexts []*multikey.Ciphertext // if Batch is nil
}

// Len returns the number of bits.
func (g *Group) Len() int {
	if g.Batch != nil {
		return g.Batch.Len()
	}
	return len(g.Ciphertexts)
}

// Keys returns the names of the keys.
func (g *Group) Keys() []multikey.KeyID {
	switch {
	case g.Batch != nil:
		return []multikey.KeyID{g.Batch.Key}
	case len(g.Ciphertexts) > 0:
		return g.Ciphertexts[0].Keys()
	}
	return nil
}

// ciphertext returns ciphertext i, in [0, Len()).
func (g *Group) ciphertext(i int) *multikey.Ciphertext {
	if g.Batch != nil {
		return g.Batch.Ciphertext(i)
	}
	return g.Ciphertexts[i]
}

// describe returns the group's description in wire format.
func (g *Group) describe() *multikeyv1.InputGroup {
	x := &multikeyv1.InputGroup{Form: multikeyv1.InputForm_INPUT_FORM_CIPHERTEXTS, Count: uint32(g.Len())}
	if g.Batch != nil {
		x.Form = multikeyv1.InputForm_INPUT_FORM_BATCH
	}
	for _, id := range g.Keys() {
		x.Keys = append(x.Keys, id[:])
	}
	return x
}

// append appends the group's encoding.
func (g *Group) append(dst []byte, s *multikey.Scheme) []byte {
	if g.Batch != nil {
		return s.AppendBatch(dst, g.Batch)
	}
	for _, c := range g.Ciphertexts {
		dst = s.AppendCiphertext(dst, c)
	}
	return dst
}

// decode reads a described group, and returns the rest.
func decode(s *multikey.Scheme, d *multikeyv1.InputGroup, b []byte) (g Group, rest []byte, err error) {
	count := int(d.GetCount())
	switch d.GetForm() {
	case multikeyv1.InputForm_INPUT_FORM_BATCH:
		n := s.BatchSize(count)
		if count > multikey.MaxBatch || n > len(b) {
			return g, nil, fmt.Errorf("%w: a batch of %d bits in %d bytes", multikey.ErrCiphertext, count, len(b))
		}
		if g.Batch, err = s.DecodeBatch(b[:n]); err != nil {
			return g, nil, err
		}
		b = b[n:]
	case multikeyv1.InputForm_INPUT_FORM_CIPHERTEXTS:
		size := s.CiphertextSize(len(d.GetKeys()))
		if count > len(b)/size {
			return g, nil, fmt.Errorf("%w: %d ciphertexts in %d bytes", multikey.ErrCiphertext, count, len(b))
		}
		for range count {
			c, err := s.DecodeCiphertext(b[:size])
			if err != nil {
				return g, nil, err
			}
			g.Ciphertexts, b = append(g.Ciphertexts, c), b[size:]
		}
	default:
		return g, nil, fmt.Errorf("%w: form %d", multikey.ErrCiphertext, d.GetForm())
	}
	if g.Len() == 0 {
		return g, nil, fmt.Errorf("%w: an empty group", multikey.ErrCiphertext)
	}
	for i := range g.Len() {
		if !slices.EqualFunc(g.ciphertext(i).Keys(), d.GetKeys(), func(id multikey.KeyID, k []byte) bool { return bytes.Equal(id[:], k) }) {
			return g, nil, fmt.Errorf("%w: its keys differ from its description", multikey.ErrCiphertext)
		}
	}
	return g, b, nil
}

// Digest returns the digest by which results and decryption requests name ciphertexts: SHA-256 over
// the SHA-256 of each.
func Digest(s *multikey.Scheme, groups []Group) (digest [32]byte) {
	h := sha256.New()
	var b []byte
	for _, g := range groups {
		for i := range g.Len() {
			b = s.AppendCiphertext(b[:0], g.ciphertext(i))
			sum := sha256.Sum256(b)
			h.Write(sum[:])
		}
	}
	h.Sum(digest[:0])
	return digest
}

// ended returns the error for a stream that has ended.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return wrong("it ends too early")
	}
	return lodge.FromError(err)
}
