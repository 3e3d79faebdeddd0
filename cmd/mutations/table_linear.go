package main

var linearTable = []mutation{
	{
		Name: "name", File: "set.go", Protects: "a set for tests says so in its name",
		Old: "case strings.HasPrefix(s.Name, InsecurePrefix) != s.Insecure:", New: "case false:",
	},
	{
		Name: "width", File: "set.go", Protects: "errors are as wide as the security table has them",
		Old: "case !(s.ErrorWidth >= minErrorWidth) || s.ErrorWidth > 64:", New: "case s.ErrorWidth > 64:",
	},
	{
		Name: "distance", File: "noise.go", Protects: "a product whose noise a flood cannot hide is refused",
		Old: "if f.bound.Sign() <= 0 || f.distance > LogDistance {", New: "if f.bound.Sign() <= 0 {",
	},
	{
		Name: "no-flood", File: "noise.go", Protects: "a product without room for a flood is refused",
		Old: "if f.bound.Sign() <= 0 || f.distance > LogDistance {",
		New: "if f.bound.Sign() > 0 && f.distance > LogDistance {",
	},
	{
		Name: "noise-of-products", File: "noise.go", Protects: "the noise is within its bound",
		Old: "errors := s.tail() * math.Sqrt(float64(terms)*n) * t / 2",
		New: "errors := s.ErrorWidth / 8 * math.Sqrt(float64(terms)*n) * t / 2",
	},
	{
		Name: "proof-noise", File: "noise.go", Protects: "the flood covers what a proof leaves open",
		Old: "return up(most * float64(s.Proof.Bound)), up(most * (float64(s.Proof.Bound) + n/2))", New: "return up(most), up(most)",
	},
	{
		Name: "proof-product", File: "noise.go", Protects: "the flood covers what a proof leaves open",
		Old: "return up(float64(terms)*math.Sqrt(n)*t/2*input + 1 + s.ZeroNoise())", New: "return up(float64(terms)*t/2*input + 1 + s.ZeroNoise())",
	},
	{
		Name: "rounding-gap", File: "noise.go", Run: "TestFractionalInputsTellEntries|TestRounding",
		Protects: "no part of a cell of the phase is without flood",
		Old:      "roundingTail*math.Sqrt(float64(s.N())*s.secretVariance()/12)", New: "float64(s.N())/2",
	},
	{
		Name: "rounding-tail", File: "noise.go", Run: "TestRounding",
		Protects: "answers decode with the largest rounding errors",
		Old:      "const roundingTail = 13.5", New: "const roundingTail = 8",
	},
}
