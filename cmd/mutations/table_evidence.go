package main

const (
	refereeLies   = "TestLimitsOfWhoIsAccused"
	refereeHonest = "TestLimitsOfWhatIsProved"
)

// evidenceTable has what a file of evidence must be and show. Without any of these an accuser, alone or with others of the
// roster, makes a file that convicts somebody who has followed the protocol, or that takes the judge's memory.
var evidenceTable = []mutation{
	// The file and who has signed it.
	{
		Name: "file/magic", File: "read.go", Run: refereeLies, Protects: "a file is of this version",
		Old: "if string(first) != magic {", New: "if false {",
	},
	{
		Name: "file/block", File: "read.go", Run: "TestReferee", Protects: "a block takes no more memory than it may",
		Old: "if n > uint32(limit) {", New: "if false {",
	},
	{
		Name: "file/fields", File: "read.go", Run: "TestFields", Protects: "a statement takes no more memory than it may",
		Old: "!ok || n > maxFields {", New: "!ok || n < 0 {",
	},
	{
		Name: "file/inner-fields", File: "read.go", Run: "TestFields", Protects: "the parts of a statement count",
		Old: "fields(b, maxFields, 3)", New: "fields(b, maxFields, 0)",
	},
	{
		Name: "file/one-encoding", File: "read.go", Run: "TestOneEncoding",
		Protects: "a cheat makes one file, and not as many as there are encodings of it",
		Old:      "if err != nil || !bytes.Equal(again, b) {", New: "if err != nil || again == nil {",
	},
	{
		Name: "file/no-unknown", File: "read.go", Run: "TestOneEncoding",
		Protects: "whoever has a file makes no others of it by fields that nobody reads",
		Old:      "DiscardUnknown: true", New: "DiscardUnknown: false",
	},
	{
		Name: "file/roster", File: "read.go", Run: "TestOneEncoding",
		Protects: "a session of another roster says nothing of this one",
		Old:      "case !bytes.Equal(hash, who.Hash[:]):", New: "case false:",
	},
	{
		Name: "file/accuser", File: "read.go", Run: refereeLies, Protects: "the accuser is of the roster",
		Old: "int64(st.GetAccuser()) >= int64(len(who.Keys)) || ", New: "",
	},
	{
		Name: "file/culprit", File: "read.go", Run: refereeLies, Protects: "the culprit is of the roster",
		Old: " || int64(st.GetCulprit()) >= int64(len(who.Keys)):", New: ":",
		Redundant: "the first message is the culprit's, and each message is of somebody of the roster",
	},
	{
		Name: "file/self", File: "read.go", Run: refereeLies, Protects: "nobody is convicted by their own word",
		Old: "case st.GetAccuser() == st.GetCulprit():", New: "case false:",
	},
	{
		Name: "file/signature", File: "read.go", Run: refereeLies, Protects: "an accuser has signed the file",
		Old: "case !verifyStatement(who.Keys[st.GetAccuser()], accusation):", New: "case false:",
	},
	{
		Name: "file/digests", File: "read.go", Run: "TestReferee", Protects: "a list of digests has no rest",
		Old: "if len(b)%size != 0 {", New: "if false {",
	},
	{
		Name: "file/end", File: "frames.go", Run: "TestRefereeOfFrames", Protects: "a file has nothing that is not read",
		Old: "case n > 0:", New: "case n > 1:",
	},
	{
		Name: "file/kind", File: "verify.go", Run: refereeLies, Protects: "a file is of a kind that is judged",
		Old: "case !ok:\n\t\treturn nil, unreadable(\"no kind of proof\")", New: "case !ok && j.kind != \"\":\n\t\treturn nil, unreadable(\"no kind of proof\")",
	},
	{
		Name: "file/no-names", File: "verify.go", Run: refereeLies, Protects: "a cheat makes one file: nothing in it is of no use",
		Old: "case len(r.st.GetNames()) > 0 && j.kind != FalseEcho, ", New: "case ",
	},
	{
		Name: "file/no-key-hash", File: "verify.go", Run: refereeLies, Protects: "a cheat makes one file: nothing in it is of no use",
		Old: "len(r.st.GetKeyHash()) > 0 && !keyed(r.st), ", New: "",
	},
	{
		Name: "file/no-seed", File: "verify.go", Run: refereeLies, Protects: "a cheat makes one file: nothing in it is of no use",
		Old: ", len(r.st.GetKeySeed()) > 0 && j.kind != BadProof:", New: ":",
	},
	// The session, and the messages that were signed in it.
	{
		Name: "session/nonces", File: "verify.go", Run: refereeLies, Protects: "a session has the nonces of all parties",
		Old: "case len(nonces) != n:", New: "case false:",
		Redundant: "the session's id has the number of nonces, and the culprit has signed under the id",
	},
	{
		Name: "session/version", File: "verify.go", Run: "TestOneEncoding",
		Protects: "a session is judged by the rules of its version",
		Old:      "case r.spec.GetProtocolVersion() != job.ProtocolVersion:", New: "case false:",
	},
	{
		Name: "session/terms", File: "verify.go", Run: refereeLies, Protects: "a session has terms",
		Old: " || len(r.st.GetParams()) != len(round.Digest{}):", New: ":",
	},
	{
		Name: "session/history-of-all", File: "verify.go", Run: refereeLies, Protects: "a broadcast of the history is of all parties",
		Old: "if len(list) != n || ", New: "if ",
	},
	{
		Name: "session/history-in-order", File: "verify.go", Run: refereeLies, Protects: "the last of the history is the last",
		Old: " || i > 0 && !before(r.history[i-1], next) {", New: " || i > 0 && false {",
		Redundant: "the transcript that the culprit has signed takes the history in its order",
	},
	{
		Name: "message/culprit", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "the culprit has signed the accused message",
		Old: "case i == 0 && x.From != round.Party(r.st.GetCulprit()):", New: "case false:",
	},
	{
		Name: "message/signature", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "who is accused of a message has signed it",
		Old: "case len(m.GetSignature()) > 0 && !x.Verify(r.who.Keys[x.From], m.GetSignature()):", New: "case false:",
	},
	{
		Name: "message/unsigned", File: "verify.go", Run: "TestRefereeOfSignatures",
		Protects: "the accused message has a signature: the history is worth what that is worth",
		Old:      "(i == 0 || !r.agreed(x)):", New: "!r.agreed(x):",
	},
	{
		Name: "message/agreed", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "what an accused message answers to is what its sender had",
		Old: "(i == 0 || !r.agreed(x)):", New: "i == 0:",
	},
	{
		Name: "message/agreed-name", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "what an accused message answers to has its name",
		Old: "return a.Name == m.Name && sent(a)", New: "return sent(a)",
	},
	{
		Name: "message/agreed-round", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "what an accused message answers to came in its round",
		Old: " && sent(a) == m.Round", New: "",
	},
	{
		Name: "message/agreed-digest", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "what an accused message answers to is what all have heard",
		Old: " && a.Digests[m.From] == m.Digest", New: "",
	},
	{
		Name: "message/none", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "there is a message",
		Old: "if len(r.list) == 0 {", New: "if false {",
	},
	{
		Name: "message/transcript", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "the history is that under the culprit's signature",
		Old: "round.Digest(t) != r.list[0].Transcript {", New: "len(t) == 0 {",
	},
	{
		Name: "message/sender", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "a message is of somebody of the roster",
		Old: "if int64(m.GetFrom()) >= int64(len(r.who.Keys)) || ", New: "if ",
	},
	{
		Name: "message/transcript-length", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "a transcript is a digest",
		Old: " || len(m.GetTranscript()) != len(round.Digest{}) {", New: " {",
	},
	{
		Name: "message/one-digest", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "the digest of a message is that of its frames",
		Old: "case len(x.frames) == 0 || len(m.GetDigest()) > 0:", New: "case len(x.frames) == 0:",
	},
	{
		Name: "message/shown-are-there", File: "verify.go", Run: "TestReferee|" + refereeLies, Protects: "frames that are shown are of the message",
		Old: "if int64(s) >= int64(len(x.frames)) || ", New: "if ",
	},
	{
		Name: "message/shown-once", File: "verify.go", Run: "TestRefereeOfSignatures", Protects: "no frame takes the place of another",
		Old: "if int64(s) >= int64(len(x.frames)) || i > 0 && int(s) <= x.shown[i-1] {", New: "if int64(s) >= int64(len(x.frames)) || i < 0 {",
	},
	{
		Name: "frames/digest", File: "frames.go", Run: refereeLies + "|TestRefereeOfNames", Protects: "what is shown is what was signed",
		Old: "if round.FrameDigest(r.room) != r.list[i].frames[index] {", New: "if false {",
	},
	{
		Name: "frames/passed", File: "frames.go", Run: "TestRefereeOfFrames", Protects: "the frames that are read are those of the message",
		Old: "for ; r.read < i; r.read++ {\n\t\tif len(r.list[r.read].shown) > 0 {", New: "for ; r.read < i; r.read++ {\n\t\tif false {",
	},
	{
		Name: "frames/left", File: "frames.go", Run: "TestRefereeOfFrames", Protects: "a file shows nothing that is not judged",
		Old: "for ; r.read < len(r.list); r.read++ {\n\t\tif len(r.list[r.read].shown) > 0 {", New: "for ; r.read < len(r.list); r.read++ {\n\t\tif false {",
	},
	{
		Name: "frames/all", File: "frames.go", Run: "TestRefereeOfFrames", Protects: "a whole message is all of it",
		Old: "if len(r.list[i].shown) != len(r.list[i].frames) || ", New: "if ",
	},
	{
		Name: "frames/any", File: "frames.go", Run: "TestRefereeOfFrames", Protects: "a whole message is shown",
		Old: " || len(r.list[i].shown) == 0 {", New: " {",
	},
	{
		Name: "frames/limit", File: "frames.go", Run: "TestRefereeOfFrames", Protects: "a whole message takes no more memory than it may",
		Old: "if len(b)+len(frame) > limit {", New: "if false {",
	},
	{
		Name: "frames/one", File: "proofs.go", Run: "TestRefereeOfFrames|TestRefereeOfShapes", Protects: "one frame is one, and not none",
		Old: "if len(r.list[0].shown) != 1 {", New: "if false {",
	},
	// Equivocations.
	{
		Name: "equivocation/two", File: "broadcasts.go", Run: "TestRefereeOfVersions", Protects: "a version is one of two",
		Old: "if len(r.list) != 2 || len(r.history) > 0 {", New: "if len(r.history) > 0 {",
	},
	{
		Name: "equivocation/alone", File: "broadcasts.go", Run: "TestRefereeOfVersions", Protects: "a cheat makes one file: nothing in it is of no use",
		Old: "if len(r.list) != 2 || len(r.history) > 0 {", New: "if len(r.list) != 2 {",
	},
	{
		Name: "equivocation/signed", File: "broadcasts.go", Run: "TestRefereeOfVersions", Protects: "the culprit has signed both versions",
		Old: "case len(r.st.GetMessages()[1].GetSignature()) == 0 || ", New: "case ",
	},
	{
		Name: "equivocation/sender", File: "broadcasts.go", Run: "TestRefereeOfVersions", Protects: "what two parties say is no equivocation",
		Old: "a.From != b.From || ", New: "",
	},
	{
		Name: "equivocation/round", File: "broadcasts.go", Run: "TestRefereeOfVersions", Protects: "what is said in two rounds is no equivocation",
		Old: "a.Round != b.Round || ", New: "",
	},
	{
		Name: "equivocation/name", File: "broadcasts.go", Run: "TestRefereeOfVersions", Protects: "what is said under two names is no equivocation",
		Old: " || a.Name != b.Name:", New: ":",
	},
	{
		Name: "equivocation/differs", File: "broadcasts.go", Run: "TestRefereeOfVersions", Protects: "what is said twice is no equivocation",
		Old: "case a.Digest == b.Digest:", New: "case false:",
	},
	// Openings.
	{
		Name: "opening/heard", File: "broadcasts.go", Run: "TestRefereeOfOpenings", Protects: "there is a commitment that all have",
		Old: "if len(r.list) != 2 || len(r.history) == 0 {", New: "if len(r.list) != 2 {",
	},
	{
		Name: "opening/is-one", File: "broadcasts.go", Run: "TestRefereeOfOpenings", Protects: "other messages open nothing",
		Old: "case !ok || commit.Name", New: "case !ok && commit.Name == \"\" || commit.Name",
	},
	{
		Name: "opening/step", File: "broadcasts.go", Run: "TestRefereeOfOpenings", Protects: "an opening is of the commitment of its step",
		Old: "commit.Name != round.CommitName(step) || ", New: "",
	},
	{
		Name: "opening/sender", File: "broadcasts.go", Run: "TestRefereeOfOpenings", Protects: "an opening is of its sender's commitment",
		Old: "commit.From != open.From || ", New: "",
	},
	{
		Name: "opening/round-of-commitment", File: "broadcasts.go", Run: "TestRefereeOfOpenings", Protects: "a commitment is that of the round before",
		Old: " || commit.Round != sent(last):", New: ":",
	},
	{
		Name: "opening/round", File: "broadcasts.go", Run: "TestRefereeOfOpenings", Protects: "an opening comes just after its commitment",
		Old: "case open.Round != r.next(last):", New: "case false:",
	},
	{
		Name: "opening/commitment", File: "broadcasts.go", Run: "TestRefereeOfOpenings", Protects: "a commitment is the one that all have",
		Old: "case commit.Digest != last.Digests[commit.From] || ", New: "case ",
	},
	{
		Name: "opening/name-of-commitment", File: "broadcasts.go", Run: "TestRefereeOfOpenings", Protects: "a commitment is the one that all have",
		Old: " || last.Name != commit.Name:", New: ":",
	},
	{
		Name: "opening/length", File: "broadcasts.go", Run: "TestRefereeOfOpenings", Protects: "a commitment is a digest",
		Old: "case len(c) != len(round.Digest{}):", New: "case false:",
	},
	{
		Name: "opening/wrong", File: "broadcasts.go", Run: "TestRefereeOfOpenings", Protects: "who opens what was committed to is not convicted",
		Old: "case round.Digest(c) == round.Commitment(r.session, step, open.From, open.Digest):", New: "case false:",
	},
	// Echoes.
	{
		Name: "echo/alone", File: "broadcasts.go", Run: "TestRefereeOfEchoes", Protects: "a cheat makes one file: nothing in it is of no use",
		Old: "if len(r.list) != 1 || len(r.history) > 0 || echo.Name", New: "if len(r.history) > 0 || echo.Name",
	},
	{
		Name: "echo/is-one", File: "broadcasts.go", Run: "TestRefereeOfEchoes", Protects: "other messages report nothing",
		Old: "echo.Name != round.EchoName || ", New: "",
	},
	{
		Name: "echo/no-names", File: "broadcasts.go", Run: "TestReferee", Protects: "an echo is about something",
		Old: " || len(r.st.GetNames()) == 0 {", New: " {",
	},
	{
		Name: "echo/names", File: "broadcasts.go", Run: "TestNames", Protects: "an echo is about as many names as a round has",
		Old: "if len(names) > maxNames || ", New: "if ",
	},
	{
		Name: "echo/names-in-order", File: "broadcasts.go", Run: "TestNames", Protects: "an echo is about names in their order",
		Old: "!slices.IsSorted(names) || ", New: "",
	},
	{
		Name: "echo/names-once", File: "broadcasts.go", Run: "TestNames", Protects: "an echo is about each name once",
		Old: "len(slices.Compact(slices.Clone(names))) < len(names) || ", New: "",
	},
	{
		Name: "echo/reports", File: "broadcasts.go", Run: "TestRefereeOfEchoes", Protects: "an echo is about the names that it was made for",
		Old: "list, err := round.Reports(b, names, len(r.who.Keys), signatureSize)\n\tif err != nil {", New: "list, err := round.Reports(b, names, len(r.who.Keys), signatureSize)\n\tif false {",
		Redundant: "without reports nothing is found that is not signed",
	},
	{
		Name: "echo/nothing", File: "broadcasts.go", Run: "TestRefereeOfEchoes", Protects: "who has heard nothing may say so",
		Old: "if (report.Digest == round.Digest{}) {", New: "if false {",
	},
	{
		Name: "echo/signed", File: "broadcasts.go", Run: "TestRefereeOfEchoes", Protects: "who reports what was signed is not convicted",
		Old: "if !e.Verify(r.who.Keys[report.About], report.Signature) {", New: "if e.Name != \"\" {",
	},
}
