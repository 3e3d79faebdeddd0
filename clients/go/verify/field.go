package verify

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
)

// ErrModulus reports a modulus that does not belong to its parameter set and field.
var ErrModulus = errors.New("verify: wrong modulus")

// baseBits holds log2 b of the fields of each parameter set (rounded up), which the sets' names
// state too.
var baseBits = map[string]uint{
	"S13-8": 8, "S13-16": 16, "S14-32": 32, "S14-64": 64, "S15-128": 128,
	// Rings too small to be secure, for tests.
	"insecure-6": 32, "insecure-8": 32, "insecure-11": 32, "insecure-8-16": 16, "insecure-8-64": 64,
}

// formula stands for p = (2^baseBits - x)^m + 1.
type formula struct {
	x int64
	m int64
}

// formulas is the documented table of fields, by log2 b (docs/reference/export-format.md).
var formulas = map[uint]map[string]formula{
	8: {"p64": {16, 8}, "p128": {8, 16}},
	16: {
		"p64": {256, 4}, "p128": {196, 8}, "p256": {22, 16}, "p512": {72, 32}, "p1024": {28, 64}, "p2048": {190, 128},
		"p4096": {288, 256},
	},
	32: {
		"p64": {5120, 2}, "p128": {80, 4}, "p256": {20, 8}, "p512": {50, 16}, "p1024": {174, 32}, "p2048": {312, 64},
		"p4096": {572, 128},
	},
	64: {
		"p128": {3072, 2}, "p256": {64, 4}, "p512": {428, 8}, "p1024": {8, 16}, "p2048": {22, 32}, "p4096": {56, 64},
	},
	128: {"p256": {40192, 2}, "p512": {640, 4}, "p1024": {48, 8}, "p2048": {576, 16}, "p4096": {990, 32}},
}

// Modulus returns the prime of a field of a parameter set, computed from the documented formula.
func Modulus(params, field string) (*big.Int, error) {
	logB, ok := baseBits[params]
	if !ok {
		return nil, fmt.Errorf("%w: unknown parameter set %q", ErrModulus, params)
	}
	f, ok := formulas[logB][field]
	if !ok {
		return nil, fmt.Errorf("%w: parameter set %s has no field %q", ErrModulus, params, field)
	}
	p := new(big.Int).Lsh(big.NewInt(1), logB)
	p.Sub(p, big.NewInt(f.x))
	p.Exp(p, big.NewInt(f.m), nil)
	return p.Add(p, big.NewInt(1)), nil
}

// modulus reads the manifest's modulus and checks that it is the field's prime.
func modulus(m tuplefile.Manifest) (*big.Int, error) {
	want, err := Modulus(m.Params, m.Field)
	if err != nil {
		return nil, err
	}
	p, ok := new(big.Int).SetString(m.Modulus, 10)
	if !ok || p.Cmp(want) != 0 {
		return nil, fmt.Errorf("%w: it is not the modulus of field %s of set %s", ErrModulus, m.Field, m.Params)
	}
	// The table is fixed; this check detects errors in it, with Baillie-PSW and two Miller-Rabin
	// bases.
	if !p.ProbablyPrime(2) {
		return nil, fmt.Errorf("%w: field %s of set %s is not prime", ErrModulus, m.Field, m.Params)
	}
	return p, nil
}
