package main

const (
	paramsSet      = "TestValidateRefuses|TestSecurityTable|TestSetsAreValid"
	paramsSetHash  = "TestSetHash"
	paramsInstance = "TestInstanceHash"
	paramsUses     = "TestInvalidUses|TestWhatFits|TestUseIsCompleted|TestProvedInstances|TestFlooding"
)

var paramsTable = []mutation{
	// The registry.
	{
		Name: "error-width", File: "set.go", Run: paramsSet,
		Protects: "errors have a deviation of 3.19 at least",
		Old:      "if s.ErrorWidth < minErrorWidth {", New: "if false {",
	},
	{
		Name: "insecure-by-name", File: "set.go", Run: paramsSet,
		Protects: "a set that is not secure says so in its name",
		Old:      "if strings.HasPrefix(s.Name, InsecurePrefix) != s.Insecure {",
		New:      "if strings.HasPrefix(s.Name, InsecurePrefix) && !s.Insecure {",
	},
	{
		Name: "ring-degree", File: "set.go", Run: paramsSet, Protects: "a ring has a degree that the code is made for",
		Old: "if s.LogN < 2 || s.LogN > 16 {", New: "if false {",
	},
	{
		Name: "auxiliary-primes", File: "set.go", Run: paramsSet,
		Protects: "there are primes, and as many auxiliary ones",
		Old:      "if len(s.Q) == 0 || len(s.Q) != len(s.Aux) || s.DigitPrimes < 1 || s.DigitPrimes > len(s.Q) {",
		New:      "if false {",
	},
	{
		Name: "auxiliary-modulus", File: "set.go", Run: paramsSet, Protects: "the auxiliary modulus holds products",
		Old: "if product(s.Aux).Cmp(s.Modulus()) < 0 {", New: "if false {",
	},
	{
		Name: "primes", File: "set.go", Run: paramsSet, Protects: "primes are different, and have roots of unity",
		Old: "if q%(2*uint64(s.N())) != 1 || q>>61 != 0 || seen[q] {", New: "if false {",
	},
	{
		Name: "soundness", File: "set.go", Run: paramsSet,
		Protects: "proofs have 128 bits of soundness and of simulation",
		Old:      "case s.LambdaSim != 128 || s.LambdaSnd != 128:", New: "case false:",
	},
	{
		Name: "secret-width", File: "set.go", Run: paramsSet,
		Protects: "Gaussian secrets have a deviation of 3.19 at least",
		Old:      "case s.Secret == Ternary && s.SecretWidth != 0, s.Secret == Gaussian && s.SecretWidth < minErrorWidth:",
		New:      "case false:",
	},
	{
		Name: "secret-distribution", File: "set.go", Run: paramsSet,
		Protects: "secrets have a distribution that is known",
		Old:      "case s.Secret != Ternary && s.Secret != Gaussian:", New: "case false:",
	},
	{
		Name: "keys-known", File: "set.go", Run: paramsSet, Protects: "keys are proved or are not",
		Old: "case s.Keys != KeysUnproved && s.Keys != KeysProved:", New: "case false:",
	},
	{
		Name: "keys-gaussian", File: "set.go", Run: paramsSet, Protects: "proofs of keys hide Gaussian secrets",
		Old: "case s.Keys == KeysProved && s.Secret != Gaussian:", New: "case false:",
	},
	{
		Name: "field-extension", File: "set.go", Run: paramsSet, Protects: "a field fits the ring",
		Old: "case f.M < 2 || bits.OnesCount(uint(f.M)) != 1 || f.M > n/2:", New: "case false && (f.M < 2 || bits.OnesCount(uint(f.M)) != 1 || f.M > n/2):",
	},
	{
		Name: "field-base", File: "set.go", Run: paramsSet, Protects: "a field has a base that digits can have",
		Old: "case f.B.Cmp(big.NewInt(4)) < 0:", New: "case false:",
	},
	{
		Name: "field-bits", File: "set.go", Run: paramsSet, Protects: "the noise is computed for the bits of the base",
		Old: "case f.B.BitLen() != s.LogB:", New: "case false:",
	},
	{
		Name: "field-roots", File: "set.go", Run: paramsSet, Protects: "a field has roots of unity",
		Old: "case uint(f.M)*f.B.TrailingZeroBits() < uint(s.LogN)+1:", New: "case false:",
	},
	{
		Name: "statistical-security", File: "set.go", Run: "TestTooLittle|TestStatistical",
		Protects: "decryptions leave enough statistical security",
		Old:      "if bits := s.StatSecurityBits(); bits < MinStatSecurity && !s.Insecure {",
		New:      "if bits := s.StatSecurityBits(); bits < 0 && !s.Insecure {",
	},
	// Instances.
	{
		Name: "validated", File: "instance.go", Run: paramsUses + "|" + paramsSet + "|TestDoesNotFit|TestSetsAreIndependent",
		Protects: "an instance is of a valid set",
		Old:      "if err := s.Validate(); err != nil {", New: "if err := s.Validate(); false {",
	},
	{
		Name: "use/parties", File: "instance.go", Run: paramsUses, Protects: "there are parties, and not too many",
		Old: "if u.Parties < 2 || u.Parties > MaxParties {", New: "if false {",
	},
	{
		Name: "use/dimension", File: "instance.go", Run: paramsUses,
		Protects: "blocks have a dimension that there are rotations for",
		Old:      "if u.Dim < 1 || u.Dim > maxInner || bits.OnesCount(uint(u.Dim)) != 1 {", New: "if false {",
	},
	{
		Name: "use/ciphertexts", File: "instance.go", Run: paramsUses,
		Protects: "a proof has ciphertexts, and not too many",
		Old:      "if u.U < 1 || u.U > maxU {", New: "if false {",
	},
	{
		Name: "use/inner", File: "instance.go", Run: paramsUses,
		Protects: "the noise is computed for the length of inner products",
		Old:      "if u.Inner < u.Dim || u.Inner > maxInner || u.Inner%u.Dim != 0 {", New: "if false {",
	},
	{
		Name: "fits/noise", File: "instance.go", Run: paramsUses + "|TestDoesNotFit",
		Protects: "the modulus holds the noise",
		Old:      "if miss.Short > 0 {", New: "if false {",
	},
	{
		Name: "fits/slots", File: "instance.go", Run: paramsUses + "|TestDoesNotFit",
		Protects: "a block fits a ciphertext",
		Old:      "if d := s.Slots(f); u.Dim > d {", New: "if d := s.Slots(f); u.Dim > d && false {",
	},
	{
		Name: "fits/proved", File: "instance.go", Run: paramsUses,
		Protects: "only a set with room for proofs of keys has instances for them",
		Old:      "if s.proved && s.Keys != KeysProved {", New: "if false {",
	},
	{
		Name: "fits/flooding", File: "instance.go", Run: paramsUses + "|TestDoesNotFit",
		Protects: "decryption has room for its flooding",
		Old:      "if !i.setDecryption(v) {", New: "if !i.setDecryption(v) && false {",
		Redundant: "the noise that a modulus must hold includes the flooding, so that a set in which the noise fits has room for it",
	},
	{
		Name: "flooding", File: "instance.go", Run: "TestFlooding|TestInstanceHashes",
		Protects: "the flooding is as large as the statistical security asks for",
		Old:      "if e.Cmp(new(big.Int).Lsh(phaseBound, uint(i.Set.LambdaDDec))) >= 0 {",
		New:      "if e.Cmp(new(big.Int).Lsh(phaseBound, uint(i.Set.LambdaDDec/2))) >= 0 {",
	},
	{
		Name: "key-bounds", File: "keyproof.go", Run: "TestProvedInstances|TestTablesOf|TestDefaultSet",
		Protects: "noise under proved keys is bounded by what proofs show",
		Old:      "return provedKeys(s, parties, s.keyChallenges(parties))", New: "return honestKeys(s, parties)",
	},
	{
		Name: "key-proof/set", File: "keyproof.go", Run: "TestKeyProof|TestProvedInstances",
		Protects: "keys are proved under sets with room for it",
		Old:      "case s.Keys != KeysProved:", New: "case false:",
	},
	{
		Name: "key-proof/parties", File: "keyproof.go", Run: "TestKeyProof",
		Protects: "the proof of a key is sized for a number of parties",
		Old:      "case parties < 2 || parties > MaxParties:", New: "case false:",
	},
	{
		Name: "key-proof/dimension", File: "keyproof.go", Run: "TestKeyProof",
		Protects: "the rotations leave challenges",
		Old:      "case dim < 1 || dim&(dim-1) != 0 || 2*s.N()/dim < minKeyChallenges:", New: "case false:",
	},
	// What the hash of a set is of, which every party pins.
	{
		Name: "set-hash/name", File: "hash.go", Run: paramsSetHash, Protects: "the hash of a set is of its name",
		Old: "t.bytes([]byte(s.Name))", New: "",
	},
	{
		Name: "set-hash/ring", File: "hash.go", Run: paramsSetHash,
		Protects: "the hash of a set is of its ring and digits",
		Old:      "t.ints(s.LogN, s.LogB, s.DigitPrimes)", New: "",
	},
	{
		Name: "set-hash/primes", File: "hash.go", Run: paramsSetHash, Protects: "the hash of a set is of its primes",
		Old: "for _, q := range primes {\n\t\t\tt.uint(q)\n\t\t}", New: "",
	},
	{
		Name: "set-hash/secrets", File: "hash.go", Run: paramsSetHash,
		Protects: "the hash of a set is of its distribution of secrets",
		Old:      "t.ints(int(s.Secret))", New: "",
	},
	{
		Name: "set-hash/widths", File: "hash.go", Run: paramsSetHash,
		Protects: "the hash of a set is of the widths of secrets and errors",
		Old:      "t.floats(s.SecretWidth, s.ErrorWidth)", New: "",
	},
	{
		Name: "set-hash/keys", File: "hash.go", Run: paramsSetHash,
		Protects: "the hash of a set says whether its keys are proved",
		Old:      "t.bytes([]byte(s.Keys))", New: "",
	},
	{
		Name: "set-hash/security", File: "hash.go", Run: paramsSetHash,
		Protects: "the hash of a set is of its levels of security",
		Old:      "t.ints(s.LambdaDDec, s.LambdaSnd, s.LambdaSim)", New: "",
	},
	{
		Name: "set-hash/insecure", File: "hash.go", Run: paramsSetHash,
		Protects: "the hash of a set says whether it is for tests",
		Old:      "t.flag(s.Insecure)", New: "",
	},
	// What the hash of an instance is of, which every session begins with.
	{
		Name: "instance-hash/version", File: "hash.go", Run: paramsInstance,
		Protects: "parties of one version understand each other",
		Old:      "t.ints(Version)", New: "",
	},
	{
		Name: "instance-hash/set", File: "hash.go", Run: paramsInstance,
		Protects: "the hash of an instance is of its set",
		Old:      "t.bytes(set[:])", New: "_ = set",
	},
	{
		Name: "instance-hash/field", File: "hash.go", Run: paramsInstance,
		Protects: "the hash of an instance is of the name of its field",
		Old:      "t.bytes([]byte(i.Field.Name))", New: "",
	},
	{
		Name: "instance-hash/base", File: "hash.go", Run: paramsInstance,
		Protects: "the hash of an instance is of its field's base",
		Old:      "t.big(i.Field.B)", New: "",
	},
	{
		Name: "instance-hash/extension", File: "hash.go", Run: paramsInstance,
		Protects: "the hash of an instance is of its field's exponent",
		Old:      "t.ints(i.Field.M)", New: "",
	},
	{
		Name: "instance-hash/root", File: "hash.go", Run: paramsInstance,
		Protects: "the hash of an instance is of the order of slots",
		Old:      "t.big(xi)", New: "_ = xi",
	},
	{
		Name: "instance-hash/use", File: "hash.go", Run: paramsInstance,
		Protects: "the hash of an instance is of its use",
		Old:      "t.ints(i.Use.Parties, i.Use.Dim, i.Use.U, i.Use.Inner)", New: "",
	},
	{
		Name: "instance-hash/sizes", File: "hash.go", Run: paramsInstance,
		Protects: "the hash of an instance is of the sizes of proofs",
		Old:      "t.ints(p.U, p.V)", New: "",
	},
	{
		Name: "instance-hash/widths", File: "hash.go", Run: paramsInstance,
		Protects: "the hash of an instance is of the widths of masks",
		Old:      "t.floats(p.WidthX, p.WidthY, p.WidthR, p.WidthS)", New: "",
	},
	{
		Name: "instance-hash/bounds", File: "hash.go", Run: paramsInstance,
		Protects: "the hash of an instance is of the bounds of responses",
		Old:      "t.big(p.B1)\n\t\tt.big(p.Bt1)", New: "",
	},
	{
		Name: "instance-hash/decryption", File: "hash.go", Run: paramsInstance,
		Protects: "the hash of an instance is of its decryption",
		Old:      "t.ints(i.DDecPrimes)\n\tt.big(i.PhaseBound)\n\tt.big(i.FloodBound)", New: "",
	},
	{
		Name: "instance-hash/proved", File: "hash.go", Run: paramsInstance + "|TestProvedInstances",
		Protects: "the hash of an instance says whether keys were proved",
		Old:      "if i.Set.proved {", New: "if false {",
	},
}
