package main

// evidenceProofsTable has what evidence of a failed proof, a malformed message or a wrong verdict must show, and what a party keeps for it.
var evidenceProofsTable = []mutation{
	// Proofs of plaintext knowledge, and what a session of triples computes with.
	{
		Name: "computed/set", File: "proofs.go", Run: "TestRefereeOfShapes", Protects: "a session is judged by its own parameters",
		Old: "if h := set.Hash(); !bytes.Equal(r.spec.GetParamsHash(), h[:]) {", New: "if h := set.Hash(); len(h) == 0 {",
	},
	{
		Name: "computed/key-hash", File: "proofs.go", Run: "TestRefereeOfShapes", Protects: "a session has a key",
		Old: "if len(r.st.GetKeyHash()) != len(round.Digest{}) {", New: "if false {",
	},
	{
		Name: "computed/terms-of-proofs", File: "proofs.go", Run: "TestRefereeOfTerms", Protects: "a session of proofs is judged by its own key and parameters",
		Old: "err == nil && plan.Terms(name, c.proof, c.key) == terms {", New: "err == nil && len(terms) > 0 {",
	},
	{
		Name: "computed/terms-of-triples", File: "proofs.go", Run: "TestRefereeOf", Protects: "a session of triples is judged by its own key and parameters",
		Old: "if err == nil && plan.Terms(name, c.plan.Instance, c.key) == terms {", New: "if err == nil && len(terms) > 0 {",
	},
	{
		Name: "proof/step", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "a proof is of a step that the session has",
		Old: "\tdefault:\n\t\treturn nil, nil, unproven(\"a session of %s has no proof %q\", plan.Name(r.spec.GetProtocol()), step)\n", New: "",
		Redundant: "without an instance there is no judge",
	},
	{
		Name: "proof/only", File: "proofs.go", Run: "TestRefereeOfProvers", Protects: "who does not prove input masks has failed no proof of them",
		Old: "if c.plan.Kind == triple.Input {\n\t\t\tcfg.Only", New: "if false {\n\t\t\tcfg.Only",
	},
	{
		Name: "proof/bound-of-responses", File: "proofs.go", Run: "TestRefereeOf|" + refereeLies, Protects: "other messages have no bounds",
		Old: "case accused.Name == j.Response() && len(r.list) == 1:", New: "case len(r.list) == 1:",
		Redundant: "no other message has frames that decode as responses, as lengths differ",
	},
	{
		Name: "proof/ciphertexts", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "other messages are no ciphertexts",
		Old: "case accused.Name == j.Ciphertexts() && len(r.list) == 2:", New: "case len(r.list) == 2:",
	},
	{
		Name: "proof/bound-alone", File: "proofs.go", Run: "TestRefereeOfProvers", Protects: "a cheat makes one file: nothing in it is of no use",
		Old: "if len(r.history) > 0 || len(r.st.GetKeySeed()) > 0 {", New: "if false {",
	},
	{
		Name: "proof/bound", File: "proofs.go", Run: refereeHonest, Protects: "whose response is short is not convicted",
		Old: "if check, err = j.Bound(frame); err != nil || check == \"\" {", New: "if check, err = j.Bound(frame); err != nil {",
	},
	{
		Name: "statement/heard", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "there is a statement that all have",
		Old: "if len(r.history) == 0 {", New: "if false {",
	},
	{
		Name: "statement/last", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "a proof answers to the statements that all have just opened",
		Old: "if last.Name != name || ", New: "if ",
	},
	{
		Name: "statement/round", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "a proof comes just after its statement",
		Old: "r.list[0].Round != r.next(last) || ", New: "",
	},
	{
		Name: "statement/name", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "a statement is one",
		Old: "m.Name != name || m.From", New: "m.From",
		Redundant: "a digest has the name of its message in it, and is that of the history",
	},
	{
		Name: "statement/sender", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "a proof is of its sender's statement",
		Old: "m.From != r.list[0].From || ", New: "",
	},
	{
		Name: "statement/agreed", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "a statement is the one that all have",
		Old: " || m.Digest != last.Digests[m.From] ||", New: " ||",
	},
	{
		Name: "statement/sent", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "a statement is of its round",
		Old: "||\n\t\tm.Round != sent(last) {", New: "{",
	},
	{
		Name: "ciphertexts/no-seed", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "a cheat makes one file: nothing in it is of no use",
		Old: "if len(r.st.GetKeySeed()) > 0 {\n", New: "if false {\n",
	},
	{
		Name: "ciphertexts/promised", File: "proofs.go", Run: "TestRefereeOfStatements", Protects: "whose ciphertexts are those of the statement is not convicted",
		Old: "if err != nil || promised == r.list[0].Digest {", New: "if err != nil || len(promised) == 0 {",
	},
	{
		Name: "equation/ciphertexts", File: "proofs.go", Run: refereeLies, Protects: "a proof is judged by the ciphertexts of its statement",
		Old: "m.Digest != promised || m.Name", New: "len(promised) == 0 || m.Name",
	},
	{
		Name: "equation/ciphertexts-name", File: "proofs.go", Run: refereeLies, Protects: "a proof is judged by its ciphertexts",
		Old: " || m.Name != j.Ciphertexts() ||", New: " ||",
		Redundant: "a digest has the name of its message in it, and is the promised one",
	},
	{
		Name: "equation/all-ciphertexts", File: "proofs.go", Run: refereeLies, Protects: "a proof is judged by all its ciphertexts",
		Old: " || len(m.shown) != len(m.frames) {", New: " {",
		Redundant: "the judge of the equation wants all of them",
	},
	{
		Name: "equation/holds", File: "proofs.go", Run: refereeHonest, Protects: "whose response opens its mask is not convicted",
		Old: "case holds:", New: "case holds && index < 0:",
	},
	{
		Name: "equation/key", File: "proofs.go", Run: refereeLies, Protects: "a proof is judged under the session's key",
		Old: "if err != nil || hash != c.key {", New: "if err != nil || len(hash) == 0 {",
	},
	// Proofs of keys.
	{
		Name: "keys/protocol", File: "keys.go", Run: "TestRefereeOfKeys", Protects: "keys are judged in sessions that make keys",
		Old: "if name != plan.Keygen || ", New: "if name == \"\" || ",
	},
	{
		Name: "keys/terms", File: "keys.go", Run: "TestRefereeOfKeys", Protects: "keys are judged by the session's parameters",
		Old: "!bytes.Equal(r.st.GetParams(), h[:]) || ", New: "len(h) == 0 || ",
	},
	{
		Name: "keys/proved", File: "keys.go", Run: "TestRefereeOfKeys", Protects: "keys without proofs have failed none",
		Old: " || set.KeygenSecurity() != params.Proved {", New: " || params.Proved == \"\" {",
		Redundant: "a set without proofs has no bounds of them, and so no judge",
	},
	{
		Name: "keys/proofs", File: "keys.go", Run: "TestRefereeOfKeys", Protects: "other messages are no proofs",
		Old: "m.Name != keygen.NameProofs || ", New: "",
	},
	{
		Name: "keys/frames", File: "keys.go", Run: "TestRefereeOfKeys", Protects: "a proof has its number of frames",
		Old: " || len(m.frames) != j.Frames() {", New: " {",
	},
	{
		Name: "keys/bound", File: "keys.go", Run: refereeHonest, Protects: "whose responses are short is not convicted",
		Old: "if check, err = j.Bound(index, frame); err != nil || check == \"\" {", New: "if check, err = j.Bound(index, frame); err != nil {",
	},
	{
		Name: "keys/heads", File: "keys.go", Run: refereeLies, Protects: "an equation is judged with all responses for secrets",
		Old: "if len(r.list[0].shown) != j.Heads()+1 || ", New: "if ",
		Redundant: "the judge of the equation wants as many",
	},
	{
		Name: "keys/heads-first", File: "keys.go", Run: refereeLies, Protects: "an equation is judged with the responses for secrets",
		Old: " || r.list[0].shown[j.Heads()-1] != j.Heads()-1 {", New: " {",
		Redundant: "frames come in order, and the judge of the equation wants all that come before those of equations",
	},
	{
		Name: "keys/missing", File: "keys.go", Run: "TestRefereeOfNames", Protects: "what an equation has in it is shown",
		Old: "if i >= len(r.list) {", New: "if false {",
	},
	{
		Name: "keys/name", File: "keys.go", Run: "TestRefereeOfNames", Protects: "at each place is the message that is due",
		Old: "if m.Name != name || ", New: "if ",
	},
	{
		Name: "keys/sender", File: "keys.go", Run: "TestRefereeOfNames", Protects: "at each place is the message of whom it is due",
		Old: "m.From != from || ", New: "",
	},
	{
		Name: "keys/agreed", File: "keys.go", Run: "TestRefereeOfNames", Protects: "at each place is what all have heard",
		Old: "!r.agreed(m) || ", New: "",
	},
	{
		Name: "keys/shown", File: "keys.go", Run: "TestRefereeOfNames", Protects: "at each place are the frames that are due",
		Old: " || len(m.shown) != len(frames) {", New: " {",
	},
	{
		Name: "keys/frame", File: "keys.go", Run: "TestRefereeOfNames", Protects: "at each place is the frame that is due",
		Old: "if index != frames[len(list)] {", New: "if false {",
	},
	{
		Name: "keys/seed", File: "keys.go", Run: "TestRefereeOfNames", Protects: "a seed has its length",
		Old: "if len(list[0]) != 2*round.NonceSize {", New: "if false {",
	},
	{
		Name: "keys/nothing-else", File: "keys.go", Run: refereeLies, Protects: "a cheat makes one file: nothing in it is of no use",
		Old: "if next != len(r.list) {", New: "if false {",
	},
	// Shapes and verdicts.
	{
		Name: "shape/alone", File: "messages.go", Run: "TestRefereeOfShapes", Protects: "a cheat makes one file: nothing in it is of no use",
		Old: "m := r.list[0]\n\tif len(r.list) != 1 || len(r.history) > 0 {", New: "m := r.list[0]\n\tif false {",
	},
	{
		Name: "shape/known", File: "messages.go", Run: "TestRefereeOfShapes", Protects: "who says what this program does not know is not convicted",
		Old: "case !ok:", New: "case !ok && shape.Frames > 0:",
	},
	{
		Name: "shape/frames", File: "messages.go", Run: "TestRefereeOfShapes", Protects: "who is shown by a digest alone is not convicted",
		Old: "case len(m.frames) == 0:", New: "case false:",
	},
	{
		Name: "shape/number", File: "messages.go", Run: "TestRefereeOfShapes", Protects: "a cheat makes one file: nothing in it is of no use",
		Old: "case len(m.frames) != shape.Frames:", New: "case false:",
	},
	{
		Name: "shape/malformed", File: "messages.go", Run: "TestRefereeOfShapes", Protects: "who sends what is due is not convicted",
		Old: "if err := shape.Check(index, frame); err != nil {", New: "if err := shape.Check(index, frame); len(frame) > 0 {",
	},
	{
		Name: "shape/silent", File: "messages.go", Run: "TestRefereeOfProvers", Protects: "who proves nothing states nothing",
		Old: " && c.plan.Owner != of {", New: " && c.plan.Owner == of {",
	},
	{
		Name: "verdict/alone", File: "messages.go", Run: "TestRefereeOfVerdicts", Protects: "a cheat makes one file: nothing in it is of no use",
		Old: "if len(r.list) != 1 || len(r.history) > 0 || c.plan", New: "if c.plan",
	},
	{
		Name: "verdict/triples", File: "messages.go", Run: "TestRefereeOfVerdicts", Protects: "sessions of proofs have no verdict",
		Old: "c.plan == nil || ", New: "",
	},
	{
		Name: "verdict/is-one", File: "messages.go", Run: "TestRefereeOfVerdicts", Protects: "other messages are no verdicts",
		Old: " || m.Name != verdict.Name {", New: " {",
	},
	{
		Name: "verdict/length", File: "messages.go", Run: "TestRefereeOfVerdicts", Protects: "a verdict is a digest",
		Old: "case len(b) != len(round.Digest{}):", New: "case false:",
	},
	{
		Name: "verdict/wrong", File: "messages.go", Run: "TestRefereeOfVerdicts", Protects: "who accepts the batch that all broadcasts give is not convicted",
		Old: "if c.plan.Digest(r.session, c.key, count, m.Transcript) == round.Digest(b) {", New: "if false {",
	},
	{
		Name: "verdict/counts", File: "../../engine/protocol/triple/judge.go", Run: "TestRefereeOfCounts",
		Protects: "who accepts a batch that has lost tuples of zero is not convicted",
		Old:      "if p.Kind.opens() {\n\t\treturn 0, p.Count\n\t}\n", New: "",
	},
	// What a party keeps of a session, and gives to others.
	{
		Name: "kept/private", File: "record.go", Run: "TestWhatIsKept", Protects: "messages to one party, which have shares, are not kept for others",
		Old: "if r == nil || e.To != round.All {", New: "if r == nil {",
	},
	{
		Name: "kept/small", File: "record.go", Run: "TestWhatIsKept", Protects: "a message takes no more memory than it may",
		Old: "len(b.payload) <= maxSmall && ", New: "",
	},
	{
		Name: "kept/all", File: "record.go", Run: "TestWhatIsKept", Protects: "all messages take no more memory than they may",
		Old: " && r.bytes+len(b.payload) <= maxKept:", New: ":",
	},
	{
		Name: "kept/frames", File: "record.go", Run: "TestWhatIsKept", Protects: "of a stream no more is kept than its round wants",
		Old: " || w.KeepFrames > 0 && i >= w.KeepFrames {", New: " {",
	},
	{
		Name: "kept/broadcasts", File: "record.go", Run: "TestWhatIsKept", Protects: "streams to one party, which have shares, are not kept for others",
		Old: "if r == nil || !w.Broadcast || ", New: "if r == nil || ",
	},
	{
		Name: "accuse/plain", File: "accuse.go", Run: "TestProofUnder", Protects: "a coordinator cannot keep a cheat from being proved by fields that nobody reads",
		Old: "return out, known.Unmarshal(b, out)", New: "return spec, known.Unmarshal(b, out)",
	},
	{
		Name: "accuse/self", File: "accuse.go", Run: "TestWhatIsKept", Protects: "a party does not accuse itself",
		Old: " || blame.Party == c.Self {", New: " {",
		Redundant: "it reads the file before it gives it, and a party that accuses itself proves nothing",
	},
}
