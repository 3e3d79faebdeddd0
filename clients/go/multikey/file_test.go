package multikey

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/sample"
)

func scheme(t testing.TB, seed [32]byte, name string) *multikey.Scheme {
	t.Helper()
	set, err := multikey.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := multikey.New(set, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// groups returns a batch of three bits, and two public bits.
func groups(s *multikey.Scheme) []Group {
	source := sample.NewSource(make([]byte, 32))
	secret, _ := s.Generate(1, source.Sub("keys"), 2)
	batch := secret.Encrypt([]bool{true, false, true}, source.Sub("bits"))
	return []Group{{Batch: batch}, {Ciphertexts: []*multikey.Ciphertext{multikey.Trivial(true), multikey.Trivial(false)}}, {Ciphertexts: []*multikey.Ciphertext{batch.Ciphertext(1)}}}
}

func TestFile(t *testing.T) {
	s := scheme(t, multikey.StandardSeed(), "insecure-M8-32")
	list := groups(s)
	var b bytes.Buffer
	if err := Write(&b, s, list); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	got, err := Read(&b, s)
	if err != nil {
		t.Fatal(err)
	}
	if Digest(s, got) != Digest(s, list) || len(got) != 3 || len(Ciphertexts(got)) != 6 {
		t.Errorf("different ciphertexts are read: %v", got)
	}
	key := strings.SplitN(strings.SplitN(text, `"keys":["`, 2)[1], `"`, 2)[0]
	for name, x := range map[string]struct {
		text string
		want error
	}{
		"nothing":               {"", ErrFile},
		"another file":          {strings.Replace(text, "multikey", "threshold", 1), ErrFile},
		"no description":        {fileFormat + "\n", ErrFile},
		"an endless one":        {fileFormat + "\n" + strings.Repeat(" ", maxFileHead+1), ErrFile},
		"no JSON":               {fileFormat + "\n" + "x\n", ErrFile},
		"another member":        {strings.Replace(text, `{"set"`, `{"x":1,"set"`, 1), ErrFile},
		"a blank":               {strings.Replace(text, `{"set"`, `{ "set"`, 1), ErrFile},
		"another set":           {strings.Replace(text, "insecure-M8-32", "insecure-M8-33", 1), multikey.ErrSet},
		"another form":          {strings.Replace(text, `"batch"`, `"bitch"`, 1), ErrFile},
		"no ciphertexts":        {strings.Replace(text, `"count":3`, `"count":0`, 1), ErrFile},
		"more than there are":   {strings.Replace(text, `"count":3`, `"count":1048576`, 1), ErrFile},
		"a short name":          {strings.Replace(text, key, key[2:], 1), ErrFile},
		"a name in capitals":    {strings.Replace(text, key, strings.ToUpper(key), 1), ErrFile},
		"another name":          {strings.Replace(text, key, strings.Repeat("0", 64), 1), ErrFile},
		"something at the end":  {text + "x", ErrFile},
		"something that is off": {text[:len(text)-1], ErrFile},
	} {
		if _, err := Read(strings.NewReader(x.text), s); !errors.Is(err, x.want) || x.text == text {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	if _, err := Read(strings.NewReader(text), scheme(t, [32]byte{1}, "insecure-M8-32")); !errors.Is(err, multikey.ErrCRS) {
		t.Errorf("under another reference string: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	s := scheme(f, multikey.StandardSeed(), "insecure-M8-32")
	var b bytes.Buffer
	if err := Write(&b, s, groups(s)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Read(bytes.NewReader(text), s)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, s, list); err != nil || !bytes.Equal(b.Bytes(), text) {
			t.Errorf("%v, or writing a file again changes it", err)
		}
	})
}
