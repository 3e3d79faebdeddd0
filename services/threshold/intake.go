package threshold

import (
	"crypto/sha256"
	"hash"

	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/vault"
)

// intake takes in the ciphertexts of a request. Each is hashed and decoded when it is complete, while the processor's caches
// have it: that takes half the time of going through all of them again at the end.
type intake struct {
	batch     ciphertexts
	set       string
	most      int       // bytes of all
	taken     int       // bytes that have come
	sum       hash.Hash // of the hashes of the ciphertexts that have come whole
	part      []byte    // of a ciphertext that has not come whole
	malformed error     // what is wrong with the first that is none, when all have come
	decoded   int
	name      func(sum [32]byte) ([32]byte, error)

	digests [][32]byte // names of the ciphertexts
}

// intakeOf makes ready for the ciphertexts of a request, for which there is memory.
func (q *request) intakeOf() *intake {
	return &intake{batch: q.batch, set: q.scheme.name(), most: int(q.header.GetCount()) * q.batch.size(), sum: sha256.New(), name: q.name}
}

// add takes the bytes that come next.
func (x *intake) add(chunk []byte) error {
	size := x.batch.size()
	//lodge:check threshold/request/bound [run=TestMalformedRequests] more bytes than announced are
	//  accepted
	if x.taken += len(chunk); x.taken > x.most {
		return rpc.Errorf(rpc.TooLarge, "", "%d ciphertexts of %s have %d bytes", x.most/size, x.set, x.most)
	}
	for len(chunk) > 0 {
		n := min(len(chunk), size-len(x.part))
		piece := chunk[:n]
		chunk = chunk[n:]
		if n < size {
			if x.part = append(x.part, piece...); len(x.part) < size {
				return nil
			}
			piece = x.part
		}
		sum := sha256.Sum256(piece)
		x.sum.Write(sum[:])
		if x.malformed == nil {
			x.malformed = x.decode(piece, sum)
		}
		x.part = x.part[:0]
	}
	return nil
}

// decode takes the next ciphertext, of which sum is the SHA-256, and names it.
func (x *intake) decode(encoded []byte, sum [32]byte) error {
	if err := x.batch.decode(encoded); err != nil {
		return rpc.Errorf(rpc.BadCiphertext, "encode ciphertexts as docs/threshold.md says", "ciphertext %d is none of %s: %v", x.decoded, x.set, err)
	}
	x.decoded++
	name, err := x.name(sum)
	x.digests = append(x.digests, name)
	return err
}

// check ends the intake: with all that was announced, under the digest that was announced.
func (x *intake) check(digest []byte) error {
	size := x.batch.size()
	//lodge:check threshold/request/length [run=TestMalformedRequests] fewer bytes than announced
	//  are accepted
	if x.taken != x.most {
		return rpc.Errorf(rpc.Invalid, "send as many ciphertexts as the header says", "%d bytes; %d ciphertexts of %s have %d", x.taken, x.most/size, x.set, x.most)
	}
	//lodge:check threshold/request/digest [run=TestMalformedRequests] other ciphertexts than the
	//  approved ones are decrypted
	if string(x.sum.Sum(nil)) != string(digest) {
		return rpc.Errorf(rpc.Invalid, "send the ciphertexts whose digest is in the header", "the ciphertexts have another digest than the header says")
	}
	if x.malformed != nil {
		return x.malformed
	}
	seen := make(map[[32]byte]int, len(x.digests))
	for i, d := range x.digests {
		//lodge:check threshold/request/twice [run=TestEveryQuorum] [redundant=the ledger rejects it
		//  too] one message is opened twice in a request
		if first, twice := seen[d]; twice {
			return rpc.Errorf(rpc.Invalid, "ask for each once", "ciphertexts %d and %d are the same", first, i)
		}
		seen[d] = i
	}
	return x.batch.prepare()
}

// name is that of the ciphertext that was decoded last, among all that are decrypted under the request's keys. With flooding it
// is of what answers depend on.
func (q *request) name(sum [32]byte) ([32]byte, error) {
	if q.flooding() {
		return q.batch.(*bgvCiphertexts).key()
	}
	return q.asked.Name(sum), nil
}

// some are messages of the request, in order, as those that are next to each other of each ciphertext.
func (q *request) some(messages []int) (list []vault.Messages) {
	each := q.batch.each()
	for _, i := range messages {
		c, k := q.digests[i/each], i%each
		//lodge:check threshold/ledger/some [swap=list[last].First+list[last].Count ==
		//  k=>list[last].First+list[last].Count <= k] [run=TestSomeMessages] an answer is recorded
		//  for another message
		if last := len(list) - 1; last >= 0 && list[last].Ciphertext == c && list[last].First+list[last].Count == k {
			list[last].Count++
		} else {
			list = append(list, vault.Messages{Ciphertext: c, First: k, Count: 1})
		}
	}
	return list
}

// all are all messages of the request.
func (q *request) all() []vault.Messages {
	list := make([]vault.Messages, len(q.digests))
	for i, c := range q.digests {
		list[i] = vault.Messages{Ciphertext: c, Count: q.batch.each()}
	}
	return list
}
