package evidence

import (
	"errors"
	"os"
)

// spool is an unnamed file to which frames are appended. It is created with the first frame and
// disappears with the process.
type spool struct {
	dir  string
	file *os.File
	size int64
	err  error // error of a write, after which nothing more is kept
}

// place is the position of bytes in a spool.
type place struct {
	of   *spool
	at   int64
	size int
}

var errNoPlace = errors.New("evidence: no directory for large messages")

func (s *spool) add(b []byte) (place, error) {
	if s.err == nil && s.file == nil {
		if s.dir == "" {
			s.err = errNoPlace
		} else {
			s.file, s.err = unnamed(s.dir)
		}
	}
	if s.err != nil {
		return place{}, s.err
	}
	if _, s.err = s.file.WriteAt(b, s.size); s.err != nil {
		s.reset() // frees the space on a full disk
		return place{}, s.err
	}
	p := place{s, s.size, len(b)}
	s.size += int64(len(b))
	return p, nil
}

// unnamed creates a file that disappears when it is closed.
func unnamed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "evidence-*") // with mode 0600
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (p place) read() ([]byte, error) {
	if p.of.err != nil {
		return nil, p.of.err
	}
	b := make([]byte, p.size)
	_, err := p.of.file.ReadAt(b, p.at)
	return b, err
}

// reset discards all frames.
func (s *spool) reset() {
	if s.size = 0; s.file != nil {
		_ = s.file.Truncate(0) // remaining bytes are overwritten, or disappear with the file
	}
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}
