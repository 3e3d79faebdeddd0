package lwe

// KeySwitch gives tests the ciphertext under s that a bootstrap of c starts with.
func (e *Evaluator) KeySwitch(c *LWE) (a []uint64, b uint64) {
	w := []switched{e.s.newSwitched()}
	e.s.keySwitch(w, e.switches, []*LWE{c})
	return w[0].a, w[0].b
}

// KeySwitcher is a key switch of copies of c that allocates nothing, for benchmarks.
func (e *Evaluator) KeySwitcher(c *LWE, copies int) func() {
	var w []switched
	var from []*LWE
	for range copies {
		w, from = append(w, e.s.newSwitched()), append(from, c)
	}
	return func() { e.s.keySwitch(w, e.switches, from) }
}

// Exponent is the rounding of modulus switching.
func (s *Scheme) Exponent(x uint64) int {
	turn, _ := s.exponent(x)
	return turn
}

// RoundingError returns the error of this rounding, times Q.
func (s *Scheme) RoundingError(x uint64) int64 {
	_, d := s.exponent(x)
	return d
}

// Turns returns the result of modulus switching for a ciphertext under s.
func (s *Scheme) Turns(a []uint64, b uint64) (turns []int, turn int) {
	w := s.newSwitched()
	copy(w.a, a)
	w.b = b
	w.round(s)
	return w.turns, w.turn
}

// Signed is a digit of x in a gadget.
func (s *Scheme) Signed(rotation bool, j int, x uint64) int64 {
	d := &s.switches
	if rotation {
		d = &s.rotation
	}
	return d.signed(x, &d.at[j])
}

// Group is how many ciphertexts pass over the keys together.
const Group = group

// MinDeviation is the floor of the errors of a party.
const MinDeviation = minDeviation
