package main

// thresholdServiceTable has what a party checks of decryptions under threshold keys, and of what is made for them.
var thresholdServiceTable = []mutation{
	{
		Name: "purpose", File: "threshold.go", Run: "TestPurposes", Protects: "keys of another purpose decrypt nothing here",
		Old: "case e.Purpose != purpose:", New: "case false:",
	},
	{
		Name: "passive", File: "threshold.go", Run: "TestPassiveKeysAreRefused", Protects: "keys are used where their security is accepted by name",
		Old: "case !s.AllowPassive:", New: "case false:",
		Redundant: "nothing is made for such keys where the gate refuses that",
	},
	{
		Name: "quorum/size", File: "threshold.go", Run: "TestRefusals", Protects: "as many decrypt as must, and no more",
		Old: "len(parties) != least && !(e.AnyQuorum && len(parties) > least) {", New: "least < 0 {",
	},
	{
		Name: "quorum/order", File: "threshold.go", Run: "TestRefusals", Protects: "a quorum has one name",
		Old: "if n < 0 || i > 0 && p <= parties[i-1] {", New: "if n < 0 {",
	},
	{
		Name: "majority", File: "keys.go", Run: "TestRefusals", Protects: "keys are made where most holders are honest",
		Old: "t < 1 || int64(n) < 2*t+1 || n > share.MaxParties {", New: "false && n+int(t) > share.MaxParties {",
		Redundant: "the protocol refuses it too",
	},
	{
		Name: "request/keys", File: "request.go", Run: "TestRefusals", Protects: "a ciphertext of other keys is refused",
		Old: "if !bytes.Equal(h.GetKeysDigest(), q.epoch.Digest[:]) {", New: "if bytes.Equal(nil, q.epoch.Digest[:]) {",
	},
	{
		Name: "request/digest", File: "intake.go", Run: "TestMalformedRequests", Protects: "what is decrypted is what was approved and signed",
		Old: "if string(x.sum.Sum(nil)) != string(digest) {", New: "if len(digest) == 0 {",
	},
	{
		Name: "request/length", File: "intake.go", Run: "TestMalformedRequests", Protects: "as much comes as the header says",
		Old: "if x.taken != x.most {", New: "if false {",
	},
	{
		Name: "request/part", File: "upload.go", Run: "TestUploads", Protects: "a part of a request is what was sent, and all of it",
		Old: "if size < 0 || tag+size != n {", New: "if size < 0 {",
	},
	{
		Name: "request/bound", File: "intake.go", Run: "TestMalformedRequests", Protects: "no more is taken than the header says",
		Old: "x.taken > x.most {", New: "x.taken < 0*x.most {",
	},
	{
		Name: "request/form", File: "scheme_lwe.go", Run: "TestMalformedRequests", Protects: "ciphertexts have a form",
		Old: "case !ring && h.GetForm() != thresholdv1.CiphertextForm_CIPHERTEXT_FORM_LWE:", New: "case false:",
	},
	{
		Name: "bgv/form", File: "scheme_bgv.go", Run: "TestBGVRefusals", Protects: "keys decrypt ciphertexts of their scheme",
		Old: "case h.GetForm() != thresholdv1.CiphertextForm_CIPHERTEXT_FORM_BGV:", New: "case false:",
	},
	{
		Name: "bgv/no-level", File: "scheme_bgv.go", Run: "TestBGVRefusals", Protects: "the size of ciphertexts is known before anything is allocated",
		Old: "case h.GetLevel() > uint32(s.MaxLevel()):", New: "case h.GetLevel() > uint32(s.MaxLevel())+9:",
	},
	{
		Name: "bgv/coefficients", File: "scheme_bgv.go", Run: "TestBGVRefusals", Protects: "what is opened is said in one way",
		Old: "case h.GetFlooding() != (h.GetCoefficients() == 0) || h.GetCoefficients() > n:", New: "case h.GetCoefficients() > n:",
	},
	{
		Name: "bgv/low", File: "scheme_bgv.go", Run: "TestBGVRefusals", Protects: "ciphertexts have room for a flood",
		Old: "if c.level < s.FloodLevel {", New: "if c.level < s.FloodLevel && false {",
	},
	{
		Name: "bgv/level", File: "scheme_bgv.go", Run: "TestBGVRefusals", Protects: "ciphertexts are of the level that parties agree on",
		Old: "if int(encoded[0]) != c.level {", New: "if int(encoded[0]) != c.level && false {",
	},
	{
		Name: "bgv/automorphisms", File: "scheme_bgv.go", Run: "TestBGVReshareRefusals", Protects: "keys are for automorphisms of their ring",
		Old: "if err := s.CheckGalois(elements(galois)); err != nil {", New: "if err := s.CheckGalois(nil); err != nil {",
	},
	{
		Name: "bgv/share-of-limit", File: "scheme_bgv.go", Run: "TestBGV$", Protects: "all holders together answer for no more than the set allows",
		Old: "return 1 << s.LogDecryptions / uint64(holders-int(threshold))", New: "return 1 << s.LogDecryptions",
	},
	{
		Name: "policy/flooding", File: "request.go", Run: "TestBGVRefusals", Protects: "flooding is for those who may ask for it",
		Old: "if q.flooding() && !q.rule.AllowFlooding {", New: "if false {",
	},
	{
		Name: "flood/begin", File: "flood.go", Run: "TestBGV$|TestFloodingLedger", Protects: "a flood is counted, and its quorum's, before a share is used",
		Old: "if err := f.Vault.BeginFloods(f.run); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "flood/agree", File: "flood.go", Run: "TestFloodingLedger", Protects: "what all have answered is given again",
		Old: "offer.Held[i] = a.Run", New: "_, _ = a, i",
	},
	{
		Name: "flood/claim", File: "flood.go", Run: "TestClaims", Protects: "two requests do not answer for one ciphertext at the same time",
		Old: "if c.open[d] {", New: "if c.open[d] && false {",
	},
	{
		Name: "flood/statement", File: "../../engine/protocol/threshold/decrypt/question.go", Run: "TestFloodingProvenance", Protects: "whose word is taken for flooding has said it of flooding",
		Old: "out = []byte(\"lodge flooding provenance v1\")", New: "out = []byte(\"lodge provenance v1\")",
	},
	{
		Name: "flood/question", File: "../../engine/protocol/threshold/decrypt/question.go", Run: "TestFloodingTogether", Protects: "parties agree on how ciphertexts are decrypted",
		Old: "if q.BGV {\n\t\th =", New: "if q.BGV && false {\n\t\th =",
		Redundant: "terms of the two modes differ too",
	},
	{
		Name: "policy/rule", File: "request.go", Run: "TestPolicy", Protects: "nothing is decrypted that no rule allows",
		Old: "ok = s.Policy.Rule(q.caller.Name, q.epoch.ID, q.epoch.Digest); !ok {", New: "ok = s.Policy.Rule(q.caller.Name, q.epoch.ID, q.epoch.Digest); !ok && false {",
	},
	{
		Name: "policy/keys", File: "../config/threshold.go", Tests: []string{"./services/config"}, Run: "TestDecryptRules", Protects: "a rule that names keys opens no others",
		Old: "return err == nil && bytes.Equal(digest, keys[:])", New: "return err == nil && (true || bytes.Equal(digest, keys[:]))",
	},
	{
		Name: "policy/messages", File: "request.go", Run: "TestPolicy", Protects: "a request is as large as allowed",
		Old: "n > uint64(q.rule.MaxMessages) {", New: "n > 1<<62+uint64(q.rule.MaxMessages) {",
	},
	{
		Name: "policy/paper", File: "request.go", Run: "TestPolicy", Protects: "the form that fails is for those who may ask for it",
		Old: "&& !q.rule.AllowPaperForm {", New: "&& false {",
	},
	{
		Name: "policy/unsigned", File: "request.go", Run: "TestPolicy", Protects: "where ciphertexts come from is signed where that is asked for",
		Old: "if len(q.rule.Provenance) > 0 {", New: "if false {",
	},
	{
		Name: "policy/signature", File: "request.go", Run: "TestPolicy", Protects: "the word of an attester is its own",
		Old: "if !ed25519.Verify(a.Public(), q.asked.Statement(p.GetCircuit()), p.GetSignature()) {", New: "if ed25519.Verify(a.Public(), nil, nil) {",
	},
	{
		Name: "policy/rate", File: "request.go", Run: "TestPolicy", Protects: "a client has as many messages decrypted in an hour as it may",
		Old: "if n > most-sum {", New: "if false {",
	},
	{
		Name: "ledger/client", File: "decrypt.go", Run: "TestRepeats", Protects: "an answer goes to one client and recipient",
		Old: "if a.Client != q.recipients {", New: "if a.Client != q.recipients && false {",
	},
	{
		Name: "ledger/form", File: "../../engine/protocol/threshold/decrypt/question.go", Tests: []string{"./engine/protocol/threshold/decrypt"}, Run: "TestQuestion", Protects: "answers of one form are not given for those of the other",
		Old: "named[0] = 1", New: "_ = named",
	},
	{
		Name: "ledger/some", File: "intake.go", Run: "TestSomeMessages", Protects: "an answer is recorded for its message",
		Old: "list[last].First+list[last].Count == k {", New: "list[last].First+list[last].Count <= k {",
	},
	{
		Name: "request/twice", File: "intake.go", Run: "TestEveryQuorum", Protects: "a message is opened once in a request",
		Old: "if first, twice := seen[d]; twice {", New: "if first, twice := seen[d]; twice && first < 0 {",
		Redundant: "the ledger refuses it too",
	},
	{
		Name: "agree/offer", File: "../../engine/protocol/threshold/decrypt/agree.go", Tests: []string{"./engine/protocol/threshold/decrypt"}, Run: "TestMalformedOffers", Protects: "an offer that is none is blamed on its sender",
		Old: "		if err != nil {\n\t\t\treturn round.Transition[Terms]{}, round.Malformed(w.From, err)\n\t\t}\n\t\tfor", New: "\t\tif err != nil {\n\t\t\tcontinue\n\t\t}\n\t\tfor",
	},
	{
		Name: "answers/runs", File: "../../engine/protocol/threshold/decrypt/answer.go", Tests: []string{"./engine/protocol/threshold/decrypt"}, Run: "TestAnswers", Protects: "parts of different runs are not added up",
		Old: "if x.Run != answers[0][i].Run {", New: "if false {",
	},
	{
		Name: "reshare/from", File: "reshare.go", Run: "TestReshareOfSomethingElse", Protects: "holders give shares of the keys that all mean",
		Old: "case [32]byte(r.spec.GetFromDigest()) != r.from.Digest:", New: "case false:",
	},
	{
		Name: "reshare/galois", File: "reshare.go", Run: "TestBGVReshareRefusals", Protects: "public keys stay as they are",
		Old: "case !slices.Equal(r.from.Galois, r.spec.GetGalois()):", New: "case false:",
	},
	{
		Name: "reshare/size", File: "scheme_bgv.go", Run: "TestBGVHolders", Protects: "keys go to as many holders as there may be",
		Old: "if holders > bgv.MaxParties {", New: "if false {",
	},
	{
		Name: "reshare/holders", File: "reshare.go", Run: "TestReshareOfSomethingElse", Protects: "holders agree on who holds which share",
		Old: "if p > 0 && places[i] != int(p)-1 {", New: "if false {",
	},
}
