package tuplefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Records accumulate, the last one can be removed, and a damaged file still says that shares may
// have been exported.
func TestExports(t *testing.T) {
	dir := t.TempDir()
	holds := func(want ...string) {
		t.Helper()
		list, err := Exports(dir)
		if err != nil || len(list) != len(want) {
			t.Fatalf("%v, %v, want %v", list, err, want)
		}
		for i, x := range list {
			if x.To != want[i] {
				t.Errorf("%s, want %s", x.To, want[i])
			}
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	holds()
	do(NoteExport(dir, "/a"))
	do(NoteExport(dir, "/b"))
	holds("/a", "/b")
	do(ForgetExport(dir))
	holds("/a")
	do(ForgetExport(dir))
	holds()
	if err := ForgetExport(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	path := filepath.Join(dir, ExportedName)
	for _, text := range []string{"", "[]", "{", `{"to": 1}`} {
		do(os.WriteFile(path, []byte(text), 0o600))
		holds("an unknown place")
	}
	if err := writeFirst(path, nil); !errors.Is(err, fs.ErrExist) { // another process's first record
		t.Error(err)
	}
	if err := NoteExport(filepath.Join(dir, "nowhere"), "/a"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
