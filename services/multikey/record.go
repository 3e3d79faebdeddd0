package multikey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/engine/multikey"
)

// Record is a party's signed statement about its keys: that they are a certain version of its keys,
// or that they are revoked. Key is the digest of header and chunks, so a record covers the complete
// keys. The owner is identified by its signing key, because indices in the roster change when
// parties join and leave.
//
// The encoding is fixed, with numbers least significant byte first:
//
//	owner's signing key 32, version 8, hash of the set 32, digest of the common reference string 32, name of the keys 32,
//	size 8, seconds since 1970 8, 1 if they are revoked 1, the salt 32, and the Ed25519 signature of the tag and all of these 64
//
// The keys must also name their owner; otherwise a party could sign that another party's keys are
// its own. Their public seed is OwnerSeed of the signing key and the salt, and the identifier of
// the keys is a digest of the seed: to claim them, another party needs a second preimage of
// SHA-256. Records of older versions have no salt and another tag. Keys under them name their owner
// by OwnerNumber, which has 32 bits, so 2^32 signing keys suffice to claim them (Weak). Such
// records remain readable until their owner makes other keys.
type Record struct {
	Signer  [ed25519.PublicKeySize]byte // the owner's signing key, as in rosters
	Version uint64                      // 1, 2, ... for this owner, never reused for other keys
	Set     [32]byte
	CRS     [32]byte
	Key     multikey.KeyID
	Size    uint64    // of header and chunks, in bytes
	Created time.Time // whole seconds, UTC
	Revoked bool
	Bound   bool     // the keys' seed names the owner
	Salt    [32]byte // zero unless Bound
}

// RecordSize is the size of a signed record in bytes, and WeakRecordSize that of one of an older
// version.
const (
	RecordSize     = recordBody + saltSize + ed25519.SignatureSize
	WeakRecordSize = recordBody + ed25519.SignatureSize
)

const (
	recordBody    = ed25519.PublicKeySize + 8 + 3*32 + 8 + 8 + 1
	saltSize      = 32
	weakRecordTag = "lodge multikey record 1"
	recordTag     = "lodge multikey record 2"
	// maxCreated is the last second of the year 9999, the last that has a form in text.
	maxCreated = 253402300799
)

// Reasons for which a record is rejected.
var (
	ErrRecord    = errors.New("multikey: malformed record of keys")
	ErrSignature = errors.New("multikey: the signature of a record of keys does not verify")
	ErrOwner     = errors.New("multikey: keys of a party that is not, or no longer, in the roster")
)

// OwnerInSeed is the owner's number in the header of keys whose seed names the owner.
const OwnerInSeed = 0

// OwnerSeed returns the public seed of a party's keys: the SHA-256 of a tag, its signing key and a
// random salt.
func OwnerSeed(signer ed25519.PublicKey, salt [32]byte) [multikey.SeedSize]byte {
	return sha256.Sum256(slices.Concat([]byte("lodge multikey owner 2"), signer, salt[:]))
}

// OwnerNumber returns the owner's number in the header of keys made by older versions: the first
// four bytes of the SHA-256 of a tag and the signing key, least significant first.
func OwnerNumber(signer ed25519.PublicKey) uint32 {
	sum := sha256.Sum256(append([]byte("lodge multikey owner 1"), signer...))
	return binary.LittleEndian.Uint32(sum[:])
}

// Owner returns the owner's number in the header of the keys.
func (r *Record) Owner() uint32 {
	if r.Bound {
		return OwnerInSeed
	}
	return OwnerNumber(r.Signer[:])
}

// Weak reports whether the keys name their owner by only 32 bits, as keys of older versions do.
func (r *Record) Weak() bool { return !r.Bound }

// CheckHeader returns an error unless the header is that of keys of the context and of the record's
// owner. The error is that of Scheme.CheckHeader, or wraps multikey.ErrOwner.
func (r *Record) CheckHeader(c *Context, header []byte) error {
	if err := c.CheckHeader(r.Owner(), header); err != nil {
		return err
	}
	//lodge:check multikey/owner-in-seed [tests=./services/multikey/registry] [run=TestCollidingOwners] a party that signs a record for another party's keys becomes their owner
	if r.Bound && multikey.HeaderSeed(header) != OwnerSeed(r.Signer[:], r.Salt) {
		return fmt.Errorf("%w: their seed does not match the signing key %.8x", multikey.ErrOwner, r.Signer[:])
	}
	if !r.Bound {
		return CheckWeakOwner(r.Owner())
	}
	return nil
}

