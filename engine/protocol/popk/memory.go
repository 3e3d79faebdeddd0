package popk

import (
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/params"
)

// MemoryBytes estimates what a run holds at one party, in bytes: the sums, which begin as its own ciphertexts; of each other
// party its ciphertexts or their combinations, whichever are fewer; the packed copies that it sends; and witnesses and
// masks. mac selects the proof of a MAC key.
func MemoryBytes(i *params.Instance, parties int, mac bool) int64 {
	c := Config{Instance: i, MACKey: mac}
	p, n := c.sizes(), i.Set.N()
	held := p.U + (parties-1)*min(p.U, p.V)
	ciphertext, packed := 2*int64(n)*int64(len(i.Set.Q))*8, 2*int64(codec.PolySize(n, i.Set.Q))
	return int64(held)*ciphertext + int64(p.U)*packed + int64(p.U+p.V)*responseBytes(n, p) + int64(p.V)*int64(responseSize(n, p))
}

// responseBytes is what a witness, mask or response takes in memory.
func responseBytes(n int, p params.Proof) int64 {
	z, t := responseWords(p)
	return int64(n) * int64(z+3*t) * 8
}
