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
		return Coin(s.ID, step, o.Payloads), nil
	}), nil
}

// Coin is what a toss gives whose parties have opened these seeds.
func Coin(session Digest, step string, seeds [][]byte) Digest {
	return Hash("lodge coin", append([][]byte{session[:], []byte(step)}, seeds...)...)
}
