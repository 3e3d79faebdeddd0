package round

import (
	"crypto/sha256"
	"crypto/sha3"
	"encoding/binary"
	"io"
	"sync"
)

// Digest is a SHA-256 value. Digests are public.
type Digest [32]byte

// Hash returns SHA-256 over the tag and the fields, each preceded by its length as 8 bytes in
// little-endian order. Each tag serves one purpose and one list of fields.
func Hash(tag string, fields ...[]byte) Digest {
	h := sha256.New()
	write(h, tag, fields)
	return Digest(h.Sum(nil))
}

// HashEach returns Hash over count fields that field computes one at a time. It passes each call an
// empty slice whose memory the previous field used.
func HashEach(tag string, count int, field func(room []byte, i int) []byte) Digest {
	h := sha256.New()
	writeField(h, []byte(tag))
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	for i := range count {
		*room = field((*room)[:0], i)
		writeField(h, *room)
	}
	return Digest(h.Sum(nil))
}

// rooms holds the buffers of [HashEach].
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// XOF returns SHAKE256 over the tag and the fields, encoded as by Hash: a public stream that never
// fails.
func XOF(tag string, fields ...[]byte) io.Reader {
	h := sha3.NewSHAKE256()
	write(h, tag, fields)
	return h
}

// Challenge returns the stream from which the parties derive the challenge of a step: the XOF of
// the tag and the fields. The hook STEP/challenge receives the fields ([][]byte).
func (s Session) Challenge(step, tag string, fields ...[]byte) io.Reader {
	Expose(s, step+"/challenge", fields)
	return XOF(tag, fields...)
}

func write(h io.Writer, tag string, fields [][]byte) {
	//lodge:check round/hash/tag [run=@binding|TestDigestVectors] hashes for different purposes can
	//  collide
	writeField(h, []byte(tag))
	for _, f := range fields {
		writeField(h, f)
	}
}

func writeField(h io.Writer, f []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(f)))
	//lodge:check round/hash/lengths [run=@binding] different divisions into fields have the same
	//  hash
	h.Write(n[:]) // hashes do not fail
	h.Write(f)
}

// Uint encodes v as a field of 8 bytes in little-endian order.
func Uint(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// Hasher computes the digest of a message: the hash of its name and the digests of its frames. A
// single frame can therefore be shown to belong to a message without the other frames.
type Hasher struct {
	name   string
	frames []byte
}

// NewHasher starts the digest of a message of this name.
func NewHasher(name string) *Hasher { return &Hasher{name: name} }

// Frame adds the next frame.
func (h *Hasher) Frame(frame []byte) { h.FrameDigest(FrameDigest(frame)) }

// FrameDigest adds the next frame by its digest.
//
//lodge:check round/digest/frames [swap=append(h.frames, d[:]...)=>d[:]] [run=@binding] a digest covers only the last frame
func (h *Hasher) FrameDigest(d Digest) { h.frames = append(h.frames, d[:]...) }

// Digests returns the digests of the frames so far.
func (h *Hasher) Digests() []Digest {
	list := make([]Digest, len(h.frames)/len(Digest{}))
	for i := range list {
		copy(list[i][:], h.frames[i*len(Digest{}):])
	}
	return list
}

// Sum returns the digest of the message with the frames so far.
//
//lodge:check round/digest/name [drop=[]byte(h.name)] [run=@binding] a digest does not bind the name of the message
func (h *Hasher) Sum() Digest { return Hash("lodge message", []byte(h.name), h.frames) }

// FrameDigest returns the digest of one frame, as Hasher uses it.
//
//lodge:check round/digest/content [swap=Hash("lodge frame", frame)=>Hash("lodge frame", frame[:min(len(frame), 8)])] [run=@binding] a digest covers only the start of each frame
func FrameDigest(frame []byte) Digest { return Hash("lodge frame", frame) }

// DigestOf returns the digest of the message with this name and body. It computes each frame once.
func DigestOf(name string, body Body) (Digest, error) {
	if d, ok := body.(interface {
		digest(name string) (Digest, bool)
	}); ok {
		if sum, known := d.digest(name); known {
			return sum, nil
		}
	}
	h := NewHasher(name)
	for i := range body.Frames() {
		f, err := body.Frame(i)
		if err != nil {
			return Digest{}, err
		}
		h.Frame(f)
	}
	return h.Sum(), nil
}
