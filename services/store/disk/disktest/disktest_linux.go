// Package disktest gives tests file systems that are small enough to be filled.
package disktest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Mount mounts a file system of a size such as "4m" until the test ends. It skips the test where
// the user may not mount one, and fails it if that user is root in CI.
func Mount(t testing.TB, size string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=700"); err != nil {
		if os.Getuid() == 0 && os.Getenv("CI") != "" {
			t.Fatalf("root in CI cannot mount a tmpfs: %v", err)
		}
		t.Skipf("a tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Fill takes all space of a file system except free bytes, until the caller calls empty.
func Fill(t testing.TB, dir string, free int64) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, piece := range [][]byte{make([]byte, 1<<20), make([]byte, 4<<10)} {
		for err = nil; err == nil; {
			_, err = f.Write(piece)
		}
	}
	size, err := f.Seek(0, 1)
	if err == nil {
		err = f.Truncate(size - free)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Move moves a file to another directory and leaves a symbolic link. A full disk there then fails
// writes to the file, although the file system of its old directory has space.
func Move(t testing.TB, path, dir string) {
	t.Helper()
	to := filepath.Join(dir, filepath.Base(path))
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err == nil {
		err = os.Symlink(to, path)
	}
	if err != nil {
		t.Fatal(err)
	}
}
