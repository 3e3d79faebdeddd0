package audit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// full is an entry with every field set that a caller can set.
func full() Entry {
	return Entry{
		Party: "alice", Actor: "mpc", Auth: Certificate, Event: Delivered, Tenant: "demo",
		Objects: []string{"reservation/r-17", "batch/b-3"}, Ranges: []Range{{"batch/b-3", 0, 100}, {"batch/b-3", 500, 1}},
		Count: 101, Digest: sha256.Sum256([]byte("shares")), Note: "two < three & \"four\" \\ fünf",
	}
}

// The encoding is fixed, so that logs that are kept for years can be verified with a later build,
// or with sha256sum.
func TestPinnedLine(t *testing.T) {
	e := full()
	e.Version, e.Seq, e.Time = version, 7, time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC)
	e.Prev = sha256.Sum256([]byte("prev"))
	line, err := seal(&e)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"v":1,"seq":7,"time":"2026-03-04T05:06:07.89Z","party":"alice","actor":"mpc","auth":"certificate",` +
		`"event":"delivered","tenant":"demo","objects":["reservation/r-17","batch/b-3"],` +
		`"ranges":[{"object":"batch/b-3","first":0,"count":100},{"object":"batch/b-3","first":500,"count":1}],"count":101,` +
		`"digest":"DIGEST","note":"two \u003c three \u0026 \"four\" \\ fünf","prev":"PREV"`
	body := strings.NewReplacer("DIGEST", e.Digest.String(), "PREV", e.Prev.String()).Replace(want)
	if got := fmt.Sprintf(`%s,"hash":"%x"}`, body, sha256.Sum256([]byte(body))); got != string(line) {
		t.Errorf("got  %s\nwant %s", line, got)
	}
	if h := e.Hash.String(); h != "3ada73ef71a101341db8be6178585d828a3882028a0d84f11a7c1a3dbd44cf71" {
		t.Errorf("hash %s", h)
	}
	back, err := decode(line)
	if err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("%v\n%+v\n%+v", err, back, e)
	}
}

// An entry can hold names, numbers, digests and a note. A new field has to be justified here.
func TestNoFieldHoldsASecret(t *testing.T) {
	var fields []string
	for _, typ := range []reflect.Type{reflect.TypeFor[Entry](), reflect.TypeFor[Range]()} {
		for i := range typ.NumField() {
			f := typ.Field(i)
			fields = append(fields, f.Name+" "+strings.ReplaceAll(f.Type.String(), "audit.", ""))
		}
	}
	want := []string{
		"Version int", "Seq uint64", "Time time.Time", "Party string", "Actor string", "Auth Auth", "Event Event", "Tenant string",
		"Objects []string", "Ranges []Range", "Count uint64", "Digest Hash", "Note string", "Prev Hash", "Hash Hash",
		"Object string", "First uint64", "Count uint64",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("fields %q", fields)
	}
	share := strings.Repeat("8f", 200)
	for what, set := range map[string]func(*Entry){
		"actor":  func(e *Entry) { e.Actor = share },
		"tenant": func(e *Entry) { e.Tenant = share },
		"object": func(e *Entry) { e.Objects = []string{share} },
		"range":  func(e *Entry) { e.Ranges = []Range{{share, 0, 1}} },
		"event":  func(e *Entry) { e.Event = Event(share) },
	} {
		e := full()
		set(&e)
		if err := e.validate(); err == nil || strings.Contains(err.Error(), share) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRefusedEntries(t *testing.T) {
	for what, set := range map[string]func(*Entry){
		"no event":       func(e *Entry) { e.Event = "" },
		"event":          func(e *Entry) { e.Event = "Drew It" },
		"no party":       func(e *Entry) { e.Party = "" },
		"actor":          func(e *Entry) { e.Actor = "mpc\n" },
		"auth":           func(e *Entry) { e.Auth = "by \"name\"" },
		"long tenant":    func(e *Entry) { e.Tenant = strings.Repeat("t", maxName+1) },
		"empty object":   func(e *Entry) { e.Objects = []string{""} },
		"many objects":   func(e *Entry) { e.Objects = slices.Repeat([]string{"o"}, maxObjects+1) },
		"many ranges":    func(e *Entry) { e.Ranges = slices.Repeat([]Range{{"o", 0, 1}}, maxRanges+1) },
		"empty range":    func(e *Entry) { e.Ranges = []Range{{"o", 5, 0}} },
		"range too far":  func(e *Entry) { e.Ranges = []Range{{"o", math.MaxUint64, 1}} },
		"long note":      func(e *Entry) { e.Note = strings.Repeat("n", maxNote+1) },
		"note of lines":  func(e *Entry) { e.Note = "a\nb" },
		"note of bytes":  func(e *Entry) { e.Note = "a\xffb" },
		"note of escape": func(e *Entry) { e.Note = "\x1b[2J" },
	} {
		e := full()
		set(&e)
		if e.validate() == nil {
			t.Errorf("%s was taken", what)
		}
	}
	e := full()
	e.Objects, e.Ranges = slices.Repeat([]string{strings.Repeat("o", maxObject)}, maxObjects), nil
	for range maxRanges {
		e.Ranges = append(e.Ranges, Range{strings.Repeat("r", maxObject), math.MaxUint64 - 1e9, 1e9})
	}
	e.Note, e.Version, e.Seq, e.Time = strings.Repeat("\\", maxNote), version, math.MaxUint64, time.Now().UTC()
	if err := e.validate(); err != nil {
		t.Fatal(err)
	}
	line, err := seal(&e)
	if err != nil {
		t.Fatalf("the largest entry: %v", err)
	}
	if _, err := decode(line); err != nil {
		t.Errorf("the largest entry %v", err)
	}
}

func sealed(t testing.TB, change func(*Entry)) []byte {
	t.Helper()
	e := full()
	e.Version, e.Seq, e.Time = version, 1, time.Unix(1, 0).UTC()
	if change != nil {
		change(&e)
	}
	line, err := seal(&e)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// An entry has one encoding: another one is rejected even with a recomputed hash.
func TestOneEncoding(t *testing.T) {
	good := sealed(t, nil)
	if _, err := decode(good); err != nil {
		t.Fatal(err)
	}
	body := good[:bytes.LastIndex(good, []byte(`,"hash":`))]
	for what, change := range map[string][2]string{
		"space":          {`"seq":1`, `"seq": 1`},
		"unknown field":  {`"count":101`, `"count":101,"share":"8f"`},
		"order":          {`"v":1,"seq":1`, `"seq":1,"v":1`},
		"twice":          {`"seq":1`, `"seq":1,"seq":1`},
		"case":           {`"note"`, `"Note"`},
		"escape":         {`fünf`, `f\u00fcnf`},
		"no escape":      {`\u003c`, `<`},
		"empty field":    {`"tenant":"demo"`, `"tenant":""`},
		"number":         {`"count":101`, `"count":101.0`},
		"negative":       {`"count":101`, `"count":-1`},
		"float":          {`"count":101`, `"count":1e2`},
		"time zone":      {`00:00:01Z`, `01:00:01+01:00`},
		"no seq":         {`"seq":1`, `"seq":0`},
		"another v":      {`"v":1`, `"v":2`},
		"null":           {`"objects":[`, `"objects":null,"x":[`},
		"capital digits": {`"prev":"0`, `"prev":"A`},
		"short hash":     {`"prev":"0`, `"prev":"`},
		"array":          {`{"v"`, `[{"v"`},
	} {
		if !bytes.Contains(body, []byte(change[0])) {
			t.Errorf("%s does not apply", what)
		}
		b := bytes.Replace(body, []byte(change[0]), []byte(change[1]), 1)
		line := fmt.Appendf(nil, `%s,"hash":"%x"}`, b, sha256.Sum256(b))
		if e, err := decode(line); err == nil {
			t.Errorf("%s: %+v", what, e)
		}
	}
	for _, line := range [][]byte{nil, []byte("null"), []byte("{}"), append(good, ' '), append(good, good...), good[:len(good)-1]} {
		if _, err := decode(line); err == nil {
			t.Errorf("%.300q was taken", line)
		}
	}
}

// Every line is either rejected or the canonical encoding of its entry with valid links.
func FuzzLine(f *testing.F) {
	f.Add(sealed(f, nil))
	f.Add(sealed(f, func(e *Entry) { *e = Entry{Version: version, Seq: 1, Party: "p", Event: "e"} }))
	f.Add([]byte(`{"v":1,"seq":1,"time":"2026-03-04T05:06:07Z"}`))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, linked := parse(b)
		e, err := decode(b)
		if err != nil {
			return
		}
		again, err := seal(&e)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%q is read and written as %q, %v", b, again, err)
		}
		if !linked || l.seq != e.Seq || l.prev != e.Prev || l.hash != e.Hash || sha256.Sum256(l.body) != e.Hash {
			t.Errorf("%q has other links than its entry: %+v", b, l)
		}
	})
}
