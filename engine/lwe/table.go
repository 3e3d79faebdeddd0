package lwe

import "fmt"

// Table is a function of a padded message, or of the sign of a phase, as the polynomial that blind
// rotation turns; [Evaluator.Lookup] applies one. It is immutable and may be shared.
type Table struct {
	s *Scheme
	v []uint64
}

// NewTable prepares a function from Z_p: the lookup of the padded message m returns outputs[m], in
// the given encoding. The error wraps [ErrMessage].
func (s *Scheme) NewTable(outputs []uint64, e Encoding) (*Table, error) {
	if uint64(len(outputs)) != s.P {
		return nil, fmt.Errorf("%w: a table of %d values, want %d", ErrMessage, len(outputs), s.P)
	}
	phases := make([]uint64, len(outputs))
	for m, out := range outputs {
		var err error
		if phases[m], err = s.Encode(out, e); err != nil {
			return nil, fmt.Errorf("value %d: %w", m, err)
		}
	}
	// Turned by a phase of j/2N of the circle, the constant coefficient is v_j for j < N and
	// -v_{j-N} beyond. The message of j is round(p j/N); from N - N/2p on it is that of -(N-j),
	// which is 0 less a little, and as the turn by j + N.
	t := &Table{s, make([]uint64, s.N())}
	width := s.N() / len(outputs)
	for j := range t.v {
		if m := (j + width/2) / width; m < len(phases) {
			t.v[j] = phases[m]
		} else {
			t.v[j] = s.mod.Neg(phases[0])
		}
	}
	return t, nil
}

// sign is the table of gates: Q/8 for phases in the upper half of the circle, -Q/8 for those in the
// lower half.
func (s *Scheme) sign() *Table {
	t := &Table{s, make([]uint64, s.N())}
	for j := range t.v {
		t.v[j] = s.eighth()
	}
	return t
}
