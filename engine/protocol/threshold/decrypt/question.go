package decrypt

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Question is what a client asks each party of a quorum, in the same words.
type Question struct {
	ID          []byte // of the request, different for each
	Epoch       uint64
	Keys        [32]byte   // digest of the public keys
	Quorum      []uint32   // places in the roster
	Ring        bool       // ring ciphertexts, of which the first Each coefficients are opened
	BGV         bool       // BGV and BFV ciphertexts, of which the first Each coefficients are opened
	Level       int        // of BGV ciphertexts
	Flooding    bool       // of BGV ciphertexts: under a flood of noise, and not under masks
	Multikey    []KeyOwner // the keys that multi-key ciphertexts are under, ascending; others have none
	Count       int        // ciphertexts
	Each        int        // messages of each
	Paper       bool       // masks of the paper's form
	Recipient   []byte     // public key that answers are sealed to, if any
	Ciphertexts [32]byte   // as CiphertextsDigest names them
}

// KeyOwner is a key that ciphertexts are under, by its digest, and its owner, by the place in the roster.
type KeyOwner struct {
	Key   [32]byte
	Owner uint32
}

// CiphertextsDigest names ciphertexts, given as their encodings of one size, one after the other: it is the SHA-256 of the
// SHA-256 of each, so that a party that hashes each by itself hashes nothing twice.
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

// Digest is what the parties compare before anything else.
func (q *Question) Digest() round.Digest {
	var quorum []byte
	for _, p := range q.Quorum {
		quorum = binary.LittleEndian.AppendUint32(quorum, p)
	}
	return round.Hash("lodge threshold request", q.ID, quorum, q.what())
}

// Request names what is asked for, whichever quorum is asked, and for whom: client and circuit are as a party knows them.
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

// Info is what the answer of a party is bound to that is sealed for a recipient.
func (q *Question) Info(party uint32) []byte {
	d := q.Digest()
	info := round.Hash("lodge threshold answer", d[:], round.Uint(uint64(party)))
	return info[:]
}

// Statement is what somebody signs who says where the ciphertexts come from: how many coefficients of each are opened is
// part of it, 0 for LWE ciphertexts, so that no more is opened than was meant. Who says it of ciphertexts that are decrypted
// with flooding says another thing: that their noise is bounded.
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

// Name names a ciphertext among all that are answered under the same keys, by its SHA-256. Answers of the two forms, numbers of
// different moduli, are answers to different names.
func (q *Question) Name(ciphertext [32]byte) [32]byte {
	named := [1 + len(ciphertext)]byte{} // in one block of the hash
	if q.Paper {
		//lodge:check threshold/ledger/form [run=TestQuestion] answers of one form are returned for
		//  the other
		named[0] = 1
	}
	copy(named[1:], ciphertext[:])
	return sha256.Sum256(named[:])
}
