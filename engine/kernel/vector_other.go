//go:build !amd64 || purego

package kernel

func (m *Modulus) vectorMatMul(dst []uint64, a left, b []uint64, k, n int) bool { return false }

func (t *NTT) vectorForward(dst, src []uint64) bool { return false }

func (t *NTT) vectorInverse(dst, src []uint64) bool { return false }

func (m *Modulus) vectorAdd(dst, a, b []uint64) int { return 0 }

func (m *Modulus) vectorSub(dst, a, b []uint64) int { return 0 }

func (m *Modulus) vectorNeg(dst, a []uint64) int { return 0 }

func (m *Modulus) vectorSigned(dst, a []uint64) int { return 0 }

func (m *Modulus) vectorDigit(dst, a []uint64, d *Digit) int { return 0 }

func (m *Modulus) vectorScale(dst, a []uint64, f Factor, words bool) int { return 0 }

func (m *Modulus) vectorMul(dst, a, b []uint64) int { return 0 }

func (m *Modulus) vectorMulAdd(dst, a, b []uint64) int { return 0 }

func (m *Modulus) vectorInner(a, b []uint64) (sum uint64, n int, residues bool) { return 0, 0, true }

func (m *Modulus) vectorMulSum(dst, a, b, c, d []uint64) bool { return false }

func vectorAddMultiples(dst []uint64, a, b, c, d []uint64, f *[4]uint64) int { return 0 }

func vectorRoundFractions(v []uint8, y []uint64, stride int, f []Fraction) int { return 0 }

func (s *Sum) vectorApply(dst, y []uint64, stride int, v []uint8) int { return 0 }

func (*Shear) vectorDown(_ [][]uint64, _ int, _ [][]uint64, _ int) bool { return false }

func (*Shear) vectorUp(_ [][]uint64, _ int, _ [][]uint64, _ int) bool { return false }

func vectorMontgomery(t, a, b, mod []uint64, n0 uint64) bool { return false }

func (b *WideBuffer) load(_, _ []uint64, _ []wideStep) {}

func (b *WideBuffer) spread(_ []uint64) {}

func (b *WideBuffer) multiply(_ []uint64) {}

func (b *WideBuffer) digits(_ *WideRadix, _ []uint64) {}

func (g *Gaussian) vectorJudge(_ []int64, _ []uint8, _, _, _, _, _ []uint64) int { return 0 }

func vectorPack(_ []byte, _ []uint64, _ int) int { return 0 }

func vectorUnpack(_ []uint64, _ []byte, _ int) int { return 0 }
