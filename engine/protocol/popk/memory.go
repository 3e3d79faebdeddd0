package popk

import (
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// MemoryBytes estimates what a run holds at one party, in bytes: ciphertexts, those of all parties where each proof is
// checked by itself; the packed copies that it sends; and witnesses and masks. mac selects the proof of a MAC key.
func MemoryBytes(i *params.Instance, parties int, mac bool) int64 {
	c := Config{Instance: i, MACKey: mac, Session: round.Session{Parties: parties}}
	p, n := c.sizes(), i.Set.N()
	held, sent := p.U+p.V, p.U+p.V
	if c.separate() {
		held, sent = p.U*parties, p.U
	}
	ciphertext, packed := 2*int64(n)*int64(len(i.Set.Q))*8, 2*int64(codec.PolySize(n, i.Set.Q))
	return int64(held)*ciphertext + int64(sent)*packed + int64(p.U+p.V)*responseBytes(n, p) + int64(p.V)*int64(responseSize(n, p))
}

// responseBytes is what a witness, mask or response takes in memory.
func responseBytes(n int, p params.Proof) int64 {
	z, t := responseWords(p)
	return int64(n) * int64(z+3*t) * 8
}
