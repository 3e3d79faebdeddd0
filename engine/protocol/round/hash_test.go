package round

import "testing"

// HashEach equals Hash over the same fields.
func TestHashEach(t *testing.T) {
	fields := [][]byte{[]byte("one"), {}, []byte("three, longer than those before"), {4}}
	for range 2 { // the second call reuses a buffer
		for n := range len(fields) + 1 {
			got := HashEach("tag", n, func(room []byte, i int) []byte {
				if len(room) != 0 {
					t.Errorf("field %d begins behind another", i)
				}
				return append(room, fields[i]...)
			})
			if want := Hash("tag", fields[:n]...); got != want {
				t.Errorf("%d fields: another hash", n)
			}
		}
	}
}
