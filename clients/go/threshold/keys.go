package threshold

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
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
	return first(c, k, func(party int) (*lwe.PublicKey, error) {
		p, err := fetchPublic(ctx, c.parties.Conn(party), k)
		if err != nil {
			return nil, err
		}
		return k.scheme.ReceivePublicKey(k.Digest, p.header, p.digests, p.chunk)
	})
}

// first tries the holders in order until one succeeds.
func first[K any](c *Client, k *Key, ask func(party int) (K, error)) (key K, err error) {
	var last error
	for _, p := range k.Up {
		key, err := ask(p)
		if err == nil {
			return key, nil
		}
		last = c.parties.Failed(p, err)
	}
	return key, last
}

// opened returns a stream of keys whose first response has arrived.
func opened(ctx context.Context, conn *grpc.ClientConn, k *Key, first, count uint32) (grpc.ServerStreamingClient[thresholdv1.GetKeysResponse], *thresholdv1.GetKeysResponse, error) {
	stream, err := thresholdv1.NewThresholdServiceClient(conn).GetKeys(ctx, &thresholdv1.GetKeysRequest{Epoch: k.Epoch, First: first, Count: count})
	if err != nil {
		return nil, nil, err
	}
	head, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(head.GetDigest(), k.Digest[:]) || !k.begins(head) {
		return nil, nil, &lodge.Error{Code: lodge.Conflict, What: "its keys differ from those on which the holders agree", Next: "ask the parties' operators"}
	}
	return stream, head, nil
}

// begins reports whether header and chunk digests belong to the keys. Then each chunk can be
// verified alone, and chunks from a holder that failed can be combined with those from the next
// one.
func (k *Key) begins(head *thresholdv1.GetKeysResponse) bool {
	digests := make([][32]byte, len(head.GetChunkDigests()))
	for i, d := range head.GetChunkDigests() {
		if len(d) != len(digests[i]) {
			return false
		}
		digests[i] = [32]byte(d)
	}
	_, chunks, _ := k.layout()
	return len(digests) == chunks && k.digestOf(head.GetHeader(), digests) == k.Digest
}

// publicPart is the chunk, in the form a holder sends, that contains the public key.
type publicPart struct {
	header, chunk []byte
	digests       [][32]byte
}

func fetchPublic(ctx context.Context, conn *grpc.ClientConn, k *Key) (*publicPart, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, head, err := opened(ctx, conn, k, 0, 1)
	if err != nil {
		return nil, err
	}
	m, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	p := &publicPart{header: head.GetHeader(), chunk: m.GetChunk(), digests: make([][32]byte, len(head.GetChunkDigests()))}
	for i, d := range head.GetChunkDigests() {
		copy(p.digests[i][:], d)
	}
	return p, nil
}

// EvaluationKeys downloads all public keys of an epoch, which allow anyone to compute on its
// ciphertexts. If a holder fails, the next one continues with the missing chunks. It calls
// progress, which may be nil, with the number of chunks received. For BGV keys use BGVKeys.
func (c *Client) EvaluationKeys(ctx context.Context, k *Key, progress func(done, of int)) (*lwe.Keys, error) {
	if err := k.isLWE(); err != nil {
		return nil, err
	}
	return all(ctx, c, k, progress, func(header []byte) (receiver, func() (*lwe.Keys, error), error) {
		in, err := k.scheme.Receive(header)
		if err != nil {
			return nil, nil, err
		}
		return in, func() (*lwe.Keys, error) { return in.Finish(k.Digest) }, nil
	})
}

// receiver assembles keys from chunks.
type receiver interface {
	Put(i int, chunk []byte) error
	Missing() []int
}

// all receives all chunks from the holders, and returns the result of finish.
func all[K any](ctx context.Context, c *Client, k *Key, progress func(done, of int), receive func(header []byte) (receiver, func() (K, error), error)) (keys K, err error) {
	var in receiver
	var finish func() (K, error)
	var last error
	begin := func(header []byte) (receiver, error) {
		if in == nil {
			if in, finish, err = receive(header); err != nil {
				in = nil
				return nil, err
			}
		}
		return in, nil
	}
	for _, p := range k.Up {
		if err := c.collect(ctx, p, k, in, begin, progress); err != nil {
			last = c.parties.Failed(p, err)
			continue
		}
		keys, err := finish()
		if err == nil {
			return keys, nil
		}
		in, last = nil, c.parties.Failed(p, err) // the bad chunk cannot be identified
	}
	return keys, last
}

// collect receives the missing chunks from a holder.
func (c *Client) collect(ctx context.Context, party int, k *Key, in receiver, begin func(header []byte) (receiver, error), progress func(done, of int)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := 0
	if in != nil {
		missing := in.Missing()
		if len(missing) == 0 {
			return nil
		}
		first = missing[0]
	}
	stream, head, err := opened(ctx, c.parties.Conn(party), k, uint32(first), 0)
	if err != nil {
		return err
	}
	if in, err = begin(head.GetHeader()); err != nil {
		return err
	}
	_, chunks, _ := k.layout()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		digests := head.GetChunkDigests()
		i := int(m.GetIndex())
		if sum := sha256.Sum256(m.GetChunk()); i >= len(digests) || !bytes.Equal(sum[:], digests[i]) {
			return fmt.Errorf("chunk %d does not match its digest", i)
		}
		if err := in.Put(i, m.GetChunk()); err != nil {
			return err
		}
		if progress != nil {
			progress(chunks-len(in.Missing()), chunks)
		}
	}
	if n := len(in.Missing()); n > 0 {
		return fmt.Errorf("%d chunks were not received", n)
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
