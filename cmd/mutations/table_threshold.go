package main

// thresholdKeysTable has one verification for each check of the keys of threshold LWE.
var thresholdKeysTable = []mutation{
	{
		Name: "bound", File: "deal.go", Run: "TestBound", Protects: "dealers cannot choose shares when they know the coin",
		Old: "in.Digest(p, nameShares) != r.given.Bound[from] && !r.Session.Hooks.Skips(CheckBound) {", New: "false {",
	},
	{
		Name: "degree", File: "deal.go", Run: "Degree", Protects: "a party that was dealt wrong shares complains",
		Old: "Check: CheckDegree, Mine: complaints,", New: "Check: CheckDegree, Mine: make([]byte, r.n),",
	},
	{
		Name: "opened", File: "report.go", Run: "TestKingAndSender", Protects: "opened values are those of the shares",
		Old: "err != nil && !r.Session.Hooks.Skips(CheckOpened) {", New: "err != nil && false {",
	},
	{
		Name: "square", File: "report.go", Run: "TestSquareThatIsNone", Protects: "a bit is a bit",
		Old: "if r.unsquare && !r.Session.Hooks.Skips(CheckSquare) {", New: "if false {",
	},
	{
		Name: "agree", File: "report.go", Run: "TestOtherKeys", Protects: "all have the same keys",
		Old: "if err := round.Compare(r.Session, in, nameAgree, CheckAgree, r.digest); err != nil {",
		New: "if err := round.Compare(r.Session, in, nameAgree, CheckAgree, r.digest); err != nil && false {",
	},
}

// reshareTable has one for each check of handing shares over.
var reshareTable = []mutation{
	{
		Name: "degree", File: "rounds.go", Protects: "complaints about new shares have consequences",
		Old: "err != nil && !r.Session.Hooks.Skips(CheckDegree) {", New: "err != nil && false {",
	},
	{
		Name: "value", File: "rounds.go", Protects: "what is handed over is what was there",
		Old: "err != nil && !r.Session.Hooks.Skips(CheckValue) {", New: "err != nil && false {",
	},
	{
		Name: "degree/primes", File: "rounds.go", Run: "TestWrongDegree", Protects: "new shares are checked modulo every prime",
		Old: "for k, sum := range r.sums[i] {", New: "for k, sum := range r.sums[i][:min(1, len(r.sums[i]))] {",
	},
	{
		Name: "value/primes", File: "rounds.go", Run: "TestWrongValue$", Protects: "what is handed over is what was there modulo every prime",
		Old: "for k := range r.fields {\n\t\tif err := r.judgeValues(k)", New: "for k := range r.fields[:1] {\n\t\tif err := r.judgeValues(k)",
	},
}

var otTable = []mutation{
	{
		Name: "consistency", File: "extension.go", Protects: "a receiver makes the same choice in every column",
		Old: "if subtle.ConstantTimeByteEq(wrong, 0) == 0 {", New: "if subtle.ConstantTimeByteEq(wrong, 0) == 0 && false {",
	},
	{
		Name: "length", File: "extension.go", Protects: "an extension has one encoding",
		Old: "if len(frame) != FrameSize(n) {", New: "if len(frame) < FrameSize(n) {",
	},
	{
		Name: "order", File: "base.go", Protects: "base transfers are in the group of prime order",
		Old: "if p.Equal(edwards25519.NewIdentityPoint()) == 1 {", New: "if false {",
	},
	{
		Name: "cofactor", File: "base.go", Protects: "answers say nothing of choices, whatever the offer",
		Old: "a8, err := timesCofactor(offer)", New: "a8, err := new(edwards25519.Point).SetBytes(offer)",
	},
	{
		Name: "once", File: "batch.go", Protects: "a transfer is used once",
		Old: "b.rows[b.used] = block{}\n\tb.used++\n\treturn w0, w1", New: "return w0, w1",
	},
	{
		Name: "once-of-residues", File: "residues.go", Protects: "a transfer is used once, for residues too",
		Old: "at, q := uint64(b.used), b.rows[b.used]\n\t\tb.rows[b.used] = block{}",
		New: "at, q := uint64(b.used), b.rows[b.used]",
	},
	{
		Name: "key", File: "base.go", Protects: "sessions and parties have keys of their own",
		Old: `[]byte("lodge ot key"), id[:], index`, New: `[]byte("lodge ot key"), index`,
	},
}

