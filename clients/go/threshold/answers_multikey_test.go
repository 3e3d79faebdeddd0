package threshold

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
)

// multikeyAnswersFile holds answers for four bits: two under the keys of two parties, a public one,
// and one of a single party.
func multikeyAnswersFile(t testing.TB) *AnswersFile {
	t.Helper()
	under := func(names ...byte) *multikey.Ciphertext {
		c := multikey.Trivial(true)
		for _, n := range names {
			c.Parts = append(c.Parts, multikey.Part{Key: multikey.KeyID{n}})
		}
		return c
	}
	list := []*multikey.Ciphertext{under(1, 2), under(), under(2), under(1, 2)}
	answer := func(count int, owners ...decrypt.KeyOwner) *Answers {
		q := &decrypt.Question{ID: make([]byte, 16), Epoch: 3, Quorum: []uint32{0, 1}, Count: count, Each: 1, Recipient: []byte{1}, Multikey: owners}
		return &Answers{Epoch: 3, Params: "insecure-M8-32", Threshold: 2, Question: q, Sealed: true, Parts: [][]byte{{1, 2}, {3, 4}}}
	}
	one, two := decrypt.KeyOwner{Key: [32]byte{1}, Owner: 0}, decrypt.KeyOwner{Key: [32]byte{2}, Owner: 1}
	f, err := MultikeyAnswers(list, []*Answers{answer(2, one, two), answer(1, two)}, [][]int{{0, 3}, {2}})
	if err != nil || f.Known != "?1??" {
		t.Fatalf("%+v, %v", f, err)
	}
	return f
}

// Answers for multi-key ciphertexts are read as they were written, and files with invalid places of
// bits are refused.
func TestMultikeyAnswersFile(t *testing.T) {
	var b bytes.Buffer
	if _, err := multikeyAnswersFile(t).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	f, err := ReadAnswers(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if _, err := f.WriteTo(&again); err != nil || again.String() != text {
		t.Errorf("%v, written again as\n%s\nnot\n%s", err, again.String(), text)
	}
	key := strings.Repeat("0", 62)
	for name, x := range map[string][2]string{
		"no known bits":               {`"known": "?1??",`, ``},
		"a known bit too few":         {`?1??`, `?1?`},
		"a known bit that is none":    {`?1??`, `?2??`},
		"a known bit that is sealed":  {`?1??`, `11??`},
		"a sealed bit that is none's": {`?1??`, `????`},
		"another form":                {`"multikey"`, `"lwe"`},
		"a form that is none":         {`"multikey"`, `"multi"`},
		"the paper's masks":           {`"exact"`, `"paper"`},
		"a place twice":               {"2\n      ]", "3\n      ]"},
		"a place that is none":        {"2\n      ]", "4\n      ]"},
		"no owners":                   {`"owners"`, `"x"`},
		"an owner who was not asked":  {`"owner": 1`, `"owner": 2`},
		"keys in another order":       {`"key": "01` + key, `"key": "03` + key},
		"a short key":                 {`"key": "01` + key, `"key": "01`},
		"another count":               {`"count": 2`, `"count": 3`},
		"several of each":             {`"coefficients": 1`, `"coefficients": 2`},
	} {
		bad := strings.Replace(text, x[0], x[1], 1)
		if _, err := ReadAnswers(strings.NewReader(bad)); err == nil || bad == text {
			t.Errorf("%s: %v", name, err)
		}
	}
	full := multikeyAnswersFile(t)
	if _, err := MultikeyAnswers([]*multikey.Ciphertext{multikey.Trivial(true)}, nil, nil); err == nil {
		t.Error("a file without answers was created")
	}
	full.Answers[1].Epoch = 4
	if _, err := MultikeyAnswers(make([]*multikey.Ciphertext, 0), full.Answers, full.Places); err == nil {
		t.Error("a file of two groups was created")
	}
}
