package popk

import (
	"github.com/lodge-mpc/lodge/engine/params"
)

// MemoryBytes estimates what a run holds at one party, in bytes: its own ciphertexts and the sums; of each other party its
// ciphertexts or their combinations, whichever are fewer; witnesses and masks; and what each worker encrypts and checks
// with. mac selects the proof of a MAC key.
func MemoryBytes(i *params.Instance, parties int, mac bool, workers int) int64 {
	c := Config{Instance: i, MACKey: mac}
	p, n := c.sizes(), i.Set.N()
	workers = min(workers, p.U+p.V)
	held := 2*p.U + (parties-1)*min(p.U, p.V) + perWorker*workers
	ciphertext := 2 * int64(n) * int64(len(i.Set.Q)) * 8
	return int64(held)*ciphertext + int64(p.U+p.V+perWorker*workers)*responseBytes(n, p) + int64(p.V)*int64(responseSize(n, p))
}

// perWorker is about how many ciphertexts, and as many responses, a worker needs at a time: a ciphertext and the
// polynomials that it is computed with; a response, and what it is sampled with.
const perWorker = 4

// responseBytes is what a witness, mask or response takes in memory.
func responseBytes(n int, p params.Proof) int64 {
	z, t := responseWords(p)
	return int64(n) * int64(z+3*t) * 8
}
