package params

import "math/big"

// Primes q = 1 mod 2N. In each pair the auxiliary primes are the next larger ones, or the largest
// under the same power of two, so that their product exceeds that of the moduli. They have at most
// 50 bits for N up to 2^14, the width of the IFMA kernels.
var (
	// 7 x 49 bits, 1 mod 2^15.
	q49 = []uint64{
		0x1ffffffd40001, 0x1ffffffc98001, 0x1ffffffbb8001, 0x1ffffffba0001, 0x1ffffffb58001,
		0x1ffffffb40001, 0x1ffffffb00001,
	}
	aux49 = []uint64{
		0x1fffffff68001, 0x1fffffff50001, 0x1ffffffee8001, 0x1ffffffea0001, 0x1ffffffe88001,
		0x1ffffffe48001, 0x1ffffffd58001,
	}
	// 9 x 47 bits, 1 mod 2^15.
	q47 = []uint64{
		0x7fffffc18001, 0x7fffffbc0001, 0x7fffffbb8001, 0x7fffffb58001, 0x7fffffb28001,
		0x7fffffae0001, 0x7fffffab8001, 0x7fffff9c0001, 0x7fffff950001,
	}
	aux47 = []uint64{
		0x7ffffffc8001, 0x7ffffff00001, 0x7fffffe70001, 0x7fffffe48001, 0x7fffffe40001,
		0x7fffffda0001, 0x7fffffd08001, 0x7fffffc80001, 0x7fffffc48001,
	}
	// 5 x 42 bits, 1 mod 2^14.
	q42 = []uint64{
		0x3ffffe8c001, 0x3ffffe80001, 0x3ffffe7c001, 0x3ffffe74001, 0x3ffffe28001,
	}
	aux42 = []uint64{
		0x3fffffa8001, 0x3fffff3c001, 0x3fffff0c001, 0x3ffffeec001, 0x3ffffedc001,
	}
	// 5 primes around 2^42.8, 1 mod 2^14; product just under 2^214.
	q43 = []uint64{
		0x6f6e3368001, 0x6f6e3328001, 0x6f6e32b0001, 0x6f6e3248001, 0x6f6e3218001,
	}
	aux43 = []uint64{
		0x6f6e3380001, 0x6f6e341c001, 0x6f6e3448001, 0x6f6e3454001, 0x6f6e3494001,
	}
	// 13 x 55 bits, 1 mod 2^16.
	q55 = []uint64{
		0x7fffffff150001, 0x7ffffffef00001, 0x7ffffffecd0001, 0x7ffffffebb0001, 0x7ffffffeba0001,
		0x7ffffffeac0001, 0x7ffffffe9f0001, 0x7ffffffe700001, 0x7ffffffe600001, 0x7ffffffe4c0001,
		0x7ffffffe310001, 0x7ffffffe220001, 0x7ffffffe160001,
	}
	aux55 = []uint64{
		0x7fffffffe90001, 0x7fffffffbf0001, 0x7fffffffbd0001, 0x7fffffffba0001, 0x7fffffffaa0001,
		0x7fffffffa50001, 0x7fffffff9f0001, 0x7fffffff7e0001, 0x7fffffff770001, 0x7fffffff380001,
		0x7fffffff330001, 0x7fffffff2d0001, 0x7fffffff170001,
	}
)

// Widths of errors and Gaussian secrets, as the exact doubles that are used.
const (
	width319 = 7.9961441960728905 // standard deviation 3.19

	// 2*sqrt(2)*beta(N), rounded up: twice the width at which Hint-RLWE reduces to RLWE, as proofs
	// of keys need it. beta(N) = sqrt(ln(2N(1+2^128))/pi). Standard deviation 6.34 at N = 2^14.
	widthProved6  = 15.436529667151998
	widthProved8  = 15.550453940876007
	widthProved11 = 15.719792370479
	widthProved14 = 15.887325973071537
)

// fieldsUnder lists fields p = b^M+1 with b = 2^logB-x. Each was found as the least x for which p
// is prime and 2N divides p-1 at the largest N that uses it.
func fieldsUnder(logB int, list ...fieldDatum) []FieldSpec {
	var fields []FieldSpec
	for _, d := range list {
		b := new(big.Int).Lsh(big.NewInt(1), uint(logB))
		fields = append(fields, FieldSpec{Name: d.name, B: b.Sub(b, big.NewInt(d.x)), M: d.m})
	}
	return fields
}

type fieldDatum struct {
	name string
	x    int64
	m    int
}

func fields8() []FieldSpec {
	return fieldsUnder(8, fieldDatum{"p64", 16, 8}, fieldDatum{"p128", 8, 16})
}

func fields16() []FieldSpec {
	return fieldsUnder(16, fieldDatum{"p64", 256, 4}, fieldDatum{"p128", 196, 8}, fieldDatum{"p256", 22, 16},
		fieldDatum{"p512", 72, 32}, fieldDatum{"p1024", 28, 64}, fieldDatum{"p2048", 190, 128},
		fieldDatum{"p4096", 288, 256})
}

