package main

const (
	keygenFields  = "TestEachFieldChangesTheChallenge"
	keygenProofs  = "TestCheatsInProofs|TestOnlyTheNorm|TestResponsesNext|TestCopied|TestARogue|TestMalformedProofs|TestEveryResponse|TestScaledSharesAreRefused|FuzzProofs"
	keygenPassive = "TestCheatsAtEvery|TestReplayed|TestMalformedKey|TestARogueKey|TestARushing|FuzzShare"
	keygenStarts  = "TestSecurityOfARun|TestStartRefuses|TestModes|TestDimensions"
)

var keygenTable = []mutation{
	// What the challenge is bound to.
	{
		Name: "challenge/session", File: "proved.go", Run: keygenFields, Protects: "a proof is of its session",
		Old: "st.Session.ID[:], set[:],", New: "set[:],",
	},
	{
		Name: "challenge/set", File: "proved.go", Run: keygenFields, Protects: "a proof is of its parameters",
		Old: "set, p := st.Scheme.Set.Hash(), st.proof\n\treturn [][]byte{\n\t\tst.Session.ID[:], set[:],",
		New: "p := st.proof\n\treturn [][]byte{\n\t\tst.Session.ID[:],",
	},
	{
		Name: "challenge/dimension", File: "proved.go", Run: keygenFields, Protects: "a proof is of its rotations",
		Old: "round.Uint(uint64(st.Dim)), ", New: "",
	},
	{
		Name: "challenge/parties", File: "proved.go", Run: keygenFields,
		Protects: "a proof is of its number of parties",
		Old:      "round.Uint(uint64(st.Session.Parties)), ", New: "",
	},
	{
		Name: "challenge/space", File: "proved.go", Run: keygenFields, Protects: "a proof is of its challenge space",
		Old: "round.Uint(uint64(st.Session.Parties)), round.Uint(uint64(p.Challenges)),",
		New: "round.Uint(uint64(st.Session.Parties)),",
	},
	{
		Name: "challenge/repetitions", File: "proved.go", Run: keygenFields,
		Protects: "a proof is of its number of repetitions",
		Old:      "round.Uint(uint64(p.V)), ", New: "",
	},
	{
		Name: "challenge/bound", File: "proved.go", Run: keygenFields, Protects: "a proof is of its bound",
		Old: "round.Uint(uint64(p.Bound)), ", New: "",
	},
	{
		Name: "challenge/length", File: "proved.go", Run: keygenFields,
		Protects: "a proof is of its length of coefficients",
		Old:      "round.Uint(uint64(p.Bits)), transcript[:],", New: "transcript[:],",
	},
	{
		Name: "challenge/transcript", File: "proved.go", Run: keygenFields,
		Protects: "the challenge comes after the statements of all parties",
		Old:      "round.Uint(uint64(p.Bits)), transcript[:],", New: "round.Uint(uint64(p.Bits)),",
	},
	// Proofs.
	{
		Name: "bound-of-secrets", File: "proofs.go", Run: keygenProofs,
		Protects: "secrets are short: longer ones leak through decryptions",
		Old:      "if !r.norm.Within(z[i]) && ", New: "if false && !r.norm.Within(z[i]) && ",
	},
	{
		Name: "bound-of-errors", File: "proofs.go", Run: keygenProofs,
		Protects: "errors are short: longer ones leak through decryptions",
		Old:      "if !r.norm.Within(z) && ", New: "if false && ",
	},
	{
		Name: "bound-of-both-secrets", File: "proofs.go", Run: keygenProofs,
		Protects: "the ephemeral secret is short too",
		Old:      "if !r.norm.Within(z[i]) && ", New: "if i == 0 && !r.norm.Within(z[i]) && ",
	},
	{
		Name: "share", File: "proofs.go", Run: keygenProofs, Protects: "a share is the one that the challenge was for",
		Old: "if shareDigest(frame[:size]) != p.promises[i].share && ", New: "if false && ",
	},
	{
		Name: "equation", File: "proofs.go", Run: keygenProofs, Protects: "shares are what their secrets make them",
		Old: "if masksDigest(images) != p.promises[i].masks && ",
		New: "if false && masksDigest(images) != p.promises[i].masks && ",
	},
	{
		Name: "equation-every-repetition", File: "equation.go", Run: keygenProofs,
		Protects: "every repetition of an equation counts",
		Old:      "for _, d := range images {", New: "for _, d := range images[1:] {",
	},
	{
		Name: "equation-every-limb", File: "equation.go", Run: "TestEvery|" + keygenProofs,
		Protects: "an equation holds modulo every prime",
		Old:      `return round.HashEach("lodge keygen mask limbs", len(p.C), func`,
		New:      `return round.HashEach("lodge keygen mask limbs", len(p.C)-1, func`,
	},
	{
		Name: "verdict", File: "proofs.go", Run: keygenProofs, Protects: "a proof that failed is refused",
		Old: "if r.blame != nil {\n\t\treturn round.Transition[Result]{}, r.blame\n\t}", New: "",
	},
	{
		Name: "promises", File: "equation.go", Run: keygenProofs, Protects: "the digest of the share binds its sender",
		Old: `func shareDigest(packed []byte) round.Digest { return round.Hash("lodge keygen share", packed) }`,
		New: `func shareDigest(packed []byte) round.Digest { return round.Hash("lodge keygen share", packed[:8]) }`,
	},
	{
		Name: "frames-of-proofs", File: "proofs.go", Run: keygenProofs, Protects: "every equation has a proof",
		Old: "if last != (index == r.frames()-1) {", New: "if false {",
	},
	{
		Name: "length-of-heads", File: "proofs.go", Run: keygenProofs,
		Protects: "the responses for secrets have one length",
		Old:      "if len(frame) != r.headSize() {", New: "if len(frame) < r.headSize() {",
	},
	{
		Name: "length-of-equations", File: "proofs.go", Run: keygenProofs,
		Protects: "the proof of an equation has one length",
		Old:      "if len(frame) != r.frameSize(at) {", New: "if len(frame) < r.frameSize(at) {",
	},
	{
		Name: "head-decodes", File: "proofs.go", Run: keygenProofs, Protects: "responses for secrets are canonical",
		Old:       "if err := codec.DecodeSigned(z[i], r.proof.Bits, frame[i*r.responseSize():(i+1)*r.responseSize()]); err != nil {",
		New:       "if err := codec.DecodeSigned(z[i], r.proof.Bits, frame[i*r.responseSize():(i+1)*r.responseSize()]); false {",
		Redundant: "N coefficients have no padding, and the length of the frame is checked before: every frame decodes",
	},
	{
		Name: "share-decodes", File: "proofs.go", Run: keygenProofs, Protects: "shares are canonical",
		Old: "if err := codec.DecodePoly(share.C, r.Scheme.Q.Primes(), frame[:size]); err != nil {",
		New: "if err := codec.DecodePoly(share.C, r.Scheme.Q.Primes(), frame[:size]); false {",
	},
	{
		Name: "response-decodes", File: "proofs.go", Run: keygenProofs, Protects: "responses for errors are canonical",
		Old:       "if err := codec.DecodeSigned(z, r.proof.Bits, frame[size+v*bytes:size+(v+1)*bytes]); err != nil {",
		New:       "if err := codec.DecodeSigned(z, r.proof.Bits, frame[size+v*bytes:size+(v+1)*bytes]); false {",
		Redundant: "N coefficients have no padding, and the length of the frame is checked before: every frame decodes",
	},
	{
		Name: "opened-decodes", File: "proved.go", Run: keygenProofs + "|TestMalformed",
		Protects: "h0 and h1 are canonical",
		Old:      "if err := codec.DecodePoly(p.C, o.scheme.Q.Primes(), frame); err != nil {",
		New:      "if err := codec.DecodePoly(p.C, o.scheme.Q.Primes(), frame); false {",
	},
	// Both kinds of key generation.
	{
		Name: "agree", File: "rounds.go", Run: keygenPassive + "|TestCheats",
		Protects: "all parties have the same keys",
		Old:      "if err := round.Compare(r.Session, in, nameAgree, CheckAgree, r.digest); err != nil {\n\t\treturn round.Transition[Result]{}, err\n\t}",
		New:      "",
	},
	{
		Name: "agree-on-all", File: "keys.go", Run: "TestEveryPolynomial",
		Protects: "all polynomials of the keys are compared",
		Old:      "total := EncodedFrames(s, k.Dim)", New: "total := EncodedFrames(s, k.Dim) - 1",
	},
	{
		Name: "commitment", File: "../round/commit.go", Run: keygenPassive,
		Protects: "nobody chooses its share of a key after those of others",
		Old:      "if Commitment(r.Session.ID, r.step, p, sum) != r.commitments[p] && ",
		New:      "if false && Commitment(r.Session.ID, r.step, p, sum) != r.commitments[p] && ",
	},
	{
		Name: "commitment-of-proofs", File: "../round/commit.go", Run: keygenProofs,
		Protects: "nobody chooses its statement after those of others",
		Old:      "if Commitment(r.Session.ID, r.step, p, sum) != r.commitments[p] && ",
		New:      "if false && Commitment(r.Session.ID, r.step, p, sum) != r.commitments[p] && ",
	},
	{
		Name: "echo", File: "../round/echo.go", Run: "TestEquivocation",
		Protects: "all parties have the same proofs",
		Old:      "if len(conflicts) == 0 {", New: "if true {",
	},
	{
		Name: "passive-decodes", File: "party.go", Run: keygenPassive, Protects: "shares are canonical",
		Old: "if err := codec.DecodePoly(f.buffer.C, q.Primes(), frame); err != nil {",
		New: "if err := codec.DecodePoly(f.buffer.C, q.Primes(), frame); false {",
	},
	{
		Name: "modes", File: "config.go", Run: keygenStarts,
		Protects: "there are proved keys and passive ones, nothing between",
		Old:      "case c.Security != Passive && c.Security != Proved:", New: "case false:",
	},
	{
		Name: "default-is-proved", File: "rounds.go", Run: keygenStarts,
		Protects: "keys are proved where the set has room",
		Old:      "c.Security = c.Scheme.Set.KeygenSecurity()", New: "c.Security = Passive",
	},
	{
		Name: "dimension", File: "config.go", Run: keygenStarts, Protects: "rotations are ones that challenges respect",
		Old: "if d < 1 || d&(d-1) != 0 || d > s.N()/2 {", New: "if false {",
	},
	{
		Name: "stored-residues", File: "keys.go", Run: "TestKeysAreStored|FuzzDecode",
		Protects: "stored keys are canonical",
		Old:      "if err := codec.DecodePoly(p.C, s.Q.Primes(), frame); err != nil {\n\t\t\t\treturn nil, fmt",
		New:      "if err := codec.DecodePoly(p.C, s.Q.Primes(), frame); false {\n\t\t\t\treturn nil, fmt",
	},
	{
		Name: "stored-end", File: "keys.go", Run: "TestKeysAreStored|FuzzDecode",
		Protects: "nothing stands behind stored keys",
		Old:      "return nil, fmt.Errorf(\"keygen: %w after the keys\", codec.ErrTrailing)", New: "return k, nil",
	},
	{
		Name: "doubled", File: "proofs.go", Run: "TestProvedKeysAreDoubled|TestProvedKeysWork",
		Protects: "keys are what proofs are about: twice the shares",
		Old:      "q.Double(r.sums[i], r.sums[i])\n\t\tif r.equations", New: "if r.equations",
	},
	// Who judges a proof without having been there.
	{
		Name: "judge/dimension", File: "judge.go", Run: "TestJudge", Protects: "keys are judged by rotations that there are",
		Old: "if err := checkDim(s, dim); err != nil {\n\t\treturn nil, err\n\t}\n\tproof", New: "proof",
		Redundant: "the parameters of the proof are of no other dimensions",
	},
	{
		Name: "judge/frame", File: "judge.go", Run: "TestJudge", Protects: "a frame is one of the proof",
		Old: "if index < 0 || index >= st.frames() {", New: "if false {",
	},
	{
		Name: "judge/length", File: "judge.go", Run: "TestJudge", Protects: "a frame has its length",
		Old: "if len(frame) != size {", New: "if false {",
	},
	{
		Name: "judge/share-decodes", File: "judge.go", Run: "TestJudge", Protects: "shares are canonical",
		Old: "if _, err := j.poly(frame[:start]); err != nil {", New: "if _, err := j.poly(frame[:start]); false {",
	},
	{
		Name: "judge/bound", File: "judge.go", Run: "TestJudge", Protects: "responses are short",
		Old: "if !j.st.norm.Within(z) {", New: "if !j.st.norm.Within(z) && index < 0 {",
	},
	{
		Name: "judge/equation", File: "judge.go", Run: "TestJudge", Protects: "an equation is one of the proof",
		Old: "if equation < 0 || equation >= len(st.equations) || ", New: "if ",
	},
	{
		Name: "judge/statement", File: "judge.go", Run: "TestJudge", Protects: "a statement has its length",
		Old: "len(x.Statement) != j.StatementSize() || ", New: "",
	},
	{
		Name: "judge/heads", File: "judge.go", Run: "TestJudge", Protects: "an equation is judged with all responses for secrets",
		Old: " || len(x.Heads) != st.proof.V {", New: " {",
	},
	{
		Name: "judge/share", File: "judge.go", Run: "TestJudge", Protects: "a share is the one of its statement",
		Old: "} else if shareDigest(packed) != promise.share {", New: "} else if false {",
	},
	{
		Name: "judge/opened-share-decodes", File: "judge.go", Run: "TestJudge", Protects: "shares are canonical",
		Old: "share, err := j.poly(packed)\n\tif err != nil {", New: "share, err := j.poly(packed)\n\tif false {",
	},
	{
		Name: "judge/masks", File: "judge.go", Run: "TestJudge", Protects: "responses open their masks",
		Old: "if masksDigest(images) != promise.masks {", New: "if masksDigest(images) == promise.masks {",
	},
	{
		Name: "judge/sum-of-all", File: "judge.go", Run: "TestJudge", Protects: "h0 and h1 are the sums of all parties'",
		Old: "if len(frames) != j.st.Session.Parties {", New: "if false {",
	},
	{
		Name: "judge/sum-decodes", File: "judge.go", Run: "TestJudge", Protects: "h0 and h1 are canonical",
		Old: "p, err := j.poly(frame)\n\t\tif err != nil {", New: "p, err := j.poly(frame)\n\t\tif err != nil && false {",
	},
	{
		Name: "judge/opening-nonce", File: "judge.go", Run: "TestJudge", Protects: "an opening has its nonce",
		Old: "if len(frame) != round.NonceSize {", New: "if false {",
	},
	{
		Name: "judge/opening-decodes", File: "judge.go", Run: "TestJudge", Protects: "an opening has polynomials",
		Old: "\t\t_, err := j.poly(frame)\n\t\treturn err\n", New: "\t\t_, _ = j.poly(frame)\n\t\treturn nil\n",
	},
}
