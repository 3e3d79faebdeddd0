package main

var decryptionTable = []mutation{
	{
		Name: "proof", File: "decryption.go", Run: "TestDecryption",
		Protects: "a ciphertext is decrypted for who knows what it holds",
		Old:      "if err != nil {\n\t\treturn key, nil, rpc.Errorf(rpc.Invalid, \"prove",
		New:      "if err != nil && false {\n\t\treturn key, nil, rpc.Errorf(rpc.Invalid, \"prove",
		Tests:    []string{"./services/party"},
	},
	{
		Name: "prover", File: "decryption.go", Run: "TestDecryption",
		Protects: "nobody has another's ciphertext decrypted",
		Old:      "Prover: caller, Context",
		New:      `Prover: "client-a", Context`,
		Tests:    []string{"./services/party"},
	},
	{
		Name: "context", File: "decryption.go", Run: "TestDecryption",
		Protects: "a proof is of its context",
		Old:      "Context: h.GetContext(), Workers",
		New:      "Workers",
		Tests:    []string{"./services/party"},
	},
	{
		Name: "purpose", File: "decryption.go", Run: "TestDecryption",
		Protects: "decryption is under keys that were made for it",
		Old:      "job.PurposeName(jobv1.Purpose_PURPOSE_DECRYPTION))\n\tif err",
		New:      "job.PurposeName(jobv1.Purpose_PURPOSE_TRIPLES))\n\tif err",
		Tests:    []string{"./services/party"},
	},
	{
		Name: "quorum", File: "decryption.go", Run: "TestDecryption",
		Protects: "a decryption is by all parties",
		Old:      "if !slices.Equal(h.GetQuorum(), everybody(s.Parties)) {",
		New:      "if !slices.Equal(h.GetQuorum(), everybody(s.Parties)) && false {",
		Tests:    []string{"./services/party"},
	},
	{
		Name: "recorded", File: "decryption.go", Run: "TestDecryption",
		Protects: "an answer is recorded before it leaves",
		Old:      "held, first, err := s.Vault.RecordDecryption(key, q.caller, fresh)",
		New:      "held, first, err := fresh, true, error(nil)",
		Tests:    []string{"./services/party"},
	},
	{
		Name: "rate", File: "decryption.go", Run: "TestDecryption",
		Protects: "answers are no more than the policy says",
		Old:      "if err := s.Sessions.Gate.AdmitDecryption(); err != nil {",
		New:      "if err := s.Sessions.Gate.AdmitDecryption(); false {",
		Tests:    []string{"./services/party"},
	},
	{
		Name: "size", File: "decryption.go", Run: "TestDecryption",
		Protects: "a client sends no more than a ciphertext and its proof",
		Old:      "if len(q.ciphertext) > q.client.CiphertextSize() || len(q.proof) > q.client.ProofSize() {",
		New:      "if false {",
		Tests:    []string{"./services/party"},
	},
	{
		Name: "header", File: "decryption.go", Run: "TestDecryption",
		Protects: "a request begins with its header",
		Old:      "if h == nil || len(h.GetContext()) > maxContext {",
		New:      "if len(h.GetContext()) > maxContext {",
		Tests:    []string{"./services/party"}, Redundant: "a request without a header names no quorum, and is refused for that",
	},
}
