package cli

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// CheckNewFile returns an error if the file exists. An empty path is standard output.
func CheckNewFile(path string) error {
	if _, err := os.Lstat(path); path != "" && err == nil {
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

// SaveStream creates a file with the chunks of a stream, of which first is already received.
func SaveStream[R interface{ GetChunk() []byte }](path string, first R, receive func() (R, error)) error {
	return WriteNewFile(path, 0o644, func(w io.Writer) error {
		for r := first; ; {
			_, err := w.Write(r.GetChunk())
			if err == nil {
				r, err = receive()
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
