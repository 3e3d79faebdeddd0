package multikey

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/lodge-mpc/lodge/engine/multikey"
)

// Record is what a party says of its keys to everybody: that they are its version so and so, or that they are so no more.
// Whoever has the chunks of keys holds them against Key, which is their digest, so that a record speaks for all of them.
//
// The encoding is fixed, numbers least significant byte first:
//
//	owner 4, version 8, hash of the set 32, digest of the common reference string 32, name of the keys 32, size 8,
//	seconds since 1970 8, 1 if they are revoked 1, and the Ed25519 signature of the tag and all of these 64
type Record struct {
	Owner   uint32 // the place in the roster, which is the owner's number in the header of the keys
	Version uint64 // 1, 2, ... of this owner, never the same for two keys
	Set     [32]byte
	CRS     [32]byte
	Key     multikey.KeyID
	Size    uint64    // of header and chunks, in bytes
	Created time.Time // whole seconds, UTC
	Revoked bool
}

// RecordSize is the size of a signed record in bytes.
const RecordSize = recordBody + ed25519.SignatureSize

const (
	recordBody = 4 + 8 + 3*32 + 8 + 8 + 1
	recordTag  = "lodge multikey record 1"
	// maxCreated is the last second of the year 9999, the last that has a form in text.
	maxCreated = 253402300799
)

// Why a record is refused.
var (
	ErrRecord    = errors.New("multikey: malformed record of keys")
	ErrSignature = errors.New("multikey: a record of keys that its owner has not signed")
	ErrOwner     = errors.New("multikey: a record of keys of a party that is not in the roster")
)

// body is the encoding without the signature.
func (r *Record) body() []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, RecordSize), r.Owner)
	b = binary.LittleEndian.AppendUint64(b, r.Version)
	b = append(append(append(b, r.Set[:]...), r.CRS[:]...), r.Key[:]...)
	b = binary.LittleEndian.AppendUint64(b, r.Size)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Created.Unix()))
	if r.Revoked {
		return append(b, 1)
	}
	return append(b, 0)
}

func signedPart(body []byte) []byte { return append([]byte(recordTag), body...) }

// Sign is the encoding with the owner's signature.
func (r *Record) Sign(key ed25519.PrivateKey) []byte {
	b := r.body()
	return append(b, ed25519.Sign(key, signedPart(b))...)
}

// ParseRecord reads exactly one record, and does not look at its signature. The error wraps ErrRecord.
func ParseRecord(b []byte) (*Record, error) {
	if len(b) != RecordSize {
		return nil, fmt.Errorf("%w: %d bytes, want %d", ErrRecord, len(b), RecordSize)
	}
	r := &Record{
		Owner: binary.LittleEndian.Uint32(b), Version: binary.LittleEndian.Uint64(b[4:]), Set: [32]byte(b[12:]), CRS: [32]byte(b[44:]),
		Key: multikey.KeyID(b[76:]), Size: binary.LittleEndian.Uint64(b[108:]),
	}
	created, revoked := binary.LittleEndian.Uint64(b[116:]), b[124]
	switch {
	case r.Version == 0:
		return nil, fmt.Errorf("%w: version 0; they begin with 1", ErrRecord)
	case created > maxCreated:
		return nil, fmt.Errorf("%w: made %d seconds after 1970", ErrRecord, created)
	case revoked > 1:
		return nil, fmt.Errorf("%w: revoked is %d", ErrRecord, revoked)
	}
	r.Created, r.Revoked = time.Unix(int64(created), 0).UTC(), revoked == 1
	return r, nil
}

// VerifyRecord reads a record that its owner has signed, by the signing keys of the parties of the roster. The error wraps
// ErrRecord, ErrOwner or ErrSignature.
func VerifyRecord(b []byte, keys []ed25519.PublicKey) (*Record, error) {
	r, err := ParseRecord(b)
	if err != nil {
		return nil, err
	}
	if uint64(r.Owner) >= uint64(len(keys)) {
		return nil, fmt.Errorf("%w: party %d of %d", ErrOwner, r.Owner, len(keys))
	}
	if !ed25519.Verify(keys[r.Owner], signedPart(b[:recordBody]), b[recordBody:]) {
		return nil, fmt.Errorf("%w: party %d", ErrSignature, r.Owner)
	}
	return r, nil
}

// Check refuses the record of keys that are not of this context. The error wraps multikey.ErrSet or multikey.ErrCRS, or
// ErrRecord if the size is not that of keys of the set.
func (r *Record) Check(c *Context) error {
	if err := c.Same(r.Set, r.CRS); err != nil {
		return fmt.Errorf("version %d of the keys of party %d: %w", r.Version, r.Owner, err)
	}
	if want := uint64(c.KeySize()); r.Size != want {
		return fmt.Errorf("%w: version %d of the keys of party %d has %d bytes, and keys of %s have %d", ErrRecord, r.Version, r.Owner, r.Size, c.Name, want)
	}
	return nil
}
