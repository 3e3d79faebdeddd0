package threshold

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"github.com/lodge-mpc/lodge/clients/go/internal/jsonfile"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/lwe"
)

// keyMagic is the first line of a file of public keys. A line of JSON, the header of the keys, the
// SHA-256 of every chunk, and the chunks follow: the first one, which contains the public key, or
// all of them, including the evaluation keys.
const keyMagic = "lodge threshold keys 1"

// keyHeader is the line of JSON.
type keyHeader struct {
	Epoch  uint64 `json:"epoch"`
	Params string `json:"params"`
	Digest string `json:"digest"`
	Chunks int    `json:"chunks"`
	// Galois lists the automorphisms of BGV keys.
	Galois []uint64 `json:"galois,omitempty"`
}

func (h keyHeader) equal(other keyHeader) bool {
	return h.Epoch == other.Epoch && h.Params == other.Params && h.Digest == other.Digest && h.Chunks == other.Chunks && slices.Equal(h.Galois, other.Galois)
}

// keyStart is the part of a file of keys before the chunks.
type keyStart struct {
	keyHeader
	keyset.Head
	key  *Key  // epoch, set and digest
	size int64 // bytes before the chunks
}

// readKeyStart reads the part before the chunks, which must match the digest that it names.
func readKeyStart(r *bufio.Reader) (*keyStart, error) {
	s := &keyStart{}
	if err := jsonfile.ReadHeader(r, keyMagic, maxFileHeader, &s.keyHeader); err != nil {
		return nil, err
	}
	s.key = &Key{Epoch: s.Epoch, Params: s.Params, Galois: s.Galois}
	if _, err := s.key.load(); err != nil {
		return nil, err
	}
	if err := fixed(s.key.Digest[:], s.Digest); err != nil {
		return nil, err
	}
	header, chunks, _ := s.key.layout()
	if s.Epoch == 0 || s.Chunks != 1 && s.Chunks != chunks || s.key.bgv == nil && s.Galois != nil {
		return nil, fmt.Errorf("epoch %d, %d of %d chunks, %d automorphisms", s.Epoch, s.Chunks, chunks, len(s.Galois))
	}
	var err error
	if s.Head, err = keyset.ReadHead(r, header, chunks); err != nil {
		return nil, err
	}
	if s.key.digestOf(s.Head) != s.key.Digest {
		return nil, fmt.Errorf("the digests of its chunks do not match keys %.16s", s.Digest)
	}
	_, err = s.bytes()
	return s, err
}

// bytes returns the part before the chunks, and sets size.
func (s *keyStart) bytes() ([]byte, error) {
	b, err := jsonfile.Header(keyMagic, s.keyHeader)
	b = s.Head.Append(b)
	s.size = int64(len(b))
	return b, err
}

// KeyFile holds the content of a file of public keys, which [Client.FetchKeys] writes and
// [ReadKeys] reads.
type KeyFile struct {
	Key    *Key           // only epoch, set, digest and automorphisms
	Public *lwe.PublicKey // nil for BGV keys
	// Evaluation holds the keys to compute with, if the file contains them.
	Evaluation *lwe.Keys
	// BGVPublic and BGVEvaluation are the same for BGV keys, in Lattigo's types.
	BGVPublic     *rlwe.PublicKey
	BGVEvaluation *rlwe.MemEvaluationKeySet
}

// ReadKeys reads a file written by FetchKeys.
func ReadKeys(r io.Reader) (*KeyFile, error) {
	f, err := readKeys(bufio.NewReader(r))
	if err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "`lodge keys fetch` writes such files", "not a file of public threshold keys: %v", err)
	}
	return f, nil
}

