package spans

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// ErrMalformed is the error for a record that does not encode a set.
var ErrMalformed = errors.New("spans: malformed record")

// A set is recorded in base64 as pairs of varints: the gap before a span and its length. The format
// is compact because every update of a batch rewrites the record, and a batch may have a hundred
// thousand spans.

// MarshalJSON encodes a set.
func (s Set) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 4*len(s))
	end := uint64(0)
	for _, x := range s {
		b = binary.AppendUvarint(binary.AppendUvarint(b, x.First-end), x.Count)
		end = x.End()
	}
	out := append(make([]byte, 0, 2+base64.RawStdEncoding.EncodedLen(len(b))), '"')
	return append(base64.RawStdEncoding.AppendEncode(out, b), '"'), nil
}

// UnmarshalJSON accepts exactly the output of MarshalJSON.
func (s *Set) UnmarshalJSON(text []byte) error {
	var encoded string
	if err := json.Unmarshal(text, &encoded); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	b, err := base64.RawStdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	*s = make(Set, 0, len(b)/2)
	for end := uint64(0); len(b) > 0; {
		gap, n := canonicalUvarint(b)
		b = b[n:]
		count, m := canonicalUvarint(b)
		b = b[m:]
		if n == 0 || m == 0 || gap == 0 && len(*s) > 0 || count == 0 || gap > math.MaxUint64-end || count > math.MaxUint64-end-gap {
			return fmt.Errorf("%w: out of order", ErrMalformed)
		}
		*s = append(*s, Span{end + gap, count})
		end += gap + count
	}
	return nil
}

// canonicalUvarint reads a number in its shortest encoding; n is 0 on error.
func canonicalUvarint(b []byte) (x uint64, n int) {
	if x, n = binary.Uvarint(b); n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, 0
	}
	return x, n
}