var masksTable = []mutation{
	{
		Name: "offer", File: "transfers.go", Protects: "an offer that is no point is its sender's fault",
		Old: "if err != nil {\n\t\t\treturn round.Malformed(p, err)\n\t\t}\n\t\tr.senders",
		New: "if err != nil {\n\t\t\treturn err\n\t\t}\n\t\tr.senders",
	},
	{
		Name: "reply", File: "transfers.go", Protects: "a reply that has no points is its sender's fault",
		Old: "in.Bytes(p, r.name(\"reply\"))); err != nil {\n\t\t\treturn round.Malformed(p, err)",
		New: "in.Bytes(p, r.name(\"reply\"))); err != nil {\n\t\t\treturn err",
	},
	{
		Name: "consistency", File: "transfers.go", Protects: "whose choices differ is named for it",
		Old: "case errors.Is(err, ot.ErrConsistency):", New: "case errors.Is(err, ot.ErrConsistency) && false:",
	},
	{
		Name: "chunks", File: "transfers.go", Protects: "all transfers are there",
		Old: "if last != (index == ot.Chunks(r.transfers())-1) {", New: "if last != (index == ot.Chunks(r.transfers())-1) && false {",
	},
	{
		Name: "extension", File: "transfers.go", Protects: "a malformed extension is its sender's fault",
		Old: "case err != nil:\n\t\treturn round.Malformed(from, err)", New: "case err != nil:\n\t\treturn err",
	},
	{
		Name: "corrections", File: "chain.go", Protects: "corrections have one encoding",
		Old: "if len(message) != r.correctionSize() {", New: "if len(message) > r.correctionSize() {",
	},
	{
		Name: "correction-residues", File: "chain.go", Protects: "corrections modulo an odd number have one encoding",
		Old: "if !m.residues(c) {", New: "if !m.residues(c) && false {",
	},
	{
		Name: "opened", File: "sacrifice.go", Protects: "opened records have one encoding",
		Old: "if len(messages[p]) != r.size() {", New: "if len(messages[p]) > r.size() {",
	},
	{
		Name: "mask", File: "sacrifice.go", Protects: "opened records are what they should be",
		Old: "if !r.right(messages, i) {", New: "if !r.right(messages, i) && false {",
	},
	{
		Name: "spent", File: "stock.go", Protects: "a mask covers one noise",
		Old: "clear(b.data)\n\tb.data, b.spent = nil, true\n\treturn v, nil", New: "return v, nil",
	},
	{
		Name: "taken", File: "stock.go", Protects: "records that are taken are not there any more",
		Old: "b.data, b.first = b.data[n*size:], b.first+uint64(n)", New: "b.first += uint64(n)",
	},
	{
		Name: "exported", File: "stock.go", Protects: "records that are exported are not there any more",
		Old: "data, b.data, b.spent = b.data, nil, true", New: "data = b.data",
	},
	{
		Name: "joined-kinds", File: "stock.go", Protects: "records that are joined are of one kind",
		Old: "if err == nil && b.kind != joined.kind {", New: "if err == nil && b.kind != joined.kind && false {",
	},
	{
		Name: "record-residues", File: "stock.go", Protects: "a record of an odd kind has one encoding",
		Old: "if kind.Odd != 0 && !b.residues() {", New: "if kind.Odd != 0 && !b.residues() && false {",
	},
	{
		Name: "padding", File: "stock.go", Protects: "a record has one encoding",
		Old: "if high>>(8-unused) != 0 {", New: "if high>>(8-unused) != 0 && false {",
	},
}