func readKeys(r *bufio.Reader) (*KeyFile, error) {
	s, err := readKeyStart(r)
	if err != nil {
		return nil, err
	}
	f := &KeyFile{Key: s.key}
	_, all, size := s.key.layout()
	var in receiver
	for i := range s.Chunks {
		chunk := make([]byte, size(i))
		if _, err := io.ReadFull(r, chunk); err != nil {
			return nil, fmt.Errorf("it ends in chunk %d of %d", i, s.Chunks)
		}
		if err := s.Check(i, chunk); err != nil {
			return nil, err
		}
		if i == 0 {
			if err := f.public(s, chunk); err != nil {
				return nil, err
			}
			if s.Chunks == all {
				if in, err = s.key.receive(s.Header); err != nil {
					return nil, err
				}
			}
		}
		if in != nil {
			if err := in.Put(i, chunk); err != nil {
				return nil, err
			}
		}
	}
	if err := jsonfile.End(r); err != nil {
		return nil, err
	}
	switch in := in.(type) {
	case *lwe.Receiver:
		f.Evaluation, err = in.Finish(s.key.Digest)
	case *bgv.Receiver:
		var keys *bgv.Keys
		if keys, err = in.Finish(s.key.Digest); err == nil {
			_, f.BGVEvaluation = s.key.bgv.KeysToLattigo(keys)
		}
	}
	return f, err
}

// public returns the public key in chunk 0.
func (f *KeyFile) public(s *keyStart, chunk []byte) (err error) {
	if s.key.bgv != nil {
		f.BGVPublic, err = s.key.bgv.ReceivePublicKey(s.key.Digest, s.Header, s.Head.Digests, chunk)
		return err
	}
	f.Public, err = s.key.scheme.ReceivePublicKey(s.key.Digest, s.Header, s.Head.Digests, chunk)
	return err
}

// FetchKeys writes the public key of an epoch to a file or, with evaluation, all public keys.
// Incomplete data is kept in a file with the suffix ".part": the next call continues with it and
// requests the missing chunks from the holders, in order. It calls progress, which may be nil, with
// the number of bytes received.
func (c *Client) FetchKeys(ctx context.Context, k *Key, path string, evaluation bool, progress func(done, of int64)) error {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	want := keyHeader{Epoch: k.Epoch, Params: k.Params, Digest: hex.EncodeToString(k.Digest[:]), Chunks: 1, Galois: k.Galois}
	if evaluation {
		_, want.Chunks, _ = k.layout()
	}
	d := &keyDownload{file: f, want: want, key: k, progress: progress}
	if err := d.resume(); err != nil {
		return err
	}
	in := &download{client: c, key: k, next: d.have, end: want.Chunks, put: d.put}
	if d.start == nil {
		in.begin = d.begin
	}
	if err := in.run(ctx); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// keyDownload is the state of a download to a file.
type keyDownload struct {
	file     *os.File
	want     keyHeader
	key      *Key
	start    *keyStart // nil until received
	have     int       // chunks
	progress func(done, of int64)
}

// resume uses the valid part of an earlier call's data.
func (d *keyDownload) resume() error {
	r := bufio.NewReaderSize(d.file, 1<<20)
	_, _, size := d.key.layout()
	if s, err := readKeyStart(r); err == nil && s.keyHeader.equal(d.want) {
		d.start = s
		for d.have < d.want.Chunks {
			chunk := make([]byte, size(d.have))
			if _, err := io.ReadFull(r, chunk); err != nil || s.Check(d.have, chunk) != nil {
				break
			}
			d.have++
		}
	}
	if err := d.file.Truncate(d.offset(d.have)); err != nil {
		return err
	}
	_, err := d.file.Seek(0, io.SeekEnd)
	d.tell()
	return err
}

// offset returns the position of a chunk.
func (d *keyDownload) offset(chunk int) int64 {
	if d.start == nil {
		return 0
	}
	at := d.start.size
	_, _, size := d.key.layout()
	for i := range chunk {
		at += int64(size(i))
	}
	return at
}

func (d *keyDownload) tell() {
	if d.progress != nil && d.start != nil {
		d.progress(d.offset(d.have), d.offset(d.want.Chunks))
	}
}

// begin writes the part before the chunks.
func (d *keyDownload) begin(h keyset.Head) error {
	s := &keyStart{keyHeader: d.want, Head: h, key: d.key}
	b, err := s.bytes()
	if err != nil {
		return err
	}
	if _, err = d.file.Write(b); err != nil {
		return err
	}
	d.start = s
	d.tell()
	return nil
}

// put writes a chunk.
func (d *keyDownload) put(_ int, chunk []byte) error {
	if _, err := d.file.Write(chunk); err != nil {
		return err
	}
	d.have++
	d.tell()
	return nil
}