func fields32() []FieldSpec {
	return fieldsUnder(32, fieldDatum{"p64", 5120, 2}, fieldDatum{"p128", 80, 4}, fieldDatum{"p256", 20, 8},
		fieldDatum{"p512", 50, 16}, fieldDatum{"p1024", 174, 32}, fieldDatum{"p2048", 312, 64},
		fieldDatum{"p4096", 572, 128})
}

func fields64() []FieldSpec {
	return fieldsUnder(64, fieldDatum{"p128", 3072, 2}, fieldDatum{"p256", 64, 4}, fieldDatum{"p512", 428, 8},
		fieldDatum{"p1024", 8, 16}, fieldDatum{"p2048", 22, 32}, fieldDatum{"p4096", 56, 64})
}

func fields128() []FieldSpec {
	return fieldsUnder(128, fieldDatum{"p256", 40192, 2}, fieldDatum{"p512", 640, 4}, fieldDatum{"p1024", 48, 8},
		fieldDatum{"p2048", 576, 16}, fieldDatum{"p4096", 990, 32})
}

// registry builds every set afresh, so that callers cannot change each other's.
func registry() []*Set {
	sets := append(shipped(), tiny()...)
	for _, s := range sets {
		s.LambdaSnd, s.LambdaSim = 128, 128
		if s.LambdaDDec == 0 {
			s.LambdaDDec = 80
		}
		s.Q, s.Aux = append([]uint64(nil), s.Q...), append([]uint64(nil), s.Aux...)
	}
	return sets
}

func shipped() []*Set {
	return []*Set{
		{ // The default. Gaussian secrets and 50 spare bits let its keys be proved without another set or hash.
			Name: "S14-32", LogN: 14, LogB: 32, Q: q49, Aux: aux49, DigitPrimes: 2, Fields: fields32(),
			Secret: Gaussian, SecretWidth: widthProved14, ErrorWidth: widthProved14, Keys: KeysProved,
		},
		{ // The fastest per slot; no room for proofs of keys.
			Name: "S14-64", LogN: 14, LogB: 64, Q: q47, Aux: aux47, DigitPrimes: 3, Fields: fields64(),
			Secret: Ternary, ErrorWidth: width319, Keys: KeysUnproved,
		},
		{ // Small keys.
			Name: "S13-8", LogN: 13, LogB: 8, Q: q42, Aux: aux42, DigitPrimes: 1, Fields: fields8(),
			Secret: Ternary, ErrorWidth: width319, Keys: KeysUnproved,
		},
		{ // Small keys and more slots than S13-8; large matrices for two to five parties only.
			Name: "S13-16", LogN: 13, LogB: 16, Q: q43, Aux: aux43, DigitPrimes: 1, Fields: fields16(),
			Secret: Ternary, ErrorWidth: width319, Keys: KeysUnproved, LambdaDDec: 72,
		},
		{ // Large fields.
			Name: "S15-128", LogN: 15, LogB: 128, Q: q55, Aux: aux55, DigitPrimes: 3, Fields: fields128(),
			Secret: Ternary, ErrorWidth: width319, Keys: KeysUnproved,
		},
	}
}

// tiny lists rings that are too small to be secure and large enough to run every protocol: all
// algebraic conditions hold and the noise fits. Each copies the moduli and digits of a shipped set.
func tiny() []*Set {
	return []*Set{
		{
			Name: "insecure-6", LogN: 6, LogB: 32, Q: q49, Aux: aux49, DigitPrimes: 2, Fields: fields32()[:4],
			Secret: Gaussian, SecretWidth: widthProved6, ErrorWidth: widthProved6, Keys: KeysProved, Insecure: true,
		},
		{
			Name: "insecure-8", LogN: 8, LogB: 32, Q: q49, Aux: aux49, DigitPrimes: 2, Fields: fields32(),
			Secret: Gaussian, SecretWidth: widthProved8, ErrorWidth: widthProved8, Keys: KeysProved, Insecure: true,
		},
		{
			Name: "insecure-8-64", LogN: 8, LogB: 64, Q: q47, Aux: aux47, DigitPrimes: 3, Fields: fields64(),
			Secret: Ternary, ErrorWidth: width319, Keys: KeysUnproved, Insecure: true,
		},
		{
			Name: "insecure-8-16", LogN: 8, LogB: 16, Q: q43, Aux: aux43, DigitPrimes: 1, Fields: fields16()[:4],
			Secret: Ternary, ErrorWidth: width319, Keys: KeysUnproved, Insecure: true,
		},
		{
			Name: "insecure-11", LogN: 11, LogB: 32, Q: q49, Aux: aux49, DigitPrimes: 2, Fields: fields32(),
			Secret: Gaussian, SecretWidth: widthProved11, ErrorWidth: widthProved11, Keys: KeysProved, Insecure: true,
		},
	}
}
