package params

import "math/big"

// The noise model bounds phase errors: a ciphertext (c0, c1) of the message mu has c0+c1*s =
// (q/P)*mu + error mod q. Bounds are of the canonical norm (largest complex embedding) unless they
// say coefficients. The witnesses of a PoPK, which a peer may choose, enter with the proved bound;
// honest randomness enters with six standard deviations. The relative noise of the paper is (b+1)/q
// times the phase error.

// A Term is one bound of the noise model.
type Term struct {
	Name    string
	Meaning string
	Bound   *big.Int // rounded up
	Log2    float64
}

// keyBounds holds bounds of the joint key of n parties.
type keyBounds struct {
	s   fixed // |s|, and |u| of the relinearisation key
	rms fixed // ||s||_2
	e   fixed // |e| of the public and rotation keys
	erl fixed // error of the relinearisation key: s*e0 + u*e1 + e2 + e3
}

// honestKeys bounds keys made by honest parties: sums of n shares of the set's distributions.
func honestKeys(s *Set, parties int) keyBounds {
	nN := parties * s.N()
	variance := func(w float64) fixed { return fixedWidth(w).times(fixedWidth(w)).overPi().over(big.NewInt(2)) }
	secret := ratio(2, 3)
	if s.Secret == Gaussian {
		secret = variance(s.SecretWidth)
	}
	std := secret.timesInt(nN).sqrt()
	k := keyBounds{
		s:   std.times(ratio(61, 10)),
		rms: std,
		e:   variance(s.ErrorWidth).timesInt(nN).sqrt().timesInt(6),
	}
	k.erl = k.s.times(k.e).timesInt(2).plus(k.e, k.e)
	return k
}

// provedKeys bounds keys whose shares were proved with the given number of monomial challenges (a
// power of two). They are twice the sum of the shares, of which responses bound each: 2s is
// 2(z-z')/(w-w') for two responses to challenges w and w'. The relinearisation key is four times
// that of the shares, with an error of s*e0 + u*e1 + 2*e2 in doubled secrets and errors.
func provedKeys(s *Set, parties, challenges int) keyBounds {
	secret := inverseGap(challenges).times(keyResponse(s, challenges)).timesInt(2 * parties)
	k := keyBounds{s: secret, rms: secret, e: secret}
	k.erl = k.s.times(k.e).timesInt(2).plus(k.e, k.e)
	return k
}

// A noise holds the model's terms for one use.
type noise struct {
	deltaMu fixed // |e_rd|*|2mu|: the rounding of Delta = round(q/P) times the message
	rKey    fixed // |2r|*(|e|+1+|s|): encryption randomness times public key
	fresh   fixed // a proved ciphertext, the sum of the two above
	alpha   fixed // the MAC key's ciphertext

	wrap      fixed // |(c0+c1*s)/q| of any ciphertext
	wrapCoeff fixed // the same for a bound on coefficients only

	tensor   fixed // inner products of fresh pairs, before key switching
	ksMatMul fixed // key switching after MatMul: rotation, rotation times s, relinearisation
	ksRelin  fixed // relinearisation alone
	ksRotate fixed // one rotation
	rounding fixed // rounding of a product to multiples of Q'
	product  fixed // ct_c: sum of the terms above

	macAlphaA fixed // coefficients of ct_{alpha a} and ct_{alpha b}
	macAlphaC fixed // coefficients of ct_{alpha c}: the largest error that is decrypted
	switching fixed // coefficients of the rounding of the switch to q'
	need      fixed // the least q that decrypts macAlphaC with flooding
}

