//go:build !purego

package kernel

// vectorJudge judges the first candidates and returns their number.
func (g *Gaussian) vectorJudge(z []int64, verdict []uint8, h, v, r, hi, lo []uint64) int {
	n := len(z) &^ 7
	if Selected() < IFMA || n == 0 {
		return 0
	}
	c := [6]uint64{g.Ratio[0], g.Ratio[1], g.Shift, 52 - g.Shift, g.Log, 1<<g.Log - 1}
	judgeIFMA(&z[0], &verdict[0], &h[0], &v[0], &r[0], &hi[0], &lo[0], n, &g.Table[0], len(g.Table), &c, &expFactors)
	return n
}
