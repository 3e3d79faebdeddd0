// Package jsonfile reads and writes JSON in the clients' files: files of one JSON value, and files
// that begin with a line that names their format and a line of JSON.
package jsonfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Decode decodes one value without unknown members.
func Decode(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// Write writes an indented value and a line break. It returns the number of bytes written.
func Write(w io.Writer, v any) (int64, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return 0, err
	}
	n, err := w.Write(append(b, '\n'))
	return int64(n), err
}

// Header returns the two lines at the beginning of a file.
func Header(format string, v any) ([]byte, error) {
	line, err := json.Marshal(v)
	return fmt.Appendf(nil, "%s\n%s\n", format, line), err
}

// ReadHeader reads the output of Header, with a line of JSON of at most the given number of bytes.
// The JSON must be in the form that Header writes.
func ReadHeader(r *bufio.Reader, format string, most int, to any) error {
	line, err := readLines(r, format, most, to)
	if err != nil {
		return err
	}
	if again, err := json.Marshal(to); err != nil || !bytes.Equal(again, line) {
		return errors.New("its header is not in canonical form")
	}
	return nil
}

// ReadLooseHeader is ReadHeader for JSON in any form.
func ReadLooseHeader(r *bufio.Reader, format string, most int, to any) error {
	_, err := readLines(r, format, most, to)
	return err
}

func readLines(r *bufio.Reader, format string, most int, to any) ([]byte, error) {
	first, err := readLine(r, len(format))
	if err != nil {
		return nil, err
	}
	if string(first) != format {
		return nil, fmt.Errorf("it begins with %q", first)
	}
	line, err := readLine(r, most)
	if err != nil {
		return nil, err
	}
	return line, Decode(line, to)
}

// readLine reads a line of at most the given number of bytes.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var text []byte
	for len(text) <= most {
		x, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		if x == '\n' {
			return text, nil
		}
		text = append(text, x)
	}
	return nil, fmt.Errorf("a line of more than %d bytes", most)
}

// End returns an error unless the file ends here.
func End(r *bufio.Reader) error {
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("it has more bytes than its header states")
	}
	return nil
}
