package round

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"testing"
)

// fixed is a round with given wants that records the messages it receives.
type fixed struct {
	wants  []Want
	next   Transition[string]
	frames *int
	got    *Inbox
	fail   error
}

func (r fixed) Wants() []Want { return r.wants }

func (r fixed) Step(_ context.Context, in Inbox) (Transition[string], error) {
	if r.got != nil {
		*r.got = in
	}
	return r.next, nil
}

func (r fixed) Frame(context.Context, Party, string, int, bool, []byte) error {
	*r.frames++
	return r.fail
}

// plain is a round that takes no frames.
type plain struct{ wants []Want }

func (r plain) Wants() []Want { return r.wants }

func (r plain) Step(context.Context, Inbox) (Transition[string], error) { return Done("end"), nil }

var pair = Session{ID: Hash("test"), Self: 0, Parties: 2}

func machine(t *testing.T, s Session, r Round[string], send ...Message) *Machine[string] {
	t.Helper()
	m, err := NewMachine(s, Next(r, send...))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFramesAreLimited(t *testing.T) {
	full := make([]byte, MaxFrame)
	first := Incoming{From: 1, Name: "m", Payload: full}
	for _, test := range []struct {
		name  string
		want  Want
		in    []Incoming
		check string // "" when all are accepted
	}{
		{"exactly full", Want{MaxBytes: MaxFrame}, []Incoming{{Last: true, Payload: full}}, ""},
		{"two frames", Want{MaxBytes: MaxFrame + 1}, []Incoming{first, {Index: 1, Last: true, Payload: full[:1]}}, ""},
		{"empty", Want{}, []Incoming{{Last: true}}, ""},
		{"one byte over", Want{MaxBytes: 3}, []Incoming{{Last: true, Payload: full[:4]}}, CheckSize},
		{"frame too large", Want{MaxBytes: 2 * MaxFrame}, []Incoming{{Last: true, Payload: append(full, 0)}}, CheckSize},
		{"frame not full", Want{MaxBytes: 2 * MaxFrame}, []Incoming{{Payload: full[:5]}}, CheckShape},
		{"empty last frame", Want{MaxBytes: 2 * MaxFrame}, []Incoming{first, {Index: 1, Last: true}}, CheckShape},
		{"too many bytes in the second", Want{MaxBytes: MaxFrame + 1}, []Incoming{first, {Index: 1, Last: true, Payload: full[:2]}}, CheckSize},
		{"too many frames", Want{Stream: true, MaxFrames: 2, MaxBytes: 9}, []Incoming{{}, {Index: 1}, {Index: 2, Last: true}}, CheckSize},
		{"too many bytes streamed", Want{Stream: true, MaxFrames: 2, MaxBytes: 9}, []Incoming{{Payload: full[:5]}, {Index: 1, Last: true, Payload: full[:5]}}, CheckSize},
		{"index skipped", Want{Stream: true, MaxFrames: 3, MaxBytes: 9}, []Incoming{{}, {Index: 2}}, CheckShape},
		{"index repeated", Want{Stream: true, MaxFrames: 3, MaxBytes: 9}, []Incoming{{}, {}}, CheckShape},
		{"second message", Want{MaxBytes: 9}, []Incoming{{Last: true}, {Last: true}}, CheckDuplicate},
		{"wrong name", Want{MaxBytes: 9}, []Incoming{{Name: "x", Last: true}}, CheckShape},
		{"past round", Want{MaxBytes: 9}, []Incoming{{Round: -1, Last: true}}, CheckDuplicate},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.From, test.want.Name = 1, "m"
			m := machine(t, pair, fixed{wants: []Want{test.want}, frames: new(int)})
			var err error
			for i, in := range test.in {
				if in.From = 1; in.Name == "" {
					in.Name = "m"
				}
				if err = m.Deliver(t.Context(), in); err != nil && i < len(test.in)-1 {
					t.Fatalf("frame %d: %v", i, err)
				}
			}
			var blame *Blame
			switch {
			case test.check == "" && err == nil && m.Ready():
			case test.check != "" && errors.As(err, &blame) && blame.Party == 1 && blame.Check == test.check:
				if m.Ready() || !errors.Is(m.Deliver(t.Context(), test.in[0]), ErrDead) || !errors.Is(m.Step(t.Context()), ErrDead) {
					t.Error("the machine lives on after a blame")
				}
			default:
				t.Errorf("ends with %v, want %q", err, test.check)
			}
		})
	}
}

