package threshold

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/sample"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
)

// PublicKey downloads the public key of an epoch from one of the holders, and refuses a key that
// does not have the digest on which the holders agree. For BGV keys use BGVPublicKey.
func (c *Client) PublicKey(ctx context.Context, k *Key) (*lwe.PublicKey, error) {
	if err := k.isLWE(); err != nil {
		return nil, err
	}
	head, chunk, err := c.first(ctx, k)
	if err != nil {
		return nil, err
	}
	return k.scheme.ReceivePublicKey(k.Digest, head.Header, head.Digests, chunk)
}

// EvaluationKeys downloads all public keys of an epoch, which allow anyone to compute on its
// ciphertexts. If a holder fails, the next one continues with the missing chunks. It calls
// progress, which may be nil, with the number of chunks received. For BGV keys use BGVKeys.
func (c *Client) EvaluationKeys(ctx context.Context, k *Key, progress func(done, of int)) (*lwe.Keys, error) {
	if err := k.isLWE(); err != nil {
		return nil, err
	}
	in, err := c.all(ctx, k, progress)
	if err != nil {
		return nil, err
	}
	return in.(*lwe.Receiver).Finish(k.Digest)
}

// receiver assembles keys from chunks: a *lwe.Receiver or a *bgv.Receiver.
type receiver interface {
	Put(i int, chunk []byte) error
}

// receive starts assembling keys.
func (k *Key) receive(header []byte) (receiver, error) {
	if k.bgv != nil {
		return k.bgv.Receive(header)
	}
	return k.scheme.Receive(header)
}

// first downloads the chunk that contains the public key.
func (c *Client) first(ctx context.Context, k *Key) (head keyset.Head, chunk []byte, err error) {
	d := &download{
		client: c, key: k, end: 1,
		begin: func(h keyset.Head) error { head = h; return nil },
		put:   func(_ int, b []byte) error { chunk = b; return nil },
	}
	err = d.run(ctx)
	return head, chunk, err
}

// all downloads all chunks.
func (c *Client) all(ctx context.Context, k *Key, progress func(done, of int)) (in receiver, err error) {
	_, chunks, _ := k.layout()
	d := &download{client: c, key: k, end: chunks}
	d.begin = func(h keyset.Head) (err error) {
		in, err = k.receive(h.Header)
		return err
	}
	d.put = func(i int, chunk []byte) error {
		err := in.Put(i, chunk)
		if err == nil && progress != nil {
			progress(i+1, chunks)
		}
		return err
	}
	err = d.run(ctx)
	return in, err
}

// A download obtains chunks of public keys from the holders, in order. If one holder fails, the
// next one continues.
type download struct {
	client    *Client
	key       *Key
	next, end int                     // the next chunk, and the chunk after the last
	begin     func(keyset.Head) error // takes the head of the keys, once; nil if it is known
	put       func(i int, chunk []byte) error
}

func (d *download) run(ctx context.Context) error {
	var last error = &lodge.Error{Code: lodge.Unavailable, What: "no holder can be reached", Next: "run the same command again to continue"}
	for _, p := range d.key.Up {
		if d.next == d.end {
			break
		}
		if err := d.from(ctx, p); err != nil {
			last = d.client.parties.Failed(p, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if d.next < d.end {
		return last
	}
	return nil
}

// from downloads the missing chunks from a holder. The head must match the digest of the keys. Then
// each chunk can be verified alone, and chunks of several holders can be combined.
func (d *download) from(ctx context.Context, party int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := d.key
	stream, err := thresholdv1.NewThresholdServiceClient(d.client.parties.Conn(party)).GetKeys(ctx, &thresholdv1.GetKeysRequest{
		Epoch: k.Epoch, First: uint32(d.next), Count: uint32(d.end - d.next),
	})
	if err != nil {
		return err
	}
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	_, chunks, _ := k.layout()
	head, err := keyset.HeadOf(m.GetHeader(), m.GetChunkDigests())
	if err != nil || len(head.Digests) != chunks || k.digestOf(head) != k.Digest || !bytes.Equal(m.GetDigest(), k.Digest[:]) {
		return &lodge.Error{Code: lodge.Conflict, What: "its keys differ from those on which the holders agree", Next: "ask the parties' operators"}
	}
	if d.begin != nil {
		if err := d.begin(head); err != nil {
			return err
		}
		d.begin = nil
	}
	for d.next < d.end {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%d chunks were not received", d.end-d.next)
		case err != nil:
			return err
		case int(m.GetIndex()) != d.next:
			return fmt.Errorf("it sends chunk %d instead of %d", m.GetIndex(), d.next)
		}
		if err := head.Check(d.next, m.GetChunk()); err != nil {
			return err
		}
		if err := d.put(d.next, m.GetChunk()); err != nil {
			return err
		}
		d.next++
	}
	return nil
}

// Encrypt encrypts messages, from 0 to the plaintext modulus less 1, in the required number of ring
// ciphertexts. Each holds as many messages as the ring has coefficients. Package lwe has more
// encodings, and extracts LWE ciphertexts to compute with.
func Encrypt(k *Key, public *lwe.PublicKey, messages []uint64, e lwe.Encoding) ([]*lwe.Ring, error) {
	if err := k.isLWE(); err != nil {
		return nil, err
	}
	var list []*lwe.Ring
	for first := true; first || len(messages) > 0; first = false {
		n := min(len(messages), k.scheme.N())
		source, err := sample.Draw(rand.Reader, "threshold encryption")
		if err != nil {
			return nil, err
		}
		c, err := public.Encrypt(messages[:n], e, source)
		source.Wipe()
		if err != nil {
			return nil, lodge.Errorf(lodge.Invalid, "messages are from 0 to the plaintext modulus less 1", "%v", err)
		}
		list, messages = append(list, c), messages[n:]
	}
	return list, nil
}
