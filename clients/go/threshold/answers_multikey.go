package threshold

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
)

// Answers for multi-key ciphertexts belong to several requests, each for the bits under the same
// keys. The file states the positions of these bits, and contains the public bits.

// multikeyForm is the form of multi-key ciphertexts in files of answers.
const multikeyForm = "multikey"

// sealedBit marks a bit that is in the answers.
const sealedBit = '?'

// ownerRecord states the owner of the keys with a name.
type ownerRecord struct {
	Key   string `json:"key"`
	Owner uint32 `json:"owner"`
}

// MultikeyAnswers returns a file of answers for multi-key ciphertexts. Each element of answers is
// for the ciphertexts at its places.
func MultikeyAnswers(list []*multikey.Ciphertext, answers []*Answers, places [][]int) (*AnswersFile, error) {
	if len(answers) == 0 {
		return nil, lodge.Errorf(lodge.Invalid, "read them with `lodge mk decrypt` without a recipient", "these bits are public")
	}
	first := answers[0]
	for _, a := range answers {
		if a.Epoch != first.Epoch || a.Question.Keys != first.Question.Keys || a.Params != first.Params {
			return nil, lodge.Errorf(lodge.Invalid, "name the epoch of one", "the answers are of several groups")
		}
	}
	known := bytes.Repeat([]byte{sealedBit}, len(list))
	for i, c := range list {
		if len(c.Parts) == 0 {
			known[i] = '0'
			if multikey.Decode(c.B) {
				known[i] = '1'
			}
		}
	}
	f := &AnswersFile{Encoding: lwe.Plain, Messages: len(list), Answers: answers, Known: string(known), Places: places}
	return f, f.checkMultikey()
}

// checkMultikey returns an error unless the places are exactly those of the sealed bits, each once.
func (f *AnswersFile) checkMultikey() error {
	if f.Known == "" && f.Places == nil {
		return nil
	}
	if len(f.Known) != f.Messages || strings.Trim(f.Known, "01?") != "" || len(f.Places) != len(f.Answers) {
		return fmt.Errorf("%d messages with the known bits %.80q", f.Messages, f.Known)
	}
	missing := []byte(f.Known)
	for i, places := range f.Places {
		q := f.Answers[i].Question
		if len(q.Multikey) == 0 || q.Count != len(places) {
			return fmt.Errorf("%d places of %d bits", len(places), q.Count)
		}
		for _, at := range places {
			if at < 0 || at >= len(missing) || missing[at] != sealedBit {
				return fmt.Errorf("a bit is at place %d of %d, which does not exist or is already used", at, len(missing))
			}
			missing[at] = '0'
		}
	}
	if bytes.IndexByte(missing, sealedBit) >= 0 {
		return fmt.Errorf("a bit is in no answer")
	}
	return nil
}

// putMultikey records the owners of the keys of a question.
func (x *answerRecord) putMultikey(q *decrypt.Question, places []int) {
	x.Form, x.Places = multikeyForm, places
	for _, k := range q.Multikey {
		x.Owners = append(x.Owners, ownerRecord{fmt.Sprintf("%x", k.Key), k.Owner})
	}
}

// multikey reads the owners of a request's keys, which must be in ascending order and complete.
func (x *answerRecord) multikey(quorum []uint32) (list []decrypt.KeyOwner, err error) {
	if (x.Form == multikeyForm) != (len(x.Owners) > 0) || x.Form != multikeyForm && x.Places != nil {
		return nil, fmt.Errorf("%d owners of keys in the form %q", len(x.Owners), x.Form)
	}
	for i, o := range x.Owners {
		k := decrypt.KeyOwner{Owner: o.Owner}
		if err := fixed(k.Key[:], o.Key); err != nil {
			return nil, err
		}
		if i > 0 && bytes.Compare(list[i-1].Key[:], k.Key[:]) >= 0 || !slices.Contains(quorum, k.Owner) {
			return nil, fmt.Errorf("the owner of keys %d is party %d, which has not answered, or the keys are not in ascending order", i, k.Owner)
		}
		list = append(list, k)
	}
	if x.Form == multikeyForm && len(quorum) < 2 {
		return nil, fmt.Errorf("a quorum of %d", len(quorum))
	}
	return list, nil
}

// openMultikey returns the bits of a file.
func (r *Recipient) openMultikey(f *AnswersFile) ([]uint64, error) {
	all := make([]uint64, f.Messages)
	for i := range all {
		if f.Known[i] == '1' {
			all[i] = 1
		}
	}
	for i, a := range f.Answers {
		m, err := r.Open(a)
		if err != nil {
			clear(all)
			return nil, err
		}
		for n, at := range f.Places[i] {
			all[at] = m[n]
		}
	}
	return all, nil
}