func TestEarlyFramesChangeNothing(t *testing.T) {
	m := machine(t, pair, plain{Each(0, 2, Want{Name: "m", MaxBytes: 1})})
	early := Incoming{Round: 1, From: 1, Name: "m", Last: true}
	if err := m.Deliver(t.Context(), early); !errors.Is(err, ErrEarly) {
		t.Fatal(err)
	}
	if len(m.Missing()) != 1 || m.Step(t.Context()) == nil {
		t.Fatal("an early frame counts")
	}
	early.Round = 0
	if err := m.Deliver(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	if err := m.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, ok := m.Result(); !ok || r != "end" {
		t.Fatal("no result")
	}
	if !errors.Is(m.Deliver(t.Context(), early), ErrDead) {
		t.Fatal("a finished machine takes frames")
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	ok := Each(0, 2, Want{Name: "m", MaxBytes: 1})
	two := Session{ID: pair.ID, Self: 0, Parties: 2}
	for name, test := range map[string]struct {
		s Session
		t Transition[string]
	}{
		"no peers":           {Session{Parties: 1}, Done("")},
		"not in the session": {Session{Self: 2, Parties: 2}, Done("")},
		"neither":            {two, Transition[string]{}},
		"both":               {two, Transition[string]{Next: plain{}, Done: new(string)}},
		"result that sends":  {two, Transition[string]{Send: []Message{Broadcast("m", nil)}, Done: new(string)}},
		"want of itself":     {two, Next(Round[string](plain{[]Want{{From: 0, Name: "m"}}}))},
		"want of a stranger": {two, Next(Round[string](plain{[]Want{{From: 2, Name: "m"}}}))},
		"want without name":  {two, Next(Round[string](plain{[]Want{{From: 1}}}))},
		"want of an echo":    {two, Next(Round[string](plain{[]Want{{From: 1, Name: "echo"}}}))},
		"want twice":         {two, Next(Round[string](plain{append(ok, ok...)}))},
		"endless want":       {two, Next(Round[string](plain{[]Want{{From: 1, Name: "m", MaxBytes: -1}}}))},
		"stream to nobody":   {two, Next(Round[string](plain{[]Want{{From: 1, Name: "m", MaxFrames: 1, Stream: true}}}))},
		"frames unlimited":   {two, Next(Round[string](fixed{wants: []Want{{From: 1, Name: "m", Stream: true}}}))},
		"send to itself":     {two, Next(Round[string](plain{ok}), Message{To: 0, Name: "m", Body: Bytes(nil)})},
		"send to a stranger": {two, Next(Round[string](plain{ok}), Message{To: 2, Name: "m", Body: Bytes(nil)})},
		"send twice":         {two, Next(Round[string](plain{ok}), Broadcast("m", nil), Broadcast("m", nil))},
		"send an echo":       {two, Next(Round[string](plain{ok}), Broadcast("echo", nil))},
	} {
		if _, err := NewMachine(test.s, test.t); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestBytesFraming(t *testing.T) {
	for n, frames := range map[int]int{0: 1, 1: 1, MaxFrame - 1: 1, MaxFrame: 1, MaxFrame + 1: 2, 2 * MaxFrame: 2} {
		want := make([]byte, n)
		if n > 0 {
			want[n-1] = 7
		}
		b := Bytes(want)
		var got []byte
		for i := range b.Frames() {
			f, err := b.Frame(i)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, f...)
		}
		if b.Frames() != frames || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d frames", n, b.Frames())
		}
		if _, err := b.Frame(frames); err == nil {
			t.Error("a frame past the end")
		}
	}
}

func TestDigestCommitsToNameAndFrames(t *testing.T) {
	seen := map[Digest]string{}
	for label, m := range map[string]struct {
		name   string
		frames []string
	}{
		"one frame":      {"m", []string{"ab"}},
		"other name":     {"n", []string{"ab"}},
		"two frames":     {"m", []string{"a", "b"}},
		"other boundary": {"m", []string{"", "ab"}},
		"trailing empty": {"m", []string{"ab", ""}},
		"name has it":    {"ma", []string{"b"}},
		"nothing":        {"m", nil},
		"empty":          {"m", []string{""}},
	} {
		d, err := DigestOf(m.name, Frames(len(m.frames), func(i int) ([]byte, error) { return []byte(m.frames[i]), nil }))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", label, other)
		}
		seen[d] = label
	}
	if Hash("t", []byte("ab")) == Hash("t", []byte("a"), []byte("b")) || Hash("ta", []byte("b")) == Hash("t", []byte("ab")) {
		t.Error("fields run into each other")
	}
	a, b := make([]byte, 100), make([]byte, 100)
	XOF("t", []byte("a")).Read(a)
	x := XOF("t", []byte("a"))
	x.Read(b[:1])
	x.Read(b[1:])
	if !bytes.Equal(a, b) || bytes.Equal(a[:50], a[50:]) {
		t.Error("the stream depends on how it is read")
	}
}

// Made with Python's hashlib from the definitions in hash.go and commit.go.
const (
	vectorHash    = "2de16394d4138d2a18e89368e51faeef550e15b8421322911c710b7d749f7e0c"
	vectorMessage = "671da4b08154ac0ea94ad315e5f1ddb5d2cd1fda517665c531f25c47fe9c985c"
	vectorCommit  = "2ad131dec56319db57134307616a757298e4fa57583941c128eacdfb81833d31"
)

func hexOf(d Digest) string { return hex.EncodeToString(d[:]) }

// The digests are pinned: a change breaks every stored commitment and signature.
func TestDigestVectors(t *testing.T) {
	d, _ := DigestOf("popk/open", Bytes([]byte("frame")))
	for name, test := range map[string]struct{ got, want string }{
		"hash":    {hexOf(Hash("tag", []byte("one"), nil)), vectorHash},
		"message": {hexOf(d), vectorMessage},
		"commit":  {hexOf(Commitment(pair.ID, "step", 1, d)), vectorCommit},
	} {
		if test.got != test.want {
			t.Errorf("%s: %s, want %s", name, test.got, test.want)
		}
	}
}

// The body of an outgoing broadcast carries its digest; the body of any other message does not.
func TestBroadcastsRecordTheirDigest(t *testing.T) {
	content := bytes.Repeat([]byte{5}, 1000)
	m := machine(t, pair, plain{}, Broadcast("all", content), Message{To: 1, Name: "one", Body: Bytes(content)})
	out := m.Outgoing()
	if len(out) != 2 {
		t.Fatalf("%d messages", len(out))
	}
	for _, o := range out {
		h, known := o.Message.Body.(Hashed)
		if known != (o.Message.To == All) {
			t.Errorf("%s: digest known: %v", o.Message.Name, known)
		}
		if want, err := DigestOf(o.Message.Name, Bytes(content)); known && (err != nil || h.Digest() != want) {
			t.Errorf("%s: digest %x, want %x (%v)", o.Message.Name, h.Digest(), want, err)
		}
	}
}
