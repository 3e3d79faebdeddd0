package main

var codecTable = []mutation{
	{
		Name: "too-short", File: "codec.go", Protects: "a message has one length: nothing is read beyond it",
		Old: "case have < want:", New: "case false:",
	},
	{
		Name: "too-long", File: "codec.go", Protects: "a message has one length: nothing hides behind it",
		Old: "case have > want:", New: "case false:",
	},
	{
		Name: "residue", File: "codec.go",
		Protects: "a residue has one encoding, and arithmetic gets what it is made for",
		Old:      "if below == 0 {", New: "if false {",
	},
	{
		Name: "residue-every", File: "codec.go", Protects: "every residue is looked at, not the last alone",
		Old: "below &= b", New: "below = b",
	},
	{
		Name: "padding", File: "codec.go", Protects: "the bits behind the last value say nothing",
		Old: "if !zero {", New: "if false {",
	},
	{
		Name: "padding-of-polynomials", File: "codec.go",
		Protects: "the padding of every residue polynomial is looked at",
		Old:      "if err := padding(kernel.Unpack(c[i], src[:n], width(q))); err != nil {",
		New:      "if err := padding(kernel.Unpack(c[i], src[:n], width(q))); false && err != nil {",
	},
	{
		Name: "padding-of-words", File: "codec.go", Protects: "the padding of integers of one word is looked at",
		Old: "return padding(zero)", New: "return padding(zero || true)",
	},
	{
		Name: "padding-of-integers", File: "codec.go",
		Protects: "the padding of integers of several words is looked at",
		Old:      "return padding(at%8 == 0 || src[len(src)-1]>>(at%8) == 0)", New: "return padding(true)",
	},
	{
		Name: "own-short", File: "codec.go",
		Protects: "an honest party sends no integer cut short, which would show what it hides",
		Old:      "if rest != 0 {", New: "if false {",
	},
	{
		Name: "own-long", File: "codec.go", Protects: "the same for integers of several words",
		Old: "if !fits(c, width) {", New: "if false {",
	},
}