// newNoise evaluates the model. d*(b+1) counts Inner products; all blocks that one output
// accumulates count.
func newNoise(s *Set, f FieldSpec, u Use, popk, mac Proof, k keyBounds) noise {
	var (
		bPlus1   = fixedInt(new(big.Int).Add(f.B, one))
		sqrtN    = fixedOf(s.N()).sqrt()
		uniform6 = ratio(1, 12).sqrt().timesInt(6) // six deviations of one coefficient uniform in [-1/2, 1/2]
		onePlusS = fixedOf(1).plus(k.s)
		v        noise
	)
	fresh := func(p Proof) (deltaMu, rKey fixed) {
		mu2, r2 := p.extracted(s, f, u.Parties)
		// e_rd = q/P - Delta has M coefficients of at most 1/2.
		return mu2.timesInt(f.M).over(big.NewInt(2)), r2.times(k.e.plus(onePlusS))
	}
	v.deltaMu, v.rKey = fresh(popk)
	v.fresh = v.deltaMu.plus(v.rKey)
	alphaMu, alphaR := fresh(mac)
	v.alpha = larger(alphaMu.plus(alphaR), v.fresh)

	// A product of two Gaussians has heavy tails, so |s| multiplies the six deviations of c1.
	v.wrap = uniform6.times(sqrtN, onePlusS)
	v.wrapCoeff = uniform6.times(fixedOf(1).plus(k.rms))

	digit := fixedOf(s.N()*s.Digits()).sqrt().times(uniform6, fixedInt(s.digitBound()))
	v.ksRotate = digit.times(k.e)
	v.ksRelin = digit.times(k.erl)
	v.ksMatMul = digit.times(k.e.plus(k.e.times(k.s), k.erl))
	// A product rounds its left operand to multiples of 1/Q', which the right one multiplies, and
	// then its three parts.
	v.rounding = bPlus1.times(v.wrap.times(v.wrap).plus(uniform6.times(sqrtN, onePlusS, onePlusS)))
	v.tensor = bPlus1.times(v.wrap, v.fresh).timesInt(2 * u.Inner)
	v.product = v.tensor.plus(v.ksMatMul, v.rounding)

	last := func(errors fixed) fixed { // product by ct_alpha, coefficients; errors are those of wraps times factors
		ks := fixed{divUp(new(big.Int).Lsh(v.ksRelin.v, fracBits), sqrtFloor(s.N()))}
		round := v.wrap.times(v.wrapCoeff).plus(uniform6.times(onePlusS, onePlusS))
		return bPlus1.times(errors.plus(round)).plus(ks)
	}
	// Coefficients are small where the wrap of one factor is random after the error of the other is
	// fixed. That is so for all but alpha*a and alpha*b: ct_alpha is public before a and b are
	// chosen, and parties that collude know all of the key but one share, so that their errors may
	// be in phase with its wrap.
	v.macAlphaA = last(v.wrapCoeff.times(v.alpha).plus(v.wrap.times(v.fresh)))
	v.macAlphaC = last(v.wrapCoeff.times(v.alpha.plus(v.product)))
	v.switching = v.wrapCoeff
	floods := fixedOf(1).plus(fixedOf(u.Parties).shift(s.LambdaDDec))
	v.need = bPlus1.times(v.macAlphaC, floods, ratio(101, 100)).timesInt(2)
	return v
}

// digitBound is the largest product of the primes of one key-switching digit.
func (s *Set) digitBound() *big.Int {
	top := new(big.Int)
	for i := 0; i < len(s.Q); i += s.DigitPrimes {
		if p := product(s.Q[i:min(i+s.DigitPrimes, len(s.Q))]); p.Cmp(top) > 0 {
			top = p
		}
	}
	return top
}

// sqrtFloor is floor(sqrt(n) * 2^fracBits).
func sqrtFloor(n int) *big.Int {
	x := big.NewInt(int64(n))
	return x.Sqrt(x.Lsh(x, 2*fracBits))
}

// terms exports the model in the order in which a ciphertext meets them.
func (v noise) terms(k keyBounds) []Term {
	var all []Term
	add := func(name, meaning string, x fixed) {
		all = append(all, Term{Name: name, Meaning: meaning, Bound: x.ceil(), Log2: x.log2()})
	}
	add("s", "joint secret key", k.s)
	add("e", "joint key error", k.e)
	add("delta.mu", "rounding of Delta times the message", v.deltaMu)
	add("r.key", "encryption randomness times public key", v.rKey)
	add("fresh", "proved ciphertext", v.fresh)
	add("alpha", "MAC key ciphertext (at least a proved ciphertext's)", v.alpha)
	add("wrap", "multiple of q in a ciphertext", v.wrap)
	add("wrap.coeff", "multiple of q in a ciphertext, coefficients", v.wrapCoeff)
	add("tensor", "products of proved ciphertexts, summed", v.tensor)
	add("ks.rotate", "key switching of one rotation", v.ksRotate)
	add("ks.relin", "relinearisation", v.ksRelin)
	add("ks.matmul", "key switching of MatMul", v.ksMatMul)
	add("rounding", "rounding of a product", v.rounding)
	add("product", "ciphertext of c", v.product)
	add("mac.a", "ciphertexts of alpha*a and alpha*b, coefficients", v.macAlphaA)
	add("mac.c", "ciphertext of alpha*c, coefficients", v.macAlphaC)
	add("switch", "switch to the decryption modulus, coefficients", v.switching)
	add("need", "least modulus q", v.need)
	return all
}
