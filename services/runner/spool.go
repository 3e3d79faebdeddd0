package runner

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// spool keeps copies of received messages on disk until the session ends, for
// rounds that want them again to find out who cheated. Frames are sealed under a
// key that exists in this process only, so what a crash leaves is unreadable;
// CleanSpool removes it at the next start.
type spool struct {
	parent string
	dir    string // made with the first frame
	aead   cipher.AEAD
	frames uint64 // sealed so far, over all files: the nonce
	files  map[spoolKey]*spooled
	buffer []byte // the last frame, sealed
}

type spoolKey struct {
	from round.Party
	name string
}

// spooled is one message's file.
type spooled struct {
	f      *os.File
	size   int64
	frames []sealed
}

type sealed struct {
	offset int64
	length int // of the ciphertext
	nonce  uint64
}

const spoolPrefix = "session-"

func newSpool(parent string) (*spool, error) {
	key := make([]byte, 32)
	rand.Read(key)
	defer clear(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &spool{parent: parent, aead: aead, files: map[spoolKey]*spooled{}}, nil
}

func spoolNonce(n uint64) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 4, 12), n)
}

// add appends a frame to a message's copy.
func (s *spool) add(from round.Party, name string, frame []byte) error {
	k := spoolKey{from, name}
	m := s.files[k]
	if m == nil {
		if s.dir == "" {
			dir, err := os.MkdirTemp(s.parent, spoolPrefix)
			if err != nil {
				return fmt.Errorf("runner: spool: %w", err)
			}
			s.dir = dir
		}
		f, err := os.CreateTemp(s.dir, "message-")
		if err != nil {
			return fmt.Errorf("runner: spool: %w", err)
		}
		m = &spooled{f: f}
		s.files[k] = m
	}
	s.buffer = s.aead.Seal(s.buffer[:0], spoolNonce(s.frames), frame, nil)
	c := s.buffer
	if _, err := m.f.WriteAt(c, m.size); err != nil {
		return fmt.Errorf("runner: spool: %w", err)
	}
	m.frames = append(m.frames, sealed{m.size, len(c), s.frames})
	m.size += int64(len(c))
	s.frames++
	return nil
}

// each gives the frames of a message's copy in order.
func (s *spool) each(from round.Party, name string, f func(index int, last bool, frame []byte) error) error {
	m := s.files[spoolKey{from, name}]
	if m == nil {
		return fmt.Errorf("runner: no spooled copy of %s of party %d", name, from)
	}
	for i, at := range m.frames {
		c := make([]byte, at.length)
		if _, err := m.f.ReadAt(c, at.offset); err != nil {
			return fmt.Errorf("runner: spool: %w", err)
		}
		frame, err := s.aead.Open(c[:0], spoolNonce(at.nonce), c, nil)
		if err != nil {
			return fmt.Errorf("runner: spool: %w", err)
		}
		if err := f(i, i == len(m.frames)-1, frame); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes everything.
func (s *spool) remove() {
	for _, m := range s.files {
		m.f.Close()
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// CleanSpool makes the directory if need be and removes what earlier processes
// left in it. Call it at start, before any session.
func CleanSpool(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("runner: spool: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("runner: spool: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), spoolPrefix) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("runner: spool: %w", err)
			}
		}
	}
	return nil
}
