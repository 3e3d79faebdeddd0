package secret

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// key is a secret that is not bytes, with a field that fmt would print.
type key struct{ Words []uint64 }

func (k key) Wipe() { clear(k.Words) }

const canary = "canary"

var (
	wordCanary = uint64(0x636e617279)
	leaks      = []string{
		canary, "63616e617279", "63616E617279", "63 61 6e", "63 61 6E", "99 97", "143 141", "0x63 0x61", "0X63 0X61", "0x63, 0x61", "0b1100011 ", "1100011 1100001",
		fmt.Sprint(wordCanary), fmt.Sprintf("%x", wordCanary), fmt.Sprintf("%X", wordCanary), fmt.Sprintf("%o", wordCanary), fmt.Sprintf("%b", wordCanary),
		"U+0063 U+0061", "'c' 'a'",
	}
)

func checkHidden(t *testing.T, what, got string) {
	t.Helper()
	for _, leak := range leaks {
		if strings.Contains(got, leak) {
			t.Errorf("%s reveals %s in %s", what, leak, got)
		}
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	b, box := NewBytes([]byte(canary)), NewBox(key{[]uint64{wordCanary}})
	exported := struct {
		Name string
		B    Bytes
		Box  Box[key]
	}{"held", b, box}
	unexported := struct {
		name string
		b    Bytes
		box  Box[key]
		at   *Bytes
	}{"held", b, box, &b}
	values := []any{
		b, &b, box, &box, exported, &exported, unexported, &unexported,
		[]any{b, box}, []Bytes{b}, [1]Box[key]{box}, map[string]Bytes{"k": b}, map[*Bytes]Box[key]{&b: box}, struct{ x any }{b}, struct{ x any }{&unexported}, [][]Bytes{{b}}, errors.Join(fmt.Errorf("with %v and %d", b, box)),
	}
	for _, v := range values {
		for _, flags := range []string{"", "+", "#", "0", "-", " ", "20.3", "# x"} {
			for verb := 'A'; verb <= 'z'; verb++ {
				format := "%" + flags + string(verb)
				checkHidden(t, fmt.Sprintf("%T with %s", v, format), fmt.Sprintf(format, v))
			}
		}
		checkHidden(t, "Sprint", fmt.Sprint(v))
		checkHidden(t, "an extra argument", fmt.Sprintf("none"+fmt.Sprint(), []any{v}...))
	}
	for _, v := range []fmt.Stringer{b, &b, box, &box} {
		if v.String() != Redacted || v.(fmt.GoStringer).GoString() != Redacted || fmt.Sprintf("%d", v) != Redacted {
			t.Errorf("%T is not redacted", v)
		}
	}
}

func TestSecretsHaveNoEncoding(t *testing.T) {
	b, box := NewBytes([]byte(canary)), NewBox(key{[]uint64{wordCanary}})
	exported := struct {
		B   Bytes
		Box *Box[key]
	}{b, &box}
	for _, v := range []any{b, &b, box, &box, exported, &exported, []Bytes{b}, map[string]Box[key]{"k": box}} {
		out, err := json.Marshal(v)
		if err != nil || !strings.Contains(string(out), Redacted) {
			t.Errorf("%T in JSON is %s, %v", v, out, err)
		}
		checkHidden(t, "JSON", string(out))
		var stored bytes.Buffer
		if err := gob.NewEncoder(&stored).Encode(v); !errors.Is(err, ErrEncode) {
			t.Errorf("gob stores a %T: %v", v, err)
		}
		checkHidden(t, "gob", stored.String())
	}
	if out, err := xml.Marshal(exported.B); err != nil || !strings.Contains(string(out), Redacted) {
		t.Errorf("XML is %s, %v", out, err)
	}
	if out, err := box.MarshalText(); err != nil || string(out) != Redacted {
		t.Errorf("text is %s, %v", out, err)
	}
	if _, err := box.MarshalBinary(); !errors.Is(err, ErrEncode) {
		t.Errorf("binary: %v", err)
	}
	//lint:ignore SA9005 the test checks that nothing is exported
	if err := json.Unmarshal([]byte(`"`+Redacted+`"`), &b); err == nil {
		t.Error("a redacted secret was decoded")
	}
}

func TestWipeErasesEveryCopy(t *testing.T) {
	raw, words := []byte(canary), []uint64{wordCanary}
	b, box := NewBytes(raw), NewBox(key{words})
	held, heldBox := b, box
	if !held.Equal(b.Open()) || heldBox.Open().Words[0] != wordCanary || b.Empty() || box.Empty() {
		t.Fatal("a holder does not return its value")
	}
	for range 2 { // the second call has no effect
		b.Wipe()
		box.Wipe()
	}
	if !bytes.Equal(raw, make([]byte, len(canary))) || words[0] != 0 {
		t.Error("Wipe did not erase the value")
	}
	if !b.Empty() || !held.Empty() || !box.Empty() || !heldBox.Empty() {
		t.Error("Wipe did not erase a copy")
	}
	var zero Bytes
	var zeroBox Box[key]
	zero.Wipe()
	zeroBox.Wipe()
	for what, open := range map[string]func(){
		"wiped bytes": func() { held.Open() }, "a wiped box": func() { heldBox.Open() },
		"empty bytes": func() { zero.Open() }, "an empty box": func() { zeroBox.Open() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Open accepts %s", what)
				}
			}()
			open()
		}()
	}
}

func TestEqual(t *testing.T) {
	b := NewBytes([]byte(canary))
	for other, want := range map[string]bool{canary: true, "canarx": false, "Canary": false, "canar": false, "canaryy": false, "": false} {
		if b.Equal([]byte(other)) != want {
			t.Errorf("equal to %q: %v", other, !want)
		}
	}
	nothing := NewBytes([]byte{})
	if !nothing.Equal(nil) {
		t.Error("empty bytes differ from empty bytes")
	}
	b.Wipe()
	if b.Equal(nil) || b.Equal(make([]byte, len(canary))) || (Bytes{}).Equal(nil) {
		t.Error("a holder without a value is equal to another value")
	}
}
