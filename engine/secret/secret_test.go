package secret

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSecretsShowNothing(t *testing.T) {
	b := Bytes("canary")
	box := NewBox(b)
	held := struct {
		Name string
		B    Bytes
		Box  Box[Bytes]
	}{"held", b, box}
	for _, v := range []any{b, &b, box, &box, held, &held, []any{b, box}, map[string]any{"k": b}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%U"} {
			got := fmt.Sprintf(verb, v)
			for _, leak := range []string{"canary", "63616e617279", "63616E617279", "99 97", "0x63", "143 141"} {
				if strings.Contains(got, leak) {
					t.Errorf("%T with %s prints %s", v, verb, got)
				}
			}
		}
		if out, err := json.Marshal(v); !errors.Is(err, ErrEncode) {
			t.Errorf("%T encodes to %s", v, out)
		}
	}
}

func TestWipe(t *testing.T) {
	b := Bytes("canary")
	box := NewBox(b)
	if !box.Open().Equal(Bytes("canary")) || box.Open().Equal(Bytes("canarx")) || box.Empty() {
		t.Fatal("a box does not give its value")
	}
	box.Wipe()
	if !b.Equal(make(Bytes, 6)) || !box.Empty() {
		t.Error("the value survives Wipe")
	}
	box.Wipe()
	defer func() {
		if recover() == nil {
			t.Error("a wiped box opens")
		}
	}()
	box.Open()
}
