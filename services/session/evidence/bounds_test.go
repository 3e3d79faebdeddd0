package evidence

import (
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
)

// A statement with a very large number of empty parts, which would need much memory, is rejected
// before it is decoded.
func TestFieldsAreBounded(t *testing.T) {
	st := &evidencev1.Statement{}
	for range maxFields + 1 {
		st.Messages = append(st.Messages, &evidencev1.Message{})
	}
	many, err := canonical.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := canonical.Marshal(&evidencev1.Accusation{Statement: many})
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{"a statement": many, "fields of its parts": inner, "an invalid encoding": {0xff}} {
		var e *Error
		if err := decode(b, new(evidencev1.Accusation)); !errors.As(err, &e) || e.Problem != Unreadable {
			t.Errorf("%s: %v", what, err)
		}
	}
	some, err := canonical.Marshal(&evidencev1.Statement{Messages: st.Messages[:maxFields/2], Names: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(some, new(evidencev1.Statement)); err != nil {
		t.Error(err)
	}
	if n, ok := fields(some, maxFields, 3); !ok || n < maxFields/2+2 || n > maxFields/2+4 {
		t.Errorf("%d fields", n)
	}
}

// An echo covers broadcasts of one round, each named once and in order.
func TestNamesAreThoseOfARound(t *testing.T) {
	many := make([]string, maxNames+1)
	for i := range many {
		many[i] = string(rune('a' + i))
	}
	for _, names := range [][]string{{"b", "a"}, {"a", "a"}, {"", "a"}, many} {
		r := &referee{ctx: t.Context(), st: &evidencev1.Statement{Names: names}}
		r.list = append(r.list, message{})
		r.list[0].Name = round.EchoName
		var e *Error
		if _, _, err := r.falseEcho(); !errors.As(err, &e) || e.Problem != Unreadable {
			t.Errorf("%v: %v", names, err)
		}
	}
}
