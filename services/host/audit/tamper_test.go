package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// contents of a log: the lines of each file.
type contents map[int][]string

func readFiles(t *testing.T, dir string) contents {
	t.Helper()
	parts, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	fs := contents{}
	for _, s := range parts {
		b, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		fs[s.number] = slices.Collect(strings.Lines(string(b)))
	}
	return fs
}

func (fs contents) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for n, lines := range fs {
		if err := os.WriteFile(filepath.Join(dir, fileName(n)), []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// forge replaces entry i of a file, and recomputes the chain from there to the end.
func (fs contents) forge(t *testing.T, file, i int, change func(*Entry)) {
	t.Helper()
	var prev *Hash
	for ; len(fs[file]) > 0; file, i = file+1, 0 {
		for ; i < len(fs[file]); i++ {
			e, err := decode([]byte(strings.TrimSuffix(fs[file][i], "\n")))
			if err != nil {
				t.Fatal(err)
			}
			if prev == nil {
				change(&e)
			} else {
				e.Prev = *prev
			}
			line, err := seal(&e)
			if err != nil {
				t.Fatal(err)
			}
			fs[file][i], prev = string(line)+"\n", &e.Hash
		}
	}
}

// Verify and Open detect every kind of tampering and report the first bad line, with two
// exceptions: a truncated end and a recomputed chain. Detecting these needs a known hash.
func TestTampering(t *testing.T) {
	source := t.TempDir()
	head := write(t, source, 30, 4000)
	if n := len(readFiles(t, source)); n < 3 {
		t.Fatalf("%d files", n)
	}
	last := len(readFiles(t, source))
	for _, c := range []struct {
		name   string
		change func(fs contents)
		file   int
		line   int    // 0: of no line
		reason string // empty: only a known hash detects it
	}{
		{"edited", func(fs contents) { fs[1][2] = strings.Replace(fs[1][2], `"count":2`, `"count":3`, 1) }, 1, 3, "was changed"},
		{"edited in a later file", func(fs contents) { fs[2][1] = strings.Replace(fs[2][1], "mpc", "cpm", 1) }, 2, 2, "was changed"},
		{"last edited", func(fs contents) { fs[last][0] = strings.Replace(fs[last][0], "mpc", "cpm", 1) }, last, 1, "was changed"},
		{"edited and hashed", func(fs contents) {
			at, next := fs[1][2], fs[1][3]
			fs.forge(t, 1, 2, func(e *Entry) { e.Count = 3 })
			if fs[1][2] == at {
				t.Error("nothing was forged")
			}
			fs[1][3] = next
		}, 1, 4, "does not follow"},
		{"removed", func(fs contents) { fs[1] = slices.Delete(fs[1], 2, 3) }, 1, 3, "does not follow"},
		{"first removed", func(fs contents) { fs[1] = fs[1][1:] }, 1, 1, "does not follow"},
		{"last of a file removed", func(fs contents) { fs[1] = fs[1][:len(fs[1])-1] }, 2, 1, "does not follow"},
		{"swapped", func(fs contents) { fs[1][2], fs[1][3] = fs[1][3], fs[1][2] }, 1, 3, "does not follow"},
		{"twice", func(fs contents) { fs[1] = slices.Insert(fs[1], 2, fs[1][2]) }, 1, 4, "does not follow"},
		{"added", func(fs contents) { fs[1] = slices.Insert(fs[1], 2, string(sealed(t, nil))+"\n") }, 1, 3, "does not follow"},
		{"empty line", func(fs contents) { fs[1] = slices.Insert(fs[1], 2, "\n") }, 1, 3, "is not an entry"},
		{"other text", func(fs contents) { fs[1] = slices.Insert(fs[1], 2, "all is well\n") }, 1, 3, "is not an entry"},
		{"line end", func(fs contents) { fs[1][2] = strings.TrimSuffix(fs[1][2], "\n") + "\r\n" }, 1, 3, "is not an entry"},
		{"cut in the middle", func(fs contents) { fs[1][2] = fs[1][2][:50] + "\n" }, 1, 3, "is not an entry"},
		{"joined", func(fs contents) { fs[1][2] = strings.TrimSuffix(fs[1][2], "\n") }, 1, 3, "changed"},
		{"too long", func(fs contents) { fs[1][2] = strings.Repeat("x", maxLine+1) + "\n" }, 1, 3, "is too long"},
		{"too long, no end", func(fs contents) { fs[last] = append(fs[last], strings.Repeat("x", maxLine+10)) }, last, -1, "is too long"},
		{"cut at the end of a file", func(fs contents) { fs[1][len(fs[1])-1] = fs[1][len(fs[1])-1][:50] }, 1, -1, "is unfinished"},
		{"sequence number", func(fs contents) { fs.forge(t, 1, 3, func(e *Entry) { e.Seq = 40 }) }, 1, 4, "sequence number 40 after 3"},
		{"file removed", func(fs contents) { delete(fs, 2) }, 2, 0, "is missing"},
		{"first file removed", func(fs contents) { delete(fs, 1) }, 1, 0, "is missing"},
		{"files swapped", func(fs contents) { fs[1], fs[2] = fs[2], fs[1] }, 1, 1, "does not follow"},
		{"file emptied", func(fs contents) { fs[2] = nil }, 3, 1, "does not follow"},
		{"end cut off", func(fs contents) { fs[last] = fs[last][:len(fs[last])-1] }, 0, 0, ""},
		{"last file removed", func(fs contents) { delete(fs, last) }, 0, 0, ""},
		{"written anew", func(fs contents) { fs.forge(t, 1, 0, func(e *Entry) { e.Actor = "mallory" }) }, 0, 0, ""},
		{"end written anew", func(fs contents) { fs.forge(t, last, 0, func(e *Entry) { e.Actor = "mallory" }) }, 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := readFiles(t, source)
			before := fmt.Sprint(fs)
			c.change(fs)
			if fmt.Sprint(fs) == before {
				t.Fatal("nothing was changed")
			}
			if c.line < 0 {
				c.line = len(fs[c.file])
			}
			dir := fs.write(t)
			_, verr := Verify(dir)
			l, oerr := Open(dir, Options{Party: "alice"})
			if c.reason == "" {
				if verr != nil || oerr != nil {
					t.Fatalf("without a hash: %v, %v", verr, oerr)
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				if _, verr = Verify(dir, head.Hash); verr == nil {
					t.Error("Verify does not miss the head")
				}
				if _, oerr = Open(dir, Options{Party: "alice", Known: []Hash{head.Hash}}); oerr == nil {
					t.Error("Open does not miss the head")
				}
				return
			}
			for _, err := range []error{verr, oerr} {
				var broken *BrokenError
				if !errors.As(err, &broken) || broken.File != fileName(c.file) || broken.Line != c.line || !strings.Contains(broken.Reason, c.reason) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// Verify detects a line with a right hash and sequence number that seal would not write, although
// the chain has no fault.
func TestVerifyReadsEveryEntry(t *testing.T) {
	fs := contents{}
	bad := sealed(t, func(e *Entry) { e.Prev, e.Note = Hash{}, "line\nline" })
	fs[1] = []string{string(bad) + "\n"}
	_, err := Verify(fs.write(t))
	if err == nil || !strings.Contains(err.Error(), "line 1 is not an entry: a note is") {
		t.Errorf("got %v", err)
	}
}

// If a crash truncates the last line at any position, the log opens, loses only that line, and
// reports the loss.
func TestTornLine(t *testing.T) {
	source := t.TempDir()
	write(t, source, 3, 0)
	fs := readFiles(t, source)
	last := fs[1][2]
	for cut := 1; cut < len(last); cut += 1 + cut%7 {
		fs[1][2] = last[:cut]
		dir := fs.write(t)
		if _, err := Verify(dir); err == nil || !strings.Contains(err.Error(), "line 3 is unfinished") {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		l := open(t, dir, Options{})
		if l.Head().Seq != 3 {
			t.Fatalf("cut at %d: head %v", cut, l.Head())
		}
		if _, err := l.Append(Entry{Event: Reserved}); err != nil {
			t.Fatal(err)
		}
		page, err := l.Entries(3, 2)
		if err != nil || len(page) != 2 || page[0].Event != TornRepaired || page[0].Count != uint64(cut) || page[0].Actor != "" || page[1].Event != Reserved {
			t.Fatalf("cut at %d: %+v, %v", cut, page, err)
		}
		if !strings.Contains(page[0].Note, `{\"v\"`[:min(cut, 6)]) && cut > 1 {
			t.Errorf("note %q", page[0].Note)
		}
		if _, err := Verify(dir); err != nil {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	if err := os.WriteFile(filepath.Join(source, fileName(1)), bytes.Repeat([]byte{0}, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	if l := open(t, source, Options{}); l.Head().Seq != 1 {
		t.Errorf("zeros: head %v", l.Head())
	}
}

func TestNotALog(t *testing.T) {
	empty := t.TempDir()
	strange := t.TempDir()
	if err := os.WriteFile(filepath.Join(strange, "audit-1.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{empty: "holds no log", strange: "not the name", filepath.Join(empty, "none"): "no such file"} {
		if _, err := Verify(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Verify: %v, want %s", err, want)
		}
		if _, err := Tail(path, 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Tail: %v, want %s", err, want)
		}
	}
	if _, err := Open(strange, Options{Party: "alice"}); err == nil {
		t.Error("opened")
	}
}
