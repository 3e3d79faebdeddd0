package secretfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestExposed(t *testing.T) {
	for _, c := range []struct {
		mode      fs.FileMode
		root, yes bool
	}{
		{0o600, false, false}, {0o400, false, false}, {0o440, false, true}, {0o604, false, true}, {0o620, false, true},
		{0o600, true, false}, {0o440, true, false}, {0o640, true, false}, {0o660, true, true}, {0o444, true, true}, {0o450, true, true},
	} {
		if exposed(c.mode, c.root) != c.yes {
			t.Errorf("%04o, root's: %v", c.mode, c.root)
		}
	}
	path := filepath.Join(t.TempDir(), "key")
	for _, mode := range []fs.FileMode{0o600, 0o640} { // a file of this process: group access is not allowed
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if Exposed(info) != (mode == 0o640) {
			t.Errorf("%04o", mode)
		}
	}
}
