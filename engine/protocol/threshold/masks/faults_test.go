package masks

import (
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

var exact = exactKind(10, 6)

func TestMalformedMessagesAreBlamed(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to round.Party
	}{
		{"test/offer", 2, 0}, {"test/reply", 0, 2}, {"test/extension", 2, 1}, {"test/correction", 0, 1},
		{"test/correction", 1, 2},
	} {
		short := roundtest.Link(c.from, c.to, c.name, roundtest.Truncate(1))
		lockstep(3, exact, 50, 10, short).Blamed(t, c.from, round.CheckShape)
		long := roundtest.Link(c.from, c.to, c.name, roundtest.Extend(1))
		lockstep(3, exact, 50, 10, long).Blamed(t, c.from, round.CheckSize)
	}
	lockstep(3, exact, 50, 10, roundtest.Rewrite(1, "test/opened", roundtest.Truncate(1))).Blamed(t, 1, round.CheckShape)
	lockstep(3, exact, 50, 10, roundtest.Rewrite(1, "test/opened", roundtest.Extend(1))).Blamed(t, 1, round.CheckSize)
	notOnCurve := append([]byte{2}, make([]byte, 31)...)
	lockstep(3, exact, 50, 0, roundtest.Link(1, 0, "test/offer", roundtest.Payload(notOnCurve))).
		Blamed(t, 1, round.CheckShape)
	lockstep(3, exact, 50, 0, roundtest.Link(1, 2, "test/reply", func(_ *roundtest.View, f [][]byte) [][]byte {
		copy(f[0][64:], notOnCurve)
		return f
	})).Blamed(t, 1, round.CheckShape)
	lockstep(3, exact, 50, 0, roundtest.Link(1, 0, "test/offer", roundtest.Drop)).Stalls(t, 1, "test/offer")
	lockstep(2, exact, 50, 0, roundtest.Link(1, 0, "test/extension", roundtest.ExtraFrame(nil))).
		Blamed(t, 1, round.CheckShape)
	long := paperKind(53, 49)
	lockstep(2, long, 1000, 0, roundtest.Link(1, 0, "test/extension", func(_ *roundtest.View, f [][]byte) [][]byte {
		return f[:len(f)-1]
	})).Blamed(t, 1, round.CheckShape)
}

// Any change in an extension is detected before anything depends on the extension.
func TestExtensionsAreChecked(t *testing.T) {
	for _, bit := range []int{0, 99999, -1, -2000} {
		lockstep(3, exact, 50, 0, roundtest.Link(2, 0, "test/extension", roundtest.Flip(bit))).Blamed(t, 2, CheckConsistency)
	}
	recorded := lockstep(2, exact, 50, 0, roundtest.Record())
	replay := roundtest.Replay(recorded.Recording, 1, 0, "test/extension")
	lockstep(2, exact, 50, 0, roundtest.ID(round.Hash("later")), roundtest.Link(1, 0, "test/extension", replay)).
		Blamed(t, 1, CheckConsistency)
}

// A party makes wrong records if its transfers use other bits than its records, or if it sends
// wrong corrections. Here all records except one in 16 are good. Opening enough of them detects the
// cheating, and opening none does not.
func TestWrongRecordsAreOpened(t *testing.T) {
	const wrong = 0x0001000100010001
	cheats := map[string]byzantine.Hooks{
		"choices of a bit of rho": byzantine.On(byzantine.New(), "test/choices", func(x words) {
			for i := range x[:8] {
				x[i] ^= wrong
			}
		}),
		"choices of the last triple": byzantine.On(byzantine.New(), "test/choices", func(x words) {
			for i := range x[len(x)-8:] {
				x[len(x)-8+i] ^= wrong
			}
		}),
	}
	for name, h := range cheats {
		t.Run(name, func(t *testing.T) {
			lockstep(2, exact, 256, 256, roundtest.Cheat(1, h)).Aborted(t, 1, CheckMask)
			lockstep(3, exact, 256, 256, roundtest.Cheat(2, h)).Aborted(t, 2, CheckMask)
			unseen := lockstep(2, exact, 512, 0, roundtest.Cheat(1, h)).OK(t)
			if good(t, unseen.Results) {
				t.Error("all records are right: the cheat has no effect")
			}
		})
	}
	for name, k := range map[string]Kind{"exact": exact, "paper": paperKind(53, 49)} {
		for where, at := range map[string]int{"first": 0, "last": -1} {
			t.Run(name+", corrections, "+where, func(t *testing.T) {
				h := byzantine.On(byzantine.New(), "test/correction", func(m *[]byte) {
					if at < 0 {
						at = len(*m) - 64 // the last plane, of 512 records
						if k.Form == Paper {
							at = len(*m) - 100
						}
					}
					for i := range 64 {
						(*m)[at+i] ^= 0x11
					}
				})
				lockstep(3, k, 256, 256, roundtest.Cheat(1, h)).Aborted(t, 1, CheckMask)
			})
		}
	}
}

func good(t *testing.T, batches []*Batch) bool {
	t.Helper()
	values := spent(t, batches)
	for i := range values[0].R {
		rho := total(values, 1<<10, i, func(v *Values) []uint64 { return v.R })
		for b := range 6 {
			if parity(values, i, func(v *Values) []uint64 { return v.Bits[b] }) != rho>>b&1 {
				return false
			}
		}
		for j := range 2 {
			x := [3]uint64{}
			for c := range x {
				x[c] = parity(values, i, func(v *Values) []uint64 { return v.Triples[j][c] })
			}
			if x[2] != x[0]&x[1] {
				return false
			}
		}
	}
	return true
}

// A party that opens other values than it holds ends the run.
func TestFalseOpening(t *testing.T) {
	for _, k := range []Kind{exact, paperKind(53, 49), OddKind(65537, 3)} {
		for _, bit := range []int{0, 9, k.recordBits() - 1, 8 * k.RecordSize(), 8*k.RecordSize() + k.planes() - 1} {
			lockstep(3, k, 10, 3, roundtest.Rewrite(1, "test/opened", roundtest.Flip(bit))).Aborted(t, 1, CheckMask)
		}
	}
}

// Corrections modulo an odd number that are not residues are rejected.
func TestCorrectionsAreResidues(t *testing.T) {
	k := OddKind(257, 2) // corrections are modulo 257 for the second bit and d, 514 for the first
	for _, at := range []int{0, 64*10/8 + 3, (64*10+64*9)/8 + 5} {
		h := byzantine.On(byzantine.New(), "test/correction", func(m *[]byte) {
			(*m)[at], (*m)[at+1], (*m)[at+2] = 0xff, 0xff, 0xff
		})
		lockstep(2, k, 50, 10, roundtest.Cheat(0, h)).Blamed(t, 0, round.CheckShape)
	}
}

func TestChoicesAreErased(t *testing.T) {
	var kept []uint64
	h := byzantine.On(byzantine.New(), "test/choices", func(x words) { kept = x })
	out := lockstep(2, exact, 100, 10, roundtest.Watch(1, h)).OK(t)
	if len(kept) == 0 || slices.Max(kept) != 0 {
		t.Error("the choices were not erased")
	}
	if out.Results[0].Count() != 100 {
		t.Error("the result was erased")
	}
}
