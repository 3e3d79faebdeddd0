package round

import "io"

// CoinToss gives all parties the same 32 uniform public bytes, which no coalition can choose if at
// least one party is honest. Every party commits to a seed and opens it; the coin is the hash of
// all seeds. (A party that learns the coin first can still end the session if it dislikes the
// coin.)
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

// Coin returns the result of a coin toss in which the parties opened these seeds.
func Coin(session Digest, step string, seeds [][]byte) Digest {
	//lodge:check round/coin/session [drop=session[:]] [run=@binding] a coin of one session can be
	//  replayed in another
	//lodge:check round/coin/step [drop=[]byte(step)] [run=@binding] two steps of a session toss the
	//  same coin
	//lodge:check round/coin/seeds [swap=seeds=>seeds[:1]] [run=TestCoin|TestRushing] a coin depends
	//  on the seed of one party only
	return Hash("lodge coin", append([][]byte{session[:], []byte(step)}, seeds...)...)
}
