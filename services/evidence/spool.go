package evidence

import (
	"errors"
	"os"
)

// spool is a file without a name that frames are put into one after another. It is made when the first comes, and is gone
// with the process.
type spool struct {
	dir  string
	file *os.File
	size int64
	err  error // of a write, after which nothing more is kept
}

// place is where bytes are in a spool.
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
		s.reset() // a full disk has other uses for the room
		return place{}, s.err
	}
	p := place{s, s.size, len(b)}
	s.size += int64(len(b))
	return p, nil
}

// unnamed makes a file that is gone when it is closed.
func unnamed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "evidence-*") // of mode 0600
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

// reset forgets everything.
func (s *spool) reset() {
	if s.size = 0; s.file != nil {
		_ = s.file.Truncate(0) // what is left is overwritten, or gone with the file
	}
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}
