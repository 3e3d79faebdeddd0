package lwekeys

import "github.com/lodge-mpc/lodge/engine/lwe"

// MemoryBytes estimates the memory of a run at one party, in bytes: its shares of the keys' rows,
// the keys, its errors, the shares that all its senders except one sent it as king, and the pairs,
// products and bits. It doubles this sum to account for garbage that has not been collected yet.
func MemoryBytes(s *lwe.Scheme, parties, threshold int) (int64, error) {
	c := &Config{Scheme: s, Threshold: threshold}
	c.Session.Parties = parties
	p, err := newPlan(c)
	if err != nil {
		return 0, err
	}
	kept := func(rows, degree int) int { return rows * (degree - 1) / parties } // as king
	extracted := (parties - threshold) * (p.dealt[random] + 2*p.dealt[pair])
	products := 2*(p.bits+p.dim) + kept(p.bits+p.dim, 2*threshold)
	keys := 2*p.keys + kept(p.keys, threshold)
	return 2*8*int64(extracted+products+keys)*int64(p.width) + int64(p.keys)*int64(p.width), nil
}
