package multikey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
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
//	owner's signing key 32, version 8, hash of the set 32, digest of the common reference string 32, name of the keys 32,
//	size 8, seconds since 1970 8, 1 if they are revoked 1, and the Ed25519 signature of the tag and all of these 64
//
// The owner is whoever has the signing key: places in the roster are others' when parties come and go.
type Record struct {
	Signer  [ed25519.PublicKeySize]byte // the owner's signing key, as rosters have it
	Version uint64                      // 1, 2, ... of this owner, never the same for two keys
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
	recordBody = ed25519.PublicKeySize + 8 + 3*32 + 8 + 8 + 1
	recordTag  = "lodge multikey record 1"
	// maxCreated is the last second of the year 9999, the last that has a form in text.
	maxCreated = 253402300799
)

// Why a record is refused.
var (
	ErrRecord    = errors.New("multikey: malformed record of keys")
	ErrSignature = errors.New("multikey: a record of keys that its owner has not signed")
	ErrOwner     = errors.New("multikey: keys of a party that is not, or no longer, in the roster")
)

// OwnerNumber is the owner's number in the header of its keys: the first four bytes of the SHA-256 of a tag and its signing
// key, least significant first.
func OwnerNumber(signer ed25519.PublicKey) uint32 {
	sum := sha256.Sum256(append([]byte("lodge multikey owner 1"), signer...))
	return binary.LittleEndian.Uint32(sum[:])
}

// Owner is the owner's number in the header of the keys.
func (r *Record) Owner() uint32 { return OwnerNumber(r.Signer[:]) }

// Place is the owner's place in a roster with these signing keys. The error wraps ErrOwner.
func (r *Record) Place(keys []ed25519.PublicKey) (int, error) {
	for i, k := range keys {
		if bytes.Equal(k, r.Signer[:]) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: the owner of version %d, with the signing key %.8x", ErrOwner, r.Version, r.Signer[:])
}

// body is the encoding without the signature.
func (r *Record) body() []byte {
	b := append(make([]byte, 0, RecordSize), r.Signer[:]...)
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

// Sign sets the signer, and gives the encoding with its signature.
func (r *Record) Sign(key ed25519.PrivateKey) []byte {
	copy(r.Signer[:], key.Public().(ed25519.PublicKey))
	b := r.body()
	return append(b, ed25519.Sign(key, signedPart(b))...)
}

// ParseRecord reads exactly one record, and does not look at its signature. The error wraps ErrRecord.
func ParseRecord(b []byte) (*Record, error) {
	if len(b) != RecordSize {
		return nil, fmt.Errorf("%w: %d bytes, want %d", ErrRecord, len(b), RecordSize)
	}
	r := &Record{
		Signer: [32]byte(b), Version: binary.LittleEndian.Uint64(b[32:]), Set: [32]byte(b[40:]), CRS: [32]byte(b[72:]),
		Key: multikey.KeyID(b[104:]), Size: binary.LittleEndian.Uint64(b[136:]),
	}
	created, revoked := binary.LittleEndian.Uint64(b[144:]), b[152]
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

// VerifyRecord reads a record that is signed with the key that it names. Whose that is, Place says. The error wraps ErrRecord
// or ErrSignature.
func VerifyRecord(b []byte) (*Record, error) {
	r, err := ParseRecord(b)
	if err != nil {
		return nil, err
	}
	if !ed25519.Verify(r.Signer[:], signedPart(b[:recordBody]), b[recordBody:]) {
		return nil, fmt.Errorf("%w: version %d of %.8x", ErrSignature, r.Version, r.Signer[:])
	}
	return r, nil
}

// Check refuses the record of keys that are not of this context. The error wraps multikey.ErrSet or multikey.ErrCRS, or
// ErrRecord if the size is not that of keys of the set.
func (r *Record) Check(c *Context) error {
	if err := c.Same(r.Set, r.CRS); err != nil {
		return fmt.Errorf("version %d of the keys of %.8x: %w", r.Version, r.Signer[:], err)
	}
	if want := uint64(c.KeySize()); r.Size != want {
		return fmt.Errorf("%w: version %d of the keys of %.8x has %d bytes, and keys of %s have %d", ErrRecord, r.Version, r.Signer[:], r.Size, c.Name, want)
	}
	return nil
}
