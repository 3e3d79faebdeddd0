package cli

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// CheckNewFile returns an error if the file exists.
func CheckNewFile(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return rpc.Errorf(rpc.Conflict, "name a new file", "%s exists", path)
	}
	return nil
}

// WriteNewFile creates a file with the data that write produces. It removes the file if write
// fails.
func WriteNewFile(path string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return CheckNewFile(path)
	}
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(write(w), w.Flush(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
