package round

import "io"

// CoinToss gives all parties the same 32 uniform public bytes, which nobody could choose while one party
// is honest: everyone commits to a seed and opens it, and the coin is the hash of all seeds. (A party
// that does not like what it alone sees first can end the session.)
func CoinToss(s Session, step string, random io.Reader) (Transition[Digest], error) {
	seed, err := newNonce(random)
	if err != nil {
		return Transition[Digest]{}, err
	}
	t, err := CommitOpen(s, step, random, seed, len(seed))
	if err != nil {
		return Transition[Digest]{}, err
	}
	return Map(t, func(o Opened) (Digest, error) {
		fields := append([][]byte{s.ID[:], []byte(step)}, o.Payloads...)
		return Hash("lodge coin", fields...), nil
	}), nil
}
