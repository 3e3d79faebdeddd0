package main

const sigmaNorm = "TestNormAround|TestNormRefuses|TestNewNorm"

var sigmaTable = []mutation{
	{
		Name: "space", File: "sigma.go", Run: "Challenge",
		Protects: "a challenge space is one that the soundness of proofs was computed for",
		Old:      "if count < 2 || count > 1<<16 || count&(count-1) != 0 || stride < 1 || v < 1 || u < 1 {",
		New:      "if false {",
	},
	{
		Name: "whole-space", File: "sigma.go", Run: "Challenge",
		Protects: "challenges come from the whole space, signs included",
		Old:      "& (count - 1)", New: "& (count/2 - 1)",
	},
	{
		Name: "norm", File: "norm.go", Run: sigmaNorm, Protects: "responses have a short canonical norm",
		Old: "return m.square(z) <= m.limit", New: "return true",
	},
	{
		Name: "norm-limit", File: "norm.go", Run: sigmaNorm,
		Protects: "the bound on the norm holds with what is rounded",
		Old:      "limit := uint64(bound)<<m.frac - m.slack", New: "limit := uint64(bound)<<m.frac + m.slack",
	},
	{
		Name: "norm-every-root", File: "norm.go", Run: "TestNorm",
		Protects: "the norm is the largest value at all roots",
		Old:      "for k, re := range room.re {", New: "for k, re := range room.re[:len(room.re)/2] {",
	},
	{
		Name: "norm-imaginary", File: "norm.go", Run: "TestNorm", Protects: "the norm is that of complex values",
		Old: "uint64(re*re)+uint64(im*im)", New: "uint64(re*re)+0*uint64(im*im)",
	},
	{
		Name: "norm-words", File: "norm.go", Run: sigmaNorm,
		Protects: "coefficients are small enough for the norm's arithmetic",
		Old:      "if c := int64(x); c < -top || c >= top {", New: "if c := int64(x); c < -top && c >= top {",
	},
	{
		Name: "norm-size", File: "norm.go", Run: sigmaNorm, Protects: "words hold what the norm computes",
		Old: "if n < 4 || 2<<splits != n || bits < 2 || m.frac < minFrac {", New: "if n < 4 {",
	},
	{
		Name: "norm-bound", File: "norm.go", Run: sigmaNorm, Protects: "the bound is not lost in what is rounded",
		Old: "if bound < 1 || bound >= 1<<(31-m.frac) || uint64(bound)<<m.frac <= 2*m.slack {", New: "if false {",
	},
}