var decryptTable = []mutation{
	{
		Name: "offer", File: "agree.go", Protects: "a malformed offer is its sender's fault",
		Old: "if err != nil {\n\t\t\treturn round.Transition[Terms]{}, round.Malformed(w.From, err)",
		New: "if err != nil && false {\n\t\t\treturn round.Transition[Terms]{}, round.Malformed(w.From, err)",
	},
	{
		Name: "spans", File: "agree.go", Protects: "no more records are proposed than there are ciphertexts",
		Old: "x.Count == 0 || x.Count > left ||", New: "x.Count == 0 ||",
	},
	{
		Name: "residues-of-answers", File: "start.go", Protects: "answers modulo an odd eta have one encoding",
		Old: "if err == nil && !residues(k.Eta()).all(v) {", New: "if err == nil && !residues(k.Eta()).all(v) && false {",
	},
	{
		Name: "kind", File: "start.go", Protects: "masks are of the eta, Phi and form that are decrypted with",
		Old: "case c.Masks.Kind() != c.Params.Kind:", New: "case false:",
	},
	{
		Name: "count", File: "start.go", Protects: "every ciphertext has a mask, and every mask a ciphertext",
		Old: "have != count && have != 0 {", New: "have != count && have != 0 && false {",
	},
	{
		Name: "eta", File: "params.go", Protects: "the switch is to a smaller modulus",
		Old: "case p.Kind.LogEta > q:", New: "case p.Kind.LogEta > q && false:",
	},
	{
		Name: "residues", File: "phase.go", Protects: "ciphertexts have residues",
		Old: "if !residues || b >= s.Modulus {", New: "if !residues && false || b >= s.Modulus {",
	},
	{
		Name: "masked", File: "start.go", Protects: "a malformed share is its sender's fault",
		Old: "r.Params.Kind.LogPhi, r.head)\n\t\tif err != nil {", New: "r.Params.Kind.LogPhi, r.head)\n\t\tif err != nil && false {",
	},
	{
		Name: "agreement", File: "start.go", Protects: "parties decrypt with the same records, for the same recipient",
		Old: "if !agreed {\n\t\t\treturn round.Transition[*Result]{}, disagreement(w.From)\n\t\t}\n\t\tfor i, x := range part {\n\t\t\tr.v[i]",
		New: "if !agreed && false {\n\t\t\treturn round.Transition[*Result]{}, disagreement(w.From)\n\t\t}\n\t\tfor i, x := range part {\n\t\t\tr.v[i]",
	},
	{
		Name: "answer", File: "start.go", Protects: "a malformed answer is its sender's fault",
		Old: "r.Params.Kind, r.head)\n\t\tif err != nil {", New: "r.Params.Kind, r.head)\n\t\tif err != nil && false {",
	},
	{
		Name: "agreement-of-answers", File: "start.go", Protects: "answers are of one run",
		Old: "if !agreed {\n\t\t\treturn round.Transition[*Result]{}, disagreement(w.From)\n\t\t}\n\t\tfor i, x := range part {\n\t\t\tsum[i]",
		New: "if !agreed && false {\n\t\t\treturn round.Transition[*Result]{}, disagreement(w.From)\n\t\t}\n\t\tfor i, x := range part {\n\t\t\tsum[i]",
	},
	{
		Name: "sums", File: "start.go", Protects: "sums that are no plaintext are noticed",
		Old: "if !plaintexts(sum, r.Params.Kind) {", New: "if !plaintexts(sum, r.Params.Kind) && false {",
	},
	{
		Name: "combine-sums", File: "start.go", Protects: "sums that are no plaintext are noticed outside",
		Old: "if !plaintexts(sum, p.Kind) {", New: "if !plaintexts(sum, p.Kind) && false {",
	},
	{
		Name: "combine-agreement", File: "start.go", Protects: "answers are of one run, outside too",
		Old: "case !agreed:", New: "case !agreed && false:",
	},
	{
		Name: "planes", File: "exact.go", Protects: "shared bits have one encoding",
		Old: "if x&^r.valid(i) != 0 {", New: "if x&^r.valid(i) != 0 && false {",
	},
	{
		Name: "planes-length", File: "exact.go", Protects: "shared bits of all ciphertexts are there",
		Old: "if len(b) != 8*r.words()*len(list) {", New: "if len(b) > 8*r.words()*len(list) {",
	},
}
