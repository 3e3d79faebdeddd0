package decrypt

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Question is the request that a client sends to each party of a quorum, the same for all.
type Question struct {
	ID          []byte // of the request, unique
	Epoch       uint64
	Keys        [32]byte   // digest of the public keys
	Quorum      []uint32   // places in the roster
	Ring        bool       // ring ciphertexts, of which the first Each coefficients are opened
	BGV         bool       // BGV and BFV ciphertexts, of which the first Each coefficients are opened
	Level       int        // of BGV ciphertexts
	Flooding    bool       // of BGV ciphertexts: decrypted with flooding instead of masks
	Multikey    []KeyOwner // the keys of multi-key ciphertexts, ascending; empty for others
	Count       int        // number of ciphertexts
	Each        int        // messages per ciphertext
	Paper       bool       // use masks of the paper's form
	Recipient   []byte     // public key to which answers are sealed, if any
	Ciphertexts [32]byte   // see CiphertextsDigest
}

// KeyOwner is the digest of a key of multi-key ciphertexts, and its owner's place in the roster.
type KeyOwner struct {
	Key   [32]byte
	Owner uint32
}

// CiphertextsDigest returns a digest of ciphertexts. encoded is the concatenation of their
// encodings of size bytes each. The digest is the SHA-256 of the SHA-256 of each, so that a party
// that also hashes each ciphertext does not hash anything twice.
func CiphertextsDigest(encoded []byte, size int) [32]byte {
	all := sha256.New()
	for len(encoded) > 0 {
		n := min(size, len(encoded))
		sum := sha256.Sum256(encoded[:n])
		all.Write(sum[:])
		encoded = encoded[n:]
	}
	return [32]byte(all.Sum(nil))
}

// Digest returns the hash of the request that the parties compare first.
func (q *Question) Digest() round.Digest {
	var quorum []byte
	for _, p := range q.Quorum {
		quorum = binary.LittleEndian.AppendUint32(quorum, p)
	}
	return round.Hash("lodge threshold request", q.ID, quorum, q.what())
}

// Request returns a hash of the requested decryption and of its recipient; it does not depend on
// the quorum. client and circuit are the names that a party uses.
func (q *Question) Request(client, circuit string) round.Digest {
	return round.Hash("lodge threshold approval", []byte(client), []byte(circuit), q.what())
}

func (q *Question) what() []byte {
	flag := func(b bool) []byte {
		if b {
			return []byte{1}
		}
		return []byte{0}
	}
	h := round.Hash("lodge threshold question", round.Uint(q.Epoch), q.Keys[:], flag(q.Ring), round.Uint(uint64(q.Count)),
		round.Uint(uint64(q.Each)), flag(q.Paper), q.Recipient, q.Ciphertexts[:])
	//lodge:check threshold/flood/question [tests=./services/threshold] [run=TestFloodingTogether]
	//  [redundant=the terms of the two modes differ anyway] parties disagree on how ciphertexts are
	//  decrypted
	if q.BGV {
		h = round.Hash("lodge threshold question bgv", h[:], round.Uint(uint64(q.Level)), flag(q.Flooding))
	}
	if len(q.Multikey) > 0 {
		var keys []byte
		for _, k := range q.Multikey {
			keys = binary.LittleEndian.AppendUint32(append(keys, k.Key[:]...), k.Owner)
		}
		h = round.Hash("lodge threshold question multikey", h[:], keys)
	}
	return h[:]
}

// Info returns the context string that binds the sealed answer of a party to this request.
func (q *Question) Info(party uint32) []byte {
	d := q.Digest()
	info := round.Hash("lodge threshold answer", d[:], round.Uint(uint64(party)))
	return info[:]
}

// Statement returns the bytes that an attester signs to state where the ciphertexts come from. It
// includes the number of opened coefficients per ciphertext, 0 for LWE ciphertexts, so that the
// signature does not permit opening more. For decryption with flooding the statement is different:
// there it says that the noise of the ciphertexts is bounded.
func (q *Question) Statement(circuit string) []byte {
	opened := uint64(0)
	if q.Ring || q.BGV {
		opened = uint64(q.Each)
	}
	out := []byte("lodge provenance v1")
	if q.Flooding {
		//lodge:check threshold/flood/statement
		//  [swap="lodge flooding provenance v1"=>"lodge provenance v1"]
		//  [tests=./services/threshold] [run=TestFloodingProvenance] an attester's statement for
		//  another mode counts for flooding
		out = []byte("lodge flooding provenance v1")
	}
	for _, part := range [][]byte{round.Uint(q.Epoch), q.Keys[:], q.Ciphertexts[:], round.Uint(opened), []byte(circuit)} {
		out = binary.LittleEndian.AppendUint64(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out
}

// Name identifies a ciphertext, by its SHA-256, among all ciphertexts answered under the same keys.
// Answers of the two forms are numbers of different moduli, so they have different names.
func (q *Question) Name(ciphertext [32]byte) [32]byte {
	named := [1 + len(ciphertext)]byte{} // fits in one block of the hash
	if q.Paper {
		//lodge:check threshold/ledger/form [run=TestQuestion] answers of one form are returned for
		//  the other
		named[0] = 1
	}
	copy(named[1:], ciphertext[:])
	return sha256.Sum256(named[:])
}
