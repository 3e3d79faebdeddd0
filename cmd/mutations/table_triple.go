package main

const (
	tripleBasic  = "TestScalarTriples|TestMatrixTriples|TestKinds|TestInputMasks|TestStartRefuses|TestPlans|TestTrusting"
	tripleCheats = "TestCheatsInABatch|TestFaultsInABatch|TestMasked|TestOpened|TestASingle|TestErrorsFor|TestOrderOf|TestMalformed|TestPadding|TestEveryValue|TestEveryReleased|TestEveryPadding|TestCheatsOnInput|TestEveryInput|TestTheMask"
	tripleDigest = "TestDigestOfABatch"
)

var tripleTable = []mutation{
	{
		Name: "evaluated", File: "triple.go", Run: tripleCheats,
		Protects: "only what all parties have computed is decrypted",
		Old:      "if err := round.Compare(r.Session, in, compareName, CheckEvaluated, r.digest); err != nil {\n\t\treturn none, err\n\t}",
		New:      "",
	},
	{
		Name: "values-a", File: "triple.go", Run: "TestEveryReleased",
		Protects: "the first factors are those of their MACs",
		Old:      "Values: []maccheck.Pair{{Value: result.A, MAC: result.MACA}, {Value: result.B",
		New:      "Values: []maccheck.Pair{{Value: result.B",
	},
	{
		Name: "values-b", File: "triple.go", Run: "TestEveryReleased",
		Protects: "the second factors are those of their MACs",
		Old:      "{Value: result.B, MAC: result.MACB}, {Value: result.C", New: "{Value: result.C",
	},
	{
		Name: "values-c", File: "triple.go", Run: "TestEveryReleased",
		Protects: "the products are those of their MACs",
		Old:      "{Value: result.B, MAC: result.MACB}, {Value: result.C, MAC: result.MACC}}",
		New:      "{Value: result.B, MAC: result.MACB}}",
	},
	{
		Name: "mask", File: "collect.go", Run: tripleCheats + "|TestScalar|TestCollect",
		Protects: "what the MAC check opens is masked",
		Old:      "maccheck.Material{Mask: pair(first)}",
		New:      "maccheck.Material{Mask: maccheck.Pair{Value: r.Scheme.Field.NewVec(1), MAC: r.Scheme.Field.NewVec(1)}}",
	},
	{
		Name: "padding", File: "collect.go", Run: "Padding",
		Protects: "matrices are as large as they say: their padding is zero",
		Old:      "if la.Cols%la.Dim != 0 {", New: "if false {",
	},
	{
		Name: "padding-all", File: "collect.go", Run: "Padding", Protects: "the padding of every matrix is zero",
		Old: "out := r.Scheme.Field.NewVec(r.Plan.Count * l.Rows * extra)\n\tat := 0\n\tfor t := range r.Plan.Count {",
		New: "out := r.Scheme.Field.NewVec(r.Plan.Count * l.Rows * extra)\n\tat := 0\n\tfor t := range r.Plan.Count - 1 {",
	},
	{
		Name: "opened-products", File: "open.go", Run: "Opened|TestEveryValueOfEveryKind|TestCheats",
		Protects: "opened squares and products are what they are opened as",
		Old:      "r.zeros = append(r.zeros, zero)", New: "_ = zero",
	},
	{
		Name: "opened-squares", File: "open.go", Run: "Opened|TestKinds|TestBits|TestCheats",
		Protects: "a bit is made of a square",
		Old:      "if !roots.Sqrt(part.At(k), part.At(k)) {", New: "if !roots.Sqrt(part.At(k), part.At(k)) && false {",
		Redundant: "what is no square is not what the shares add up to, and the MAC check of the same batch finds that",
	},
	{
		Name: "opened-decode", File: "open.go", Run: "Opened|TestCheats|TestFaults|TestMasked",
		Protects: "opened shares are canonical",
		Old:      "if err := f.DecodeVec(t, in.Bytes(p, name)); err != nil {",
		New:      "if err := f.DecodeVec(t, in.Bytes(p, name)); false {",
	},
	{
		Name: "zero-products", File: "open.go", Run: "TestZeroProducts",
		Protects: "tuples of zero, whose factor everybody knows, are dropped",
		Old:      "if !f.IsZero(opened.At(i)) {", New: "if true {",
	},
	{
		Name: "sacrifice-on", File: "plan.go", Run: tripleBasic + "|TestMalformed",
		Protects: "products are sacrificed unless somebody says that they need not be",
		Old:      "p := &Plan{Kind: kind, Sacrifice: kind.Multiplies(), ",
		New:      "p := &Plan{Kind: kind, Sacrifice: false, ",
	},
	{
		Name: "one-prover", File: "triple.go", Run: "Input",
		Protects: "only their owner knows the values of input masks",
		Old:      "proof.Only = &c.Plan.Owner", New: "_ = &c.Plan.Owner",
	},
	{
		Name: "serves", File: "triple.go", Run: "TestStartRefuses|TestPlans",
		Protects:  "a plan is for the scheme and for the number of parties",
		Old:       "if err := c.Scheme.Serves(c.Plan.Instance, c.Session.Parties); err != nil {",
		New:       "if err := c.Scheme.Serves(c.Plan.Instance, c.Session.Parties); false {",
		Redundant: "the proof that a batch begins with refuses the same",
	},
	{
		Name: "mac-key-field", File: "triple.go", Run: "TestStartRefuses", Protects: "a MAC key is of the field",
		Old: "if len(c.MAC.Share.W) != len(c.Scheme.Field.NewElement()) {", New: "if false {",
	},
	{
		Name: "owner", File: "triple.go", Run: "TestStartRefuses|Input",
		Protects: "input masks are of a party of the session, and nothing else is of one party",
		Old:      "if c.Plan.Owner < 0 || int(c.Plan.Owner) >= c.Session.Parties || c.Plan.Owner > 0 && c.Plan.Kind != Input {",
		New:      "if false {",
	},
	// What the digest of a batch is of, which the parties sign.
	{
		Name: "digest/session", File: "judge.go", Run: tripleDigest, Protects: "a digest is of its session",
		Old: "id[:], h[:], key[:], round.Uint",
		New: "h[:], key[:], round.Uint",
	},
	{
		Name: "digest/instance", File: "judge.go", Run: tripleDigest, Protects: "a digest is of its parameters",
		Old: "id[:], h[:], key[:], round.Uint",
		New: "id[:], h[:0], key[:], round.Uint",
	},
	{
		Name: "digest/key", File: "judge.go", Run: tripleDigest, Protects: "a digest is of its key",
		Old: "h[:], key[:], round.Uint",
		New: "h[:], round.Uint",
	},
	{
		Name: "digest/kind", File: "judge.go", Run: tripleDigest, Protects: "a digest is of its kind of tuples",
		Old: "round.Uint(uint64(p.Kind)), round.Uint",
		New: "round.Uint",
	},
	{
		Name: "digest/count", File: "judge.go", Run: tripleDigest, Protects: "a digest is of its number of tuples",
		Old: "round.Uint(uint64(count)), transcript",
		New: "transcript",
	},
	{
		Name: "digest/transcript", File: "judge.go", Run: tripleDigest,
		Protects: "a digest is of everything that was broadcast",
		Old:      "round.Uint(uint64(count)), transcript[:]}",
		New:      "round.Uint(uint64(count)), transcript[:0]}",
	},
	{
		Name: "digest/owner", File: "judge.go", Run: tripleDigest, Protects: "a digest is of the owner of input masks",
		Old: "fields = append(fields, round.Uint(uint64(p.Owner)))",
		New: "",
	},
	{
		Name: "digest/convolution", File: "judge.go", Run: tripleDigest + "|TestConvolutionShapes",
		Protects: "a digest is of the shape of convolutions",
		Old:      "if c := p.Convolution; p.Kind == Convolution {", New: "if c := p.Convolution; false {",
	},
	{
		Name: "digest/sacrifice", File: "judge.go", Run: tripleDigest + "|TestTrusting",
		Protects: "a digest says whether products were sacrificed",
		Old:      `fields = append(fields, []byte("sacrificed"))`, New: "",
	},
}
