package runner

import (
	"bytes"
	"os"
	"testing"
)

// Spooled frames come back as they were, or not at all when the file has changed.
func FuzzSpool(f *testing.F) {
	f.Add([]byte("first"), []byte("second"), 0, byte(0))
	f.Add([]byte("first"), []byte{}, 3, byte(1))
	f.Add([]byte{}, []byte("second"), -1, byte(0))
	parent := f.TempDir()
	f.Fuzz(func(t *testing.T, a, b []byte, at int, flip byte) {
		s, err := newSpool(parent)
		if err != nil {
			t.Fatal(err)
		}
		defer s.remove()
		frames := [][]byte{a, b}
		for _, frame := range frames {
			if err := s.add(1, "x", frame); err != nil {
				t.Fatal(err)
			}
		}
		m := s.files[spoolKey{1, "x"}]
		changed := false
		if at < 0 {
			changed = true
			if err := os.Truncate(m.f.Name(), m.size-1); err != nil {
				t.Fatal(err)
			}
		} else if int64(at) < m.size {
			changed = flip != 0
			one := make([]byte, 1)
			if _, err := m.f.ReadAt(one, int64(at)); err != nil {
				t.Fatal(err)
			}
			one[0] ^= flip
			if _, err := m.f.WriteAt(one, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		count := 0
		err = s.each(1, "x", func(index int, last bool, frame []byte) error {
			if index != count || last != (index == 1) || !bytes.Equal(frame, frames[index]) {
				t.Errorf("frame %d: %x", index, frame)
			}
			count++
			return nil
		})
		if (err != nil) != changed || err == nil && count != 2 {
			t.Errorf("%d frames, %v", count, err)
		}
	})
}
