package threshold

import (
	"crypto/sha256"
	"hash"

	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
)

// intake receives the ciphertexts of a request. It hashes and decodes each ciphertext when it is
// complete, while it is in the processor's caches. This takes half the time of processing all of
// them at the end.
type intake struct {
	batch     ciphertexts
	set       string
	most      int       // total bytes
	taken     int       // received bytes
	sum       hash.Hash // over the hashes of the complete ciphertexts
	part      []byte    // of an incomplete ciphertext
	malformed error     // the error of the first malformed ciphertext, reported at the end
	decoded   int
	name      func(sum [32]byte) ([32]byte, error)

	digests [][32]byte // identifiers of the ciphertexts
}

// intakeOf returns the intake for a request's ciphertexts. The caller has reserved memory for them.
func (q *request) intakeOf() *intake {
	return &intake{batch: q.batch, set: q.scheme.name(), most: int(q.header.GetCount()) * q.batch.size(), sum: sha256.New(), name: q.name}
}

// add consumes the next bytes.
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

// decode decodes the next ciphertext, whose SHA-256 is sum, and computes its identifier.
func (x *intake) decode(encoded []byte, sum [32]byte) error {
	if err := x.batch.decode(encoded); err != nil {
		return rpc.Errorf(rpc.BadCiphertext, "encode ciphertexts as docs/reference/formats.md says", "ciphertext %d is not valid under %s: %v", x.decoded, x.set, err)
	}
	x.decoded++
	name, err := x.name(sum)
	x.digests = append(x.digests, name)
	return err
}

// check ends the intake. It verifies that all announced ciphertexts were received and match the
// announced digest.
func (x *intake) check(digest []byte) error {
	size := x.batch.size()
	//lodge:check threshold/request/length [run=TestMalformedRequests] fewer bytes than announced
	//  are accepted
	if x.taken != x.most {
		return rpc.Errorf(rpc.Invalid, "send as many ciphertexts as the header announces", "%d bytes; %d ciphertexts of %s have %d", x.taken, x.most/size, x.set, x.most)
	}
	//lodge:check threshold/request/digest [run=TestMalformedRequests] other ciphertexts than the
	//  approved ones are decrypted
	if string(x.sum.Sum(nil)) != string(digest) {
		return rpc.Errorf(rpc.Invalid, "send the ciphertexts whose digest is in the header", "the ciphertexts do not match the digest in the header")
	}
	if x.malformed != nil {
		return x.malformed
	}
	seen := make(map[[32]byte]int, len(x.digests))
	for i, d := range x.digests {
		//lodge:check threshold/request/twice [run=TestEveryQuorum] [redundant=the ledger rejects it
		//  too] one message is opened twice in a request
		if first, twice := seen[d]; twice {
			return rpc.Errorf(rpc.Invalid, "request each only once", "ciphertexts %d and %d are the same", first, i)
		}
		seen[d] = i
	}
	return x.batch.prepare()
}

// name returns the identifier of the last decoded ciphertext, among all that are decrypted under
// the request's keys. With flooding it covers only the part on which answers depend.
func (q *request) name(sum [32]byte) ([32]byte, error) {
	if q.flooding() {
		return q.batch.(*bgvCiphertexts).key()
	}
	return q.asked.Name(sum), nil
}

// some returns the given messages of the request, in order, as runs of consecutive messages of each
// ciphertext.
func (q *request) some(messages []int) (list []ledger.Messages) {
	each := q.batch.each()
	for _, i := range messages {
		c, k := q.digests[i/each], i%each
		//lodge:check threshold/ledger/some [swap=list[last].First+list[last].Count ==
		//  k=>list[last].First+list[last].Count <= k] [run=TestSomeMessages] an answer is recorded
		//  for another message
		if last := len(list) - 1; last >= 0 && list[last].Ciphertext == c && list[last].First+list[last].Count == k {
			list[last].Count++
		} else {
			list = append(list, ledger.Messages{Ciphertext: c, First: k, Count: 1})
		}
	}
	return list
}

// all returns all messages of the request.
func (q *request) all() []ledger.Messages {
	list := make([]ledger.Messages, len(q.digests))
	for i, c := range q.digests {
		list[i] = ledger.Messages{Ciphertext: c, Count: q.batch.each()}
	}
	return list
}
