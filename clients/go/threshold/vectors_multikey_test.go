package threshold_test

import (
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/mkdecrypt"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// multikeyVectors holds the Python client's results for multi-key ciphertexts.
type multikeyVectors struct {
	Sets        []multikeySetVectors `json:"sets"`
	Batch       hexBytes             `json:"batch"`
	Ciphertexts []hexBytes           `json:"ciphertexts"` // of the batch
	Readable    hexBytes             `json:"readable"`    // a public 1
	Digest      hexBytes             `json:"digest"`      // of the ciphertexts
	Owner       uint32               `json:"owner"`
	Question    hexBytes             `json:"question"`
}

type multikeySetVectors struct {
	Name    string   `json:"name"`
	Hash    hexBytes `json:"hash"`
	Parties int      `json:"parties"`
	// Words holds the bits of words answered by two parties, three, and so on; 0 if they cannot
	// decrypt.
	Words []int `json:"words"`
}

func TestMultikeyVectors(t *testing.T) {
	var v multikeyVectors
	for _, set := range multikey.Sets() {
		hash := set.Hash()
		x := multikeySetVectors{Name: set.Name, Hash: hash[:], Parties: set.Parties}
		for n := 2; n <= set.Parties; n++ {
			p, err := mkdecrypt.Params(set, n, 1)
			if err != nil {
				p.Kind.LogEta = 0
			}
			x.Words = append(x.Words, p.Kind.LogEta)
		}
		v.Sets = append(v.Sets, x)
	}
	s := must(multikey.New(must(multikey.Lookup("insecure-M8-32")), multikey.StandardSeed()))
	source := sample.NewSource(make([]byte, 32))
	secret, _ := s.Generate(1, source.Sub("keys"), 2)
	batch := secret.Encrypt([]bool{true, false, true}, source.Sub("bits"))
	v.Batch = s.AppendBatch(nil, batch)
	var all []byte
	for i := range batch.Len() {
		c := s.AppendCiphertext(nil, batch.Ciphertext(i))
		v.Ciphertexts, all = append(v.Ciphertexts, c), append(all, c...)
	}
	v.Readable = s.AppendCiphertext(nil, multikey.Trivial(true))
	d := decrypt.CiphertextsDigest(all, len(v.Ciphertexts[0]))
	v.Owner = 2
	q := decrypt.Question{ID: make([]byte, 16), Epoch: 7, Quorum: []uint32{0, 2}, Count: batch.Len(), Each: 1, Ciphertexts: d,
		Multikey: []decrypt.KeyOwner{{Key: batch.Key, Owner: v.Owner}}}
	digest := q.Digest()
	v.Digest, v.Question = d[:], digest[:]
	compare(t, "multikey.json", v)
}
