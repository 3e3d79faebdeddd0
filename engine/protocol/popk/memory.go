package popk

import (
	"github.com/lodge-mpc/lodge/engine/params"
)

// MemoryBytes estimates the memory of a run at one party, in bytes. It counts the party's
// ciphertexts and the sums; for each other party its ciphertexts or their combinations, whichever
// are fewer; the witnesses and masks; and the working memory of each worker. The argument mac
// selects the proof of a MAC key.
func MemoryBytes(i *params.Instance, parties int, mac bool, workers int) int64 {
	c := Config{Instance: i, MACKey: mac}
	p, n := c.sizes(), i.Set.N()
	workers = min(workers, p.U+p.V)
	held := 2*p.U + (parties-1)*min(p.U, p.V) + perWorker*workers
	ciphertext := 2 * int64(n) * int64(len(i.Set.Q)) * 8
	return int64(held)*ciphertext + int64(p.U+p.V+perWorker*workers)*responseBytes(n, p) + int64(p.V)*int64(responseSize(n, p))
}

// perWorker is roughly the number of ciphertexts, and of responses, that fit the working memory of
// one worker: one result of each kind and the intermediate values.
const perWorker = 4

// responseBytes returns the memory of a witness, mask or response in bytes.
func responseBytes(n int, p params.Proof) int64 {
	z, t := responseWords(p)
	return int64(n) * int64(z+3*t) * 8
}
