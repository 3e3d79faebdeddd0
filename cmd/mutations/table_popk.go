package main

const (
	popkFields  = "TestEachFieldChangesTheChallenge"
	popkClient  = "Client|FuzzVerify"
	popkCheats  = "TestCheats|TestEvery|TestLong|TestALong|TestBound|TestAnother|TestDisagreement|TestResponses|TestOne|TestReplay|TestVerdict|TestEquivocation|Fuzz"
	popkOpening = "TestOpens|TestMaskDigest|TestAnother|TestEveryRepetition|TestCheats"
)

var popkTable = []mutation{
	// The challenge.
	{
		Name: "challenge/session", File: "config.go", Run: popkFields, Protects: "a proof is of its session",
		Old: "c.Session.ID[:], []byte(c.Step), h[:], round.Uint(uint64(p.U))",
		New: "[]byte(c.Step), h[:], round.Uint(uint64(p.U))",
	},
	{
		Name: "challenge/step", File: "config.go", Run: popkFields, Protects: "a proof is of its step of the session",
		Old: "c.Session.ID[:], []byte(c.Step), h[:], round.Uint(uint64(p.U))",
		New: "c.Session.ID[:], h[:], round.Uint(uint64(p.U))",
	},
	{
		Name: "challenge/instance", File: "config.go", Run: popkFields, Protects: "a proof is of its parameters",
		Old: "[]byte(c.Step), h[:], round.Uint(uint64(p.U))", New: "[]byte(c.Step), h[:0], round.Uint(uint64(p.U))",
	},
	{
		Name: "challenge/ciphertexts", File: "config.go", Run: popkFields,
		Protects: "a proof is of its number of ciphertexts",
		Old:      "h[:], round.Uint(uint64(p.U)), round.Uint(uint64(p.V))", New: "h[:], round.Uint(uint64(p.V))",
	},
	{
		Name: "challenge/repetitions", File: "config.go", Run: popkFields,
		Protects: "a proof is of its number of repetitions",
		Old:      "round.Uint(uint64(p.V)), round.Uint(kind)", New: "round.Uint(kind)",
	},
	{
		Name: "challenge/kind", File: "config.go", Run: popkFields,
		Protects: "a proof of a MAC key is none of other ciphertexts, and one party's is none of all",
		Old:      "round.Uint(uint64(p.V)), round.Uint(kind), c.KeyHash[:]",
		New:      "round.Uint(uint64(p.V)), round.Uint(0 * kind), c.KeyHash[:]",
	},
	{
		Name: "challenge/prover", File: "config.go", Run: popkFields,
		Protects: "a proof of one party alone is no other party's",
		Old:      "kind = 2 + uint64(*c.Only)", New: "kind = 2",
	},
	{
		Name: "challenge/key", File: "config.go", Run: popkFields, Protects: "a proof is of its public key",
		Old: "c.KeyHash[:], opened[:],", New: "opened[:],",
	},
	{
		Name: "challenge/statements", File: "config.go", Run: popkFields + "|TestAChallengeBefore",
		Protects: "the challenge comes after all statements",
		Old:      "c.KeyHash[:], opened[:],", New: "c.KeyHash[:],",
	},
	// The statements, of every party.
	{
		Name: "commitment", File: "proofs.go", Run: popkCheats,
		Protects: "the ciphertexts are those that the challenge was for",
		Old:      "case in.Digest(from, r.ciphertextsName()) != s.sum &&",
		New:      "case false && in.Digest(from, r.ciphertextsName()) != s.sum &&",
	},
	{
		Name: "equation", File: "proofs.go", Run: popkCheats, Protects: "a response is for the ciphertexts",
		Old: "if a.wrong && (r.blame == nil", New: "if false && (r.blame == nil",
	},
	{
		Name: "equation-verdict", File: "proofs.go", Run: popkCheats, Protects: "a proof that failed is refused",
		Old: "case r.blame != nil && r.blame.Party == from &&", New: "case false && r.blame.Party == from &&",
	},
	{
		Name: "equation-rest", File: "proofs.go", Run: popkCheats,
		Protects: "the responses that wait when the last has come are checked",
		Old:      "if err := r.verify(ctx); err != nil {\n\t\treturn none, err\n\t}", New: "",
	},
	{
		Name: "equation-masks", File: "statement.go", Run: popkOpening, Protects: "a response opens its mask",
		Old: "return bytes.Equal(d[:], digest)", New: "_ = bytes.Equal(d[:], digest)\n\treturn true",
	},
	{
		Name: "equation-whole-digest", File: "statement.go", Run: popkOpening,
		Protects: "the whole digest of a mask is compared",
		Old:      "return bytes.Equal(d[:], digest)", New: "return bytes.Equal(d[:4], digest[:4])",
	},
	{
		Name: "equation-own-repetition", File: "statement.go", Run: popkOpening + "|TestFolded",
		Protects: "each repetition opens a mask of its own",
		Old:      "func (t *statement) mask(j int) []byte { return digestAt(t.masks, j) }",
		New:      "func (t *statement) mask(int) []byte { return digestAt(t.masks, 0) }",
	},
	{
		Name: "mask-digest", File: "statement.go", Run: popkOpening,
		Protects: "the digest of a mask is of both of its polynomials",
		Old:      "slices.Concat(mask.C0.C, mask.C1.C), s.Q.Primes()", New: "slices.Concat(mask.C0.C), s.Q.Primes()",
	},
	{
		Name: "bound", File: "proofs.go", Run: popkCheats, Protects: "witnesses are short",
		Old: `if check := a.fault(p); check != "" && !r.Session`, New: `if check := a.fault(p); false && !r.Session`,
	},
	{
		Name: "bound-of-messages", File: "response.go", Run: popkCheats, Protects: "messages are short",
		Old: "if !r.message(p).Within(p.B1) {", New: "if false {",
	},
	{
		Name: "bound-of-randomness", File: "response.go", Run: popkCheats,
		Protects: "the randomness of ciphertexts is short",
		Old:      "if !r.t[i].Within(p.Bt1) {", New: "if false && !r.t[i].Within(p.Bt1) {",
	},
	{
		Name: "bound-of-all-randomness", File: "response.go", Run: popkCheats,
		Protects: "each of the three polynomials of randomness is short",
		Old:      "for i := range r.t {\n\t\tif !r.t[i].Within", New: "for i := range r.t[:2] {\n\t\tif !r.t[i].Within",
	},
	{
		Name: "diagonal", File: "response.go", Run: "TestCheats|TestALong|TestAWitness|FuzzResponse",
		Protects: "a MAC key is one constant in every slot: its response lies in the subring",
		Old:      "copy(r.z.Coeff(i*n/p.Terms), z.Coeff(i))", New: "copy(r.z.Coeff(i), z.Coeff(i))",
	},
	{
		Name: "last-ciphertext", File: "proofs.go", Run: popkCheats,
		Protects: "as many ciphertexts come as were promised",
		Old:      "last != (index == want-1)", New: "want < 0 || last && false && index > 0",
	},
	{
		Name: "ciphertext-decodes", File: "proofs.go", Run: popkCheats, Protects: "ciphertexts are canonical",
		Old: "if err := codec.DecodePoly(r.buffer.C, r.Scheme.Q.Primes(), frame); err != nil {\n\t\treturn round.Malformed(from, err)\n\t}",
		New: "_ = codec.DecodePoly(r.buffer.C, r.Scheme.Q.Primes(), frame)",
	},
	{
		Name: "response-after-ciphertexts", File: "proofs.go", Run: popkCheats,
		Protects: "the equation is checked against all ciphertexts",
		Old:      "case r.others[from].polys < 2*p.U:", New: "case false:",
	},
	{
		Name: "last-response", File: "proofs.go", Run: popkCheats, Protects: "every repetition has a response",
		Old: "case last != (index == p.V-1):", New: "case false:",
	},
	{
		Name: "response-decodes", File: "proofs.go", Run: popkCheats, Protects: "responses are canonical",
		Old: "if err := a.decode(p, frame); err != nil {\n\t\treturn round.Malformed(from, err)\n\t}",
		New: "_ = a.decode(p, frame)",
	},
	{
		Name: "response-length", File: "response.go", Run: "Fuzz|" + popkCheats, Protects: "a response has one length",
		Old: "if len(frame) != responseSize(n, p) {", New: "if len(frame) < responseSize(n, p) {",
	},
	{
		Name: "serves", File: "config.go", Run: "TestStartRefuses",
		Protects: "the instance of a proof is that of the scheme and of the number of parties",
		Old:      "return c.Scheme.Serves(c.Instance, c.Session.Parties)", New: "return nil",
	},
	{
		Name: "one-prover", File: "config.go", Run: "TestOne|TestStart|TestCheats",
		Protects: "the party that proves alone is one of the session's",
		Old:      "case c.Only != nil && (*c.Only < 0 || int(*c.Only) >= c.Session.Parties || c.MACKey):",
		New:      "case false:",
	},
	{
		Name: "doubled-ciphertexts", File: "proofs.go", Run: "TestHonest",
		Protects: "ciphertexts are what proofs are about: twice the sum",
		Old:      "for _, ct := range r.sums {\n\t\tr.Scheme.Double(ct, ct)\n\t}", New: "",
	},
	// The proof of a client.
	{
		Name: "client/challenge/prover", File: "client.go", Run: popkClient,
		Protects: "a client's proof is no other client's",
		Old:      "[]byte(c.Prover), c.Context, h[:]", New: "c.Context, h[:]",
	},
	{
		Name: "client/challenge/context", File: "client.go", Run: popkClient,
		Protects: "a client's proof is of its context",
		Old:      "[]byte(c.Prover), c.Context, h[:]", New: "[]byte(c.Prover), nil, h[:]",
	},
	{
		Name: "client/challenge/instance", File: "client.go", Run: popkClient,
		Protects: "a client's proof is of its parameters",
		Old:      "c.Context, h[:], c.KeyHash[:], statement", New: "c.Context, h[:0], c.KeyHash[:], statement",
	},
	{
		Name: "client/challenge/key", File: "client.go", Run: popkClient, Protects: "a client's proof is of its key",
		Old: "c.Context, h[:], c.KeyHash[:], statement", New: "c.Context, h[:], statement",
	},
	{
		Name: "client/challenge/statement", File: "client.go", Run: popkClient,
		Protects: "a client's challenge comes after its ciphertexts and masks",
		Old:      "h[:], c.KeyHash[:], statement", New: "h[:], c.KeyHash[:], statement[:0]",
	},
	{
		Name: "client/challenge/masks", File: "client.go", Run: popkClient,
		Protects: "a client's challenge comes after its masks",
		Old:      "c.challenge(slices.Concat(ciphertexts, digests))", New: "c.challenge(slices.Concat(ciphertexts))",
	},
	{
		Name: "client/lengths", File: "client.go", Run: popkClient, Protects: "a client's proof has one length",
		Old: "if len(ciphertexts) != c.CiphertextSize() || len(proof) != c.ProofSize() {",
		New: "if len(ciphertexts) < c.CiphertextSize() || len(proof) < c.ProofSize() {",
	},
	{
		Name: "client/bound", File: "client.go", Run: popkClient, Protects: "a client's witnesses are short",
		Old: `if check := r.fault(sizes); check != "" {`, New: `if check := r.fault(sizes); false {`,
	},
	{
		Name: "client/equation", File: "client.go", Run: popkClient,
		Protects: "a client's response is for its ciphertexts",
		Old:      "if !opens(c.Scheme, sizes, c.Key, r, digestAt(digests, j), subtract) {",
		New:      "if !opens(c.Scheme, sizes, c.Key, r, digestAt(digests, j), subtract) && false {",
	},
	{
		Name: "client/every-repetition", File: "client.go", Run: popkClient + "|TestEvery",
		Protects: "every repetition of a client's proof counts",
		Old:      "for j := range sizes.V {\n\t\tif err := ctx.Err()",
		New:      "for j := range sizes.V - 1 {\n\t\tif err := ctx.Err()",
	},
	{
		Name: "client/ciphertext-decodes", File: "client.go", Run: popkClient,
		Protects: "a client's ciphertexts are canonical",
		Old:      "if err := codec.DecodePoly(part(list, f), primes, ciphertexts[f*poly:(f+1)*poly]); err != nil {",
		New:      "if err := codec.DecodePoly(part(list, f), primes, ciphertexts[f*poly:(f+1)*poly]); false {",
	},
	{
		Name: "client/response-decodes", File: "client.go", Run: popkClient,
		Protects:  "a client's responses are canonical",
		Old:       "if err := r.decode(sizes, answers[j*size:(j+1)*size]); err != nil {",
		New:       "if err := r.decode(sizes, answers[j*size:(j+1)*size]); false {",
		Redundant: "N coefficients have no padding, and the length of a proof is checked before: every frame decodes",
	},
	{
		Name: "client/serves", File: "client.go", Run: "TestStartRefuses",
		Protects: "the instance of a client's proof is that of the scheme",
		Old:      "return c.Scheme.Serves(c.Instance, c.Instance.Use.Parties)", New: "return nil",
	},
	{
		Name: "client/doubled", File: "client.go", Run: popkClient,
		Protects: "what is decrypted is what the proof is about: twice the ciphertexts",
		Old:      "c.Scheme.Double(ct, ct)", New: "_ = ct",
	},
	// Who judges a proof without having been there; the file that he is shown may be made by two who cheat.
	{
		Name: "judge/prover", File: "judge.go", Run: "TestJudge", Protects: "who does not prove is not judged",
		Old: " || !c.proves(culprit):", New: ":",
	},
	{
		Name: "judge/party", File: "judge.go", Run: "TestJudge", Protects: "who is judged is a party",
		Old: "case culprit < 0 || int(culprit) >= c.Session.Parties || ", New: "case ",
	},
	{
		Name: "judge/serves", File: "judge.go", Run: "TestJudge", Protects: "a proof is judged by parameters for its parties",
		Old: "return &Judge{c, culprit}, c.Scheme.Serves(c.Instance, c.Session.Parties)", New: "return &Judge{c, culprit}, nil",
	},
	{
		Name: "judge/promise", File: "judge.go", Run: "TestJudge", Protects: "a statement has its length",
		Old: "if len(opening) != j.StatementSize() {\n\t\treturn sum, errLength", New: "if false {\n\t\treturn sum, errLength",
	},
	{
		Name: "judge/statement", File: "judge.go", Run: "TestJudge", Protects: "a statement has its length",
		Old: "if len(opening) != j.StatementSize() {\n\t\treturn nil, errLength", New: "if false {\n\t\treturn nil, errLength",
	},
	{
		Name: "judge/key", File: "judge.go", Run: "TestJudge", Protects: "an equation is judged under a key",
		Old: "if j.c.Key == nil {", New: "if false {",
	},
	{
		Name: "judge/more-ciphertexts", File: "judge.go", Run: "TestJudge", Protects: "more ciphertexts than there are do not end the process that judges",
		Old: "e.st.polys >= most {", New: "most < 0 {",
	},
	{
		Name: "judge/ciphertext-decodes", File: "judge.go", Run: "TestJudge", Protects: "ciphertexts are canonical",
		Old: "if err := codec.DecodePoly(e.buffer.C, e.j.c.Scheme.Q.Primes(), frame); err != nil {", New: "if err := codec.DecodePoly(e.buffer.C, e.j.c.Scheme.Q.Primes(), frame); false {",
	},
	{
		Name: "judge/all-ciphertexts", File: "judge.go", Run: "TestJudge", Protects: "a proof is judged by all its ciphertexts",
		Old: "if e.st.polys != 2*p.U || ", New: "if ",
	},
	{
		Name: "judge/repetition", File: "judge.go", Run: "TestJudge", Protects: "a response is to one of the repetitions",
		Old: " || repetition < 0 || repetition >= p.V {", New: " {",
	},
	{
		Name: "judge/response-decodes", File: "judge.go", Run: "TestJudge", Protects: "responses are canonical",
		Old: "if err := r.decode(p, frame); err != nil {\n\t\treturn false, err", New: "if err := r.decode(p, frame); false {\n\t\treturn false, err",
	},
	{
		Name: "judge/bound-decodes", File: "judge.go", Run: "TestJudge", Protects: "responses are canonical",
		Old: "if err := r.decode(j.c.sizes(), frame); err != nil {", New: "if err := r.decode(j.c.sizes(), frame); false {",
	},
	{
		Name: "judge/own-mask", File: "judge.go", Run: "TestJudge", Protects: "a response is judged by the mask of its repetition",
		Old: "e.st.mask(repetition), ", New: "e.st.mask(0), ",
	},
}