// CheckWeakOwner returns an error, which wraps multikey.ErrOwner, if the owner's number of a record
// without a salt is OwnerInSeed. Otherwise such a record could claim keys of the new form, with a
// signing key of that number.
func CheckWeakOwner(number uint32) error {
	//lodge:check multikey/no-downgrade [tests=./services/multikey/registry] [run=TestWeakRecordsClaimNoBoundKeys] a record of the old form claims keys of the new one after 2^32 signing keys
	if number == OwnerInSeed {
		return fmt.Errorf("%w: a record without a salt for keys whose seed names their owner", multikey.ErrOwner)
	}
	return nil
}

// Place returns the owner's index in a roster with these signing keys. The error wraps ErrOwner.
func (r *Record) Place(keys []ed25519.PublicKey) (int, error) {
	for i, k := range keys {
		if bytes.Equal(k, r.Signer[:]) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: the owner of version %d, with the signing key %.8x", ErrOwner, r.Version, r.Signer[:])
}

// body returns the encoding without the signature.
func (r *Record) body() []byte {
	b := append(make([]byte, 0, RecordSize), r.Signer[:]...)
	b = binary.LittleEndian.AppendUint64(b, r.Version)
	b = append(append(append(b, r.Set[:]...), r.CRS[:]...), r.Key[:]...)
	b = binary.LittleEndian.AppendUint64(b, r.Size)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Created.Unix()))
	revoked := byte(0)
	if r.Revoked {
		revoked = 1
	}
	if b = append(b, revoked); r.Bound {
		b = append(b, r.Salt[:]...)
	}
	return b
}

// signedPart returns the bytes that the owner signs: the tag of the record's form, and its body.
func signedPart(body []byte) []byte {
	if len(body) == recordBody {
		return append([]byte(weakRecordTag), body...)
	}
	return append([]byte(recordTag), body...)
}

// Sign sets the signer, and returns the encoding with its signature.
func (r *Record) Sign(key ed25519.PrivateKey) []byte {
	copy(r.Signer[:], key.Public().(ed25519.PublicKey))
	b := r.body()
	return append(b, ed25519.Sign(key, signedPart(b))...)
}

// ParseRecord decodes exactly one record of either form. It does not verify the signature. The
// error wraps ErrRecord.
func ParseRecord(b []byte) (*Record, error) {
	if len(b) != RecordSize && len(b) != WeakRecordSize {
		return nil, fmt.Errorf("%w: %d bytes, want %d, or %d of an older version", ErrRecord, len(b), RecordSize, WeakRecordSize)
	}
	r := &Record{
		Signer: [32]byte(b), Version: binary.LittleEndian.Uint64(b[32:]), Set: [32]byte(b[40:]), CRS: [32]byte(b[72:]),
		Key: multikey.KeyID(b[104:]), Size: binary.LittleEndian.Uint64(b[136:]), Bound: len(b) == RecordSize,
	}
	if r.Bound {
		r.Salt = [32]byte(b[recordBody:])
	}
	created, revoked := binary.LittleEndian.Uint64(b[144:]), b[152]
	switch {
	case r.Version == 0:
		return nil, fmt.Errorf("%w: version 0; versions start at 1", ErrRecord)
	case created > maxCreated:
		return nil, fmt.Errorf("%w: the time %d seconds after 1970 is out of range", ErrRecord, created)
	case revoked > 1:
		return nil, fmt.Errorf("%w: the revoked byte is %d", ErrRecord, revoked)
	}
	r.Created, r.Revoked = time.Unix(int64(created), 0).UTC(), revoked == 1
	return r, nil
}

// VerifyRecord decodes a record and verifies its signature with the key that it contains. Place
// tells whether that key is in the roster. The error wraps ErrRecord or ErrSignature.
func VerifyRecord(b []byte) (*Record, error) {
	r, err := ParseRecord(b)
	if err != nil {
		return nil, err
	}
	body, signature := b[:len(b)-ed25519.SignatureSize], b[len(b)-ed25519.SignatureSize:]
	if !ed25519.Verify(r.Signer[:], signedPart(body), signature) {
		return nil, fmt.Errorf("%w: version %d of %.8x", ErrSignature, r.Version, r.Signer[:])
	}
	return r, nil
}

// Check returns an error if the record's keys are not of this context. The error wraps
// multikey.ErrSet or multikey.ErrCRS, or ErrRecord if the size is not that of keys of the set.
func (r *Record) Check(c *Context) error {
	if err := c.Same(r.Set, r.CRS); err != nil {
		return fmt.Errorf("version %d of the keys of %.8x: %w", r.Version, r.Signer[:], err)
	}
	if want := uint64(c.KeySize()); r.Size != want {
		return fmt.Errorf("%w: version %d of the keys of %.8x has %d bytes, but keys of %s have %d", ErrRecord, r.Version, r.Signer[:], r.Size, c.Name, want)
	}
	return nil
}
