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
		Name: "zero", File: "answer.go", Protects: "an answer is not a multiple of the input: the quotient tells the matrix",
		Old: "s.basis.MulAddNTT(a, p.a[0], u)", New: "",
	},
	{
		Name: "zero-secret", File: "answer.go", Protects: "an answer is not a multiple of the input: the quotient tells the matrix",
		Old: "s.ternary(u, source.Stream(\"linear answer secret\"))", New: "",
	},
	{
		Name: "flood", File: "answer.go", Protects: "the noise of an answer does not tell the matrix",
		Old: "s.basis.FromInt(add, flood)", New: "add.Zero()",
	},
	{
		Name: "mask", File: "answer.go", Protects: "coefficients that are not read tell nothing",
		Old: "s.message(add, mask)", New: "add.Zero()",
	},
	{
		Name: "mask-uniform", File: "answer.go", Protects: "coefficients that are not read tell nothing",
		Old: "sample.Uniform(m, s.T, stream)", New: "sample.Uniform(m, s.T/2, stream)",
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
		Name: "answer-number", File: "answer.go", Protects: "an answer is one of the plan",
		Old: "if g < 0 || g >= answers {", New: "if g < 0 {",
	},
	{
		Name: "key-set", File: "answer.go", Protects: "a key of another set is refused",
		Old: "if k.scheme.hash != s.hash {", New: "if k.scheme.hash != s.hash && false {",
	},
	{
		Name: "answer-length", File: "answer.go", Protects: "the size of an answer is checked before anything is allocated",
		Old: "case len(b) != s.answerSize(targets):", New: "case len(b) < 32:",
	},
	{
		Name: "answer-key", File: "answer.go", Protects: "an answer under another key is refused",
		Old: "case !bytes.Equal(b[:32], k.digest[:]):", New: "case false && !bytes.Equal(b[:32], k.digest[:]):",
	},
	{
		Name: "answer-residues", File: "answer.go", Protects: "an answer has one encoding",
		Old: "if err := codec.DecodePoly([][]uint64{a.c0}, s.Q[:1], b[32:at]); err != nil {",
		New: "if err := codec.DecodePoly([][]uint64{a.c0}, s.Q[:1], b[32:at]); err != nil && false {",
	},
	{
		Name: "answer-uniform", File: "answer.go", Protects: "an answer has one encoding",
		Old: "if err := codec.DecodePoly(a.c1.C, s.Q[:1], b[at:]); err != nil {",
		New: "if err := codec.DecodePoly(a.c1.C, s.Q[:1], b[at:]); err != nil && false {",
	},
	{
		Name: "public-length", File: "keys.go", Protects: "the size of a key is bounded before anything is allocated",
		Old: "\tdefault:\n\t\treturn nil, fmt.Errorf(\"%w: %d bytes\", ErrKeys, len(b))", New: "",
	},
	{
		Name: "public-set", File: "keys.go", Protects: "a key of another set is refused",
		Old: "if !bytes.Equal(b[:SeedSize], s.hash[:]) {", New: "if !bytes.Equal(b[:SeedSize], s.hash[:]) && false {",
	},
	{
		Name: "public-residue", File: "keys.go", Protects: "a key has one encoding",
		Old: "if err := codec.DecodePoly(v.C, s.Q, b[i*size:(i+1)*size]); err != nil {",
		New: "if err := codec.DecodePoly(v.C, s.Q, b[i*size:(i+1)*size]); err != nil && false {",
	},
	{
		Name: "inputs-header", File: "inputs.go", Protects: "a header has its size",
		Old: "case len(header) != InputsHeaderSize:", New: "case len(header) < 64:",
	},
	{
		Name: "inputs-set", File: "inputs.go", Protects: "ciphertexts of another set are refused",
		Old: "case !bytes.Equal(header[:32], p.scheme.hash[:]):", New: "case false:",
	},
	{
		Name: "inputs-key", File: "inputs.go", Protects: "ciphertexts of another key are refused",
		Old: "case !bytes.Equal(header[32:64], p.digest[:]):", New: "case false:",
	},
	{
		Name: "inputs-number", File: "inputs.go", Protects: "a ciphertext is one of the plan",
		Old: "case i < 0 || i >= len(in.b):", New: "case i < 0:",
	},
	{
		Name: "inputs-twice", File: "inputs.go", Protects: "a ciphertext that was taken is not replaced",
		Old: "case in.b[i].C != nil:", New: "case false:",
	},
	{
		Name: "inputs-length", File: "inputs.go", Protects: "the size of a ciphertext is bounded before anything is allocated",
		Old: "case len(b) != in.scheme.CiphertextSize():", New: "case len(b) > in.scheme.CiphertextSize()+1:",
		Redundant: "package codec demands the length too, after a polynomial is allocated",
	},
	{
		Name: "inputs-residue", File: "inputs.go", Protects: "a ciphertext has one encoding",
		Old: "if err := codec.DecodePoly(v.C, in.scheme.Q, b); err != nil {",
		New: "if err := codec.DecodePoly(v.C, in.scheme.Q, b); err != nil && false {",
	},
	{
		Name: "inputs-foreign", File: "inputs.go", Protects: "what is evaluated is under the key of the answer",
		Old: "case in.key != p.digest:", New: "case false:",
	},
	{
		Name: "inputs-count", File: "inputs.go", Protects: "what is evaluated is as much as the plan says",
		Old: "case len(in.b) != count:", New: "case len(in.b) > count:",
	},
	{
		Name: "inputs-missing", File: "inputs.go", Protects: "what is evaluated is all there",
		Old: "if b.C == nil {", New: "if b.C == nil && false {",
	},
	{
		Name: "matrix", File: "vector.go", Protects: "matrices have a size that can be computed with",
		Old: "case rows < 1 || cols < 1 || rows > MaxEntries || cols > MaxEntries:", New: "case rows < 1 || cols < 1:",
	},
	{
		Name: "packing", File: "vector.go", Protects: "there is such a packing",
		Old: "case packing > Tiled:", New: "case packing > 100:",
		Redundant: "no plan is made for a packing that there is not, and that is refused",
	},
	{
		Name: "slots", File: "vector.go", Protects: "rows to an answer are what the packing can have",
		Old: "slots > 0 && (packing == Cheapest || packing == Double && n%slots != 0):", New: "false:",
	},
	{
		Name: "rows-fit", File: "vector.go", Protects: "as many rows as were asked for share an answer",
		Old: "if best == nil {", New: "if best == nil && false {",
	},
	{
		Name: "residues-count", File: "vector.go", Protects: "vectors and matrices have the shape of the plan",
		Old: "if len(v) != count {\n\t\treturn fmt.Errorf(\"%w: %d entries of %s",
		New: "if false {\n\t\treturn fmt.Errorf(\"%w: %d entries of %s",
	},
	{
		Name: "residues", File: "vector.go", Protects: "entries are residues",
		Old: "if !below {", New: "if !below && false {",
	},
	{
		Name: "batch", File: "batch.go", Protects: "batches have a size that can be computed with",
		Old: "if x < 1 || x > MaxEntries {", New: "if x < 0 || x > MaxEntries {",
	},
	{
		Name: "batch-columns", File: "batch.go", Protects: "batches have a size that can be computed with",
		Old: "if cols > MaxEntries/count {", New: "if cols > MaxEntries/count && false {",
	},
	{
		Name: "product", File: "product.go", Protects: "products have a size that can be computed with",
		Old: "if x < 1 || x > MaxEntries {", New: "if x < 0 || x > MaxEntries {",
	},
	{
		Name: "product-proved", File: "product.go", Protects: "products of ciphertexts take what nothing proves",
		Old: "if s.HasProof() {", New: "if s.HasProof() && false {",
	},
	{
		Name: "method", File: "product.go", Protects: "there is such a method",
		Old: "if shape.Method > Second || shape.Base == 1 {", New: "if shape.Base == 1 {",
	},
	{
		Name: "stride", File: "product.go", Protects: "an entry has room for its digits",
		Old: "if stride > s.N() {", New: "if stride > 1<<20 {",
	},
	{
		Name: "overflow", File: "product.go", Protects: "entries of the product do not wrap around T",
		Old: "if over(terms, left, right, (t-1)/2) || over(", New: "if over(",
	},
	{
		Name: "overflow-words", File: "product.go", Protects: "entries of the product that are put together of digits fit a word",
		Old: " || over(uint64(x.Inner), x.MaxLeft, x.MaxRight, math.MaxInt64) {", New: " || math.MaxInt64 == 0 {",
	},
	{
		Name: "entries-count", File: "product.go", Protects: "factors have the shape of the plan",
		Old: "if len(v) != count {", New: "if len(v) < 1 {",
	},
	{
		Name: "entries", File: "product.go", Protects: "entries are as large as the plan says, so that the product does not wrap around T",
		Old: "if magnitude(x) > most {", New: "if x > int64(most) {",
	},
	{
		Name: "relinearises", File: "product.go", Protects: "a key for products has what they take",
		Old: "if !key.Products() {", New: "if !key.Products() && false {",
	},
	{
		Name: "room", File: "product.go", Protects: "there is room for the product",
		Old: "if len(out) != p.Rows*p.Cols {", New: "if false {",
	},
	{
		Name: "product-mask", File: "product.go", Protects: "products of other entries are masked",
		Old: "mask := p.scheme.mask(source)", New: "mask := make([]uint64, p.scheme.N())",
	},
	{
		Name: "proof-sizes", File: "proof.go", Protects: "responses hide secrets",
		Old: "case !(p.SecretWidth >= 2*math.Sqrt2*s.beta()) || ", New: "case ",
	},
	{
		Name: "proof-masks", File: "proof.go", Protects: "responses hide secrets",
		Old: " || !(p.MaskWidth >= 2*math.Sqrt(2*float64(s.repetitions()))*s.beta()):", New: ":",
	},
	{
		Name: "proof-order", File: "proof.go", Protects: "responses are to a challenge that has come, each once",
		Old: "|| v.seen[i] || i > 0 && !v.seen[0]:", New: "|| i > 0 && !v.seen[0]:",
	},
	{
		Name: "proof-input", File: "proof.go", Protects: "a proof is of inputs that have come",
		Old: "case i > 1 && in.b[i-2].C == nil:", New: "case false:",
	},
	{
		Name: "proof-length", File: "proof.go", Protects: "a frame has its size",
		Old: "case len(frame) != s.ProofFrameSize(i):", New: "case len(frame) < s.ProofFrameSize(i):",
	},
	{
		Name: "proof-norm", File: "proof.go", Protects: "what is proved is short",
		Old: "if !s.norm.Within(short) {", New: "if !s.norm.Within(short) && false {",
	},
	{
		Name: "proof-divided", File: "proof.go", Protects: "what is proved of inputs is short, whatever the message",
		Old: "if width != proofBits {\n\t\t\ts.divided(short)", New: "if width == proofBits {\n\t\t\ts.divided(short)",
	},
	{
		Name: "proof-challenge", File: "proof.go", Protects: "responses are to a challenge that nobody chose",
		Old: "if v.digest(v.key) != v.challenge {", New: "if v.digest(v.key) != v.challenge && false {",
	},
	{
		Name: "proof-turned", File: "proof.go", Protects: "a proof is of the key and the inputs",
		Old: "s.basis.SubNTT(dst, dst, turned)", New: "_ = turned",
	},
	{
		Name: "proof-missing", File: "proof.go", Protects: "a proof is whole",
		Old: "if !seen {", New: "if !seen && false {",
		Redundant: "the hash is of all equations; one that has not come is zeros in it",
	},
	{
		Name: "proof-nobody", File: "proof.go", Protects: "inputs that nobody has checked are not computed with",
		Old: "case v == nil:\n\t\treturn fmt.Errorf(\"%w: nobody", New: "case v == nil && false:\n\t\treturn fmt.Errorf(\"%w: nobody",
	},
	{
		Name: "proof-wanted", File: "inputs.go", Protects: "inputs that nobody has checked are not computed with",
		Old: "if err := in.verified(); err != nil {", New: "if err := in.verified(); err != nil && false {",
	},
	{
		Name: "proof-ciphertexts", File: "inputs.go", Protects: "the challenge is bound to the inputs",
		Old: "in.proof.ciphertexts[i] = sha256.Sum256(b)", New: "_ = sha256.Sum256(b)",
	},
	{
		Name: "proof-once", File: "prover.go", Protects: "responses hide secrets: a key makes one proof",
		Old: "if !k.proves.CompareAndSwap(false, true) {", New: "if k.proves.Load() {",
	},
	{
		Name: "proof-messages", File: "prover.go", Protects: "responses hide messages",
		Old: "sample.Uniform(m, p.T, messages)", New: "_ = messages",
	},
	{
		Name: "proof-coset", File: "prover.go", Protects: "errors do not depend on messages",
		Old: "centres[i] = s.fraction(mod.Neg(x))", New: "centres[i], _ = sample.Frac{}, x",
	},
	{
		Name: "proof-samples", File: "keys.go", Protects: "what nothing proves is not taken",
		Old: "if s.HasProof() {\n\t\t\treturn nil", New: "if false {\n\t\t\treturn nil",
	},
	{
		Name: "proof-double", File: "answer.go", Protects: "what is in the noise of an answer is what was proved to be short",
		Old: "s.basis.Double(c1, c1)", New: "",
	},
	{
		Name: "proof-half", File: "scheme.go", Protects: "answers are doubled, and results are not",
		Old: "return (x + s.T&-(x&1)) / 2", New: "return x / 2",
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
		Name: "fixed", File: "fixed.go", Protects: "numbers fit T",
		Old: " || uint64(1)<<(bits-1) > s.T/2 {", New: " {",
	},
	{
		Name: "fixed-product", File: "fixed.go", Protects: "products have one meaning",
		Old: "if x.T != y.T || terms < 1 || x.Fraction+y.Fraction > maxFraction {", New: "if terms < 1 {",
	},
	{
		Name: "fixed-sum", File: "fixed.go", Protects: "sums of products do not wrap around T",
		Old: "if _, _, err := shape.fits(x.T); err != nil {", New: "if _, _, err := shape.fits(x.T); err != nil && false {",
	},
	{
		Name: "fixed-integer", File: "fixed.go", Protects: "an integer out of the range is refused",
		Old: "if magnitude(v) > x.Most {", New: "if v > int64(x.Most) {",
	},
	{
		Name: "fixed-number", File: "fixed.go", Protects: "a number out of the range, or that is none, is refused",
		Old:       "if !(math.Abs(r) <= float64(x.Most)) || math.Abs(r) >= 1<<63 {",
		New:       "if math.Abs(r) > float64(x.Most) || math.Abs(r) >= 1<<63 {",
		Redundant: "what is no integer converts to the least one on amd64, and is refused as that",
	},
	{
		Name: "fixed-residue", File: "fixed.go", Protects: "a residue of no number of the range is refused",
		Old: "if v > x.Most {", New: "if v > x.Most && !negative {",
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
