package main

const (
	roundBinding = "TestEveryTerm|TestPrelude|TestOther|TestCoin|TestAgreement|TestTranscripts|TestDigest|TestHash"
	roundFaults  = "Faults|TestCopied|TestRushing|TestEquivocation|TestFalseEcho|TestFrames|TestEarly|TestBytesFraming|TestNonsense|TestStreamed|FuzzDeliver"
)

var roundTable = []mutation{
	// Commit-then-open.
	{
		Name: "commitment", File: "commit.go", Run: roundFaults, Protects: "nobody opens what it did not commit to",
		Old: "if Commitment(r.Session.ID, r.step, p, sum) != r.commitments[p] && ",
		New: "if false && Commitment(r.Session.ID, r.step, p, sum) != r.commitments[p] && ",
	},
	{
		Name: "commitment/session", File: "commit.go", Run: roundFaults + "|" + roundBinding,
		Protects: "a commitment is of its session",
		Old:      `return Hash("lodge commitment", session[:], []byte(step)`,
		New:      `return Hash("lodge commitment", []byte(step)`,
	},
	{
		Name: "commitment/step", File: "commit.go", Run: roundFaults + "|" + roundBinding,
		Protects: "a commitment is of its step",
		Old:      `session[:], []byte(step), Uint(uint64(p)), opening[:])`, New: `session[:], Uint(uint64(p)), opening[:])`,
	},
	{
		Name: "commitment/party", File: "commit.go", Run: roundFaults + "|" + roundBinding,
		Protects: "a copy of another's commitment has no opening",
		Old:      `[]byte(step), Uint(uint64(p)), opening[:])`, New: `[]byte(step), opening[:])`,
	},
	{
		Name: "commitment/opening", File: "commit.go", Run: roundFaults + "|" + roundBinding,
		Protects: "a commitment is of its opening",
		Old:      `Uint(uint64(p)), opening[:])`, New: `Uint(uint64(p)), opening[:0])`,
	},
	{
		Name: "commitment-length", File: "commit.go", Run: roundFaults, Protects: "a commitment has one length",
		Old: "if len(c) != len(commitments[p]) {", New: "if len(c) > len(commitments[p]) {",
	},
	{
		Name: "opening-length", File: "commit.go", Run: roundFaults, Protects: "what is opened has its length",
		Old: "if int64(len(b)) != NonceSize+r.limit(p).Bytes {", New: "if int64(len(b)) < NonceSize {",
	},
	{
		Name: "opening-frames", File: "commit.go", Run: roundFaults,
		Protects: "what is opened has its frames, and a nonce before them",
		Old:      "if last != (index == r.limit(from).Frames) || index == 0 && len(frame) != NonceSize {",
		New:      "if false {",
	},
	{
		Name: "opening-nonce", File: "commit.go", Run: roundFaults,
		Protects: "what is opened has a whole nonce before it",
		Old:      "|| index == 0 && len(frame) != NonceSize {", New: "{",
	},
	// Broadcasts.
	{
		Name: "compare", File: "compare.go", Tests: []string{"./engine/protocol/triple", "./engine/protocol/keygen"}, Run: "TestCheatsInABatch|TestCheatsAtEvery",
		Protects: "parties go on if they computed the same",
		Old:      "if p != s.Self && !bytes.Equal(in.Bytes(p, name), want[:]) {",
		New:      "if p != s.Self && !bytes.Equal(in.Bytes(p, name), want[:]) && false {",
	},
	{
		Name: "echo", File: "machine.go", Run: roundFaults, Protects: "all parties have the same broadcasts",
		Old: "len(m.broadcasts) > 0 && m.session.Parties > 2", New: "len(m.broadcasts) > 0 && m.session.Parties > 1000",
	},
	{
		Name: "echo-compared", File: "echo.go", Run: roundFaults,
		Protects: "reports of broadcasts are compared",
		Old:      "if r.Digest != e.broadcasts[r.Name][r.About].digest {",
		New:      "if r.Digest != e.broadcasts[r.Name][r.About].digest && false {",
	},
	{
		Name: "echo-signature", File: "echo.go", Run: "TestEcho",
		Protects: "nobody is named for a version that it has not signed",
		Old:      "s != nil && s.Verify(e.signed(about, name, reported), signature) {",
		New:      "s != nil {",
	},
	{
		Name: "echo-signature/round", File: "echo.go", Run: "TestEcho",
		Protects: "what was signed in another round is no second version",
		Old:      "From: p, Round: e.round, Name: name",
		New:      "From: p, Name: name",
	},
	{
		Name: "echo-signature/name", File: "echo.go", Run: "TestEcho",
		Protects: "what was signed of another message is no second version",
		Old:      "From: p, Round: e.round, Name: name, Transcript",
		New:      "From: p, Round: e.round, Transcript",
	},
	{
		Name: "echo-signature/transcript", File: "echo.go", Run: "TestEcho",
		Protects: "what was signed after other broadcasts is no second version",
		Old:      "Transcript: Digest(e.transcript), Digest: d}",
		New:      "Digest: d}",
	},
	{
		Name: "echo-length", File: "echo.go", Run: "TestReports",
		Protects: "a report is about every broadcast",
		Old:      "if len(b) != len(names)*parties*size+len(Digest{}) {",
		New:      "if len(b) < len(Digest{}) && parties*size >= 0 {",
	},
	{
		Name: "echo-names", File: "echo.go", Run: "TestReports",
		Protects: "a report says which broadcasts it is about",
		Old:      "if about := namesDigest(names); Digest(b[len(b)-len(about):]) != about {",
		New:      "if about := namesDigest(names); Digest(b[len(b)-len(about):]) != about && false {",
	},
	{
		Name: "echo-malformed", File: "echo.go", Run: roundFaults,
		Protects: "a report that cannot be read is refused",
		Old:      "if err != nil {\n\t\t\treturn Malformed(from, err)",
		New:      "if err != nil && false {\n\t\t\treturn Malformed(from, err)",
	},
	{
		Name: "agreed/session", File: "transcript.go", Run: roundBinding,
		Protects: "what challenges hash is of its session",
		Old:      `fields := [][]byte{session[:], []byte(name)}`,
		New:      `fields := [][]byte{[]byte(name)}`,
	},
	{
		Name: "agreed/name", File: "transcript.go", Run: roundBinding,
		Protects:  "what challenges hash is of its message",
		Old:       `fields := [][]byte{session[:], []byte(name)}`,
		New:       `fields := [][]byte{session[:]}`,
		Redundant: "the digests that are hashed are of the names of their messages",
	},
	{
		Name: "agreed/parties", File: "transcript.go", Run: roundBinding + "|TestChains|TestCommitOpenGives",
		Protects: "what challenges hash is of all parties' broadcasts",
		Old:      `for i := range digests {`,
		New:      `for i := range digests[:1] {`,
	},
	{
		Name: "transcript/session", File: "transcript.go", Run: roundBinding,
		Protects: "a transcript is of its session",
		Old:      `Hash("lodge transcript", session[:], Uint(uint64(parties)))`,
		New:      `Hash("lodge transcript", Uint(uint64(parties)))`,
	},
	{
		Name: "transcript/parties", File: "transcript.go", Run: roundBinding,
		Protects: "a transcript is of its number of parties",
		Old:      `Hash("lodge transcript", session[:], Uint(uint64(parties)))`,
		New:      `Hash("lodge transcript", session[:])`,
	},
	{
		Name: "transcript/before", File: "transcript.go", Run: roundBinding + "|TestChains|TestCommitOpenGives",
		Protects: "a transcript is of all rounds",
		Old:      `Hash("lodge transcript round", t[:], Uint(uint64(round)), []byte(name), agreed[:])`,
		New:      `Hash("lodge transcript round", Uint(uint64(round)), []byte(name), agreed[:])`,
	},
	{
		Name: "transcript/round", File: "transcript.go", Run: roundBinding + "|TestChains|TestCommitOpenGives",
		Protects: "a transcript says in which round something was said",
		Old:      `Hash("lodge transcript round", t[:], Uint(uint64(round)), []byte(name), agreed[:])`,
		New:      `Hash("lodge transcript round", t[:], []byte(name), agreed[:])`,
	},
	{
		Name: "transcript/name", File: "transcript.go", Run: roundBinding + "|TestChains|TestCommitOpenGives",
		Protects: "a transcript names messages",
		Old:      `Hash("lodge transcript round", t[:], Uint(uint64(round)), []byte(name), agreed[:])`,
		New:      `Hash("lodge transcript round", t[:], Uint(uint64(round)), agreed[:])`,
	},
	{
		Name: "transcript/content", File: "transcript.go", Run: roundBinding + "|TestChains|TestCommitOpenGives",
		Protects: "a transcript is of what was said",
		Old:      `Hash("lodge transcript round", t[:], Uint(uint64(round)), []byte(name), agreed[:])`,
		New:      `Hash("lodge transcript round", t[:], Uint(uint64(round)), []byte(name))`,
	},
	// Hashes.
	{
		Name: "hash/lengths", File: "hash.go", Run: roundBinding,
		Protects: "fields that are divided differently have another hash",
		Old:      "h.Write(n[:]) // hashes do not fail", New: "_ = n",
	},
	{
		Name: "hash/tag", File: "hash.go", Run: roundBinding + "|TestDigestVectors",
		Protects: "a hash is of one purpose",
		Old:      "func write(h io.Writer, tag string, fields [][]byte) {\n\twriteField(h, []byte(tag))",
		New:      "func write(h io.Writer, tag string, fields [][]byte) {",
	},
	{
		Name: "digest/name", File: "hash.go", Run: roundBinding,
		Protects: "a message is of its name",
		Old:      `Hash("lodge message", []byte(h.name), h.frames)`,
		New:      `Hash("lodge message", h.frames)`,
	},
	{
		Name: "digest/frames", File: "hash.go", Run: roundBinding,
		Protects: "a message is of all its frames",
		Old:      `h.frames = append(h.frames, d[:]...)`,
		New:      `h.frames = d[:]`,
	},
	{
		Name: "digest/content", File: "hash.go", Run: roundBinding,
		Protects: "a message is of what its frames hold",
		Old:      `func FrameDigest(frame []byte) Digest { return Hash("lodge frame", frame) }`,
		New:      `func FrameDigest(frame []byte) Digest { return Hash("lodge frame", frame[:min(len(frame), 8)]) }`,
	},
	// Coins and sessions.
	{
		Name: "coin/session", File: "coin.go", Run: roundBinding, Protects: "a coin is of its session",
		Old: "append([][]byte{session[:], []byte(step)}, seeds...)...)", New: "append([][]byte{[]byte(step)}, seeds...)...)",
	},
	{
		Name: "coin/step", File: "coin.go", Run: roundBinding, Protects: "a coin is of its step",
		Old: "append([][]byte{session[:], []byte(step)}, seeds...)...)", New: "append([][]byte{session[:]}, seeds...)...)",
	},
	{
		Name: "coin/seeds", File: "coin.go", Run: "TestCoin|TestRushing", Protects: "a coin is of every party's seed",
		Old: "append([][]byte{session[:], []byte(step)}, seeds...)...)",
		New: "append([][]byte{session[:], []byte(step)}, seeds[:1]...)...)",
	},
	{
		Name: "session/terms", File: "session.go", Run: roundBinding,
		Protects: "parties with other terms have no session",
		Old:      "fields := [][]byte{terms[:], Uint(uint64(len(nonces)))}",
		New:      "fields := [][]byte{Uint(uint64(len(nonces)))}",
	},
	{
		Name: "session/parties", File: "session.go", Run: roundBinding,
		Protects: "a session is of its number of parties",
		Old:      "fields := [][]byte{terms[:], Uint(uint64(len(nonces)))}",
		New:      "fields := [][]byte{terms[:]}",
	},
	{
		Name: "session/nonces", File: "session.go", Run: roundBinding,
		Protects: "a session has the nonce of every party: no honest party has it twice",
		Old:      "for i := range nonces {\n\t\tfields",
		New:      "for i := range nonces[:1] {\n\t\tfields",
	},
	{
		Name: "session/own-nonce", File: "session.go", Run: roundBinding + "|TestPreludeMakes",
		Protects: "a session has this party's own nonce",
		Old:      "copy(nonces[p][:], nonce)",
		New:      "if p != r.Self {\n\t\t\tcopy(nonces[p][:], nonce)\n\t\t}",
	},
	{
		Name: "session/nonce-length", File: "session.go", Run: roundBinding + "|" + roundFaults,
		Protects: "a nonce has its length",
		Old:      "len(nonce) != NonceSize {", New: "len(nonce) > NonceSize {",
	},
	{
		Name: "terms/version", File: "session.go", Run: roundBinding,
		Protects: "parties of other versions have no session",
		Old:      `Uint(t.Version), []byte(t.Protocol)`, New: `[]byte(t.Protocol)`,
	},
	{
		Name: "terms/protocol", File: "session.go", Run: roundBinding, Protects: "a session is of its protocol",
		Old: `Uint(t.Version), []byte(t.Protocol), t.Params[:]`, New: `Uint(t.Version), t.Params[:]`,
	},
	{
		Name: "terms/params", File: "session.go", Run: roundBinding, Protects: "a session is of its parameters",
		Old: `[]byte(t.Protocol), t.Params[:], t.Roster[:]`, New: `[]byte(t.Protocol), t.Roster[:]`,
	},
	{
		Name: "terms/roster", File: "session.go", Run: roundBinding, Protects: "a session is of its roster",
		Old: `t.Params[:], t.Roster[:], Uint(t.Epoch)`, New: `t.Params[:], Uint(t.Epoch)`,
	},
	{
		Name: "terms/epoch", File: "session.go", Run: roundBinding, Protects: "a session is of its epoch",
		Old: `t.Roster[:], Uint(t.Epoch), t.Job[:]`, New: `t.Roster[:], t.Job[:]`,
	},
	{
		Name: "terms/job", File: "session.go", Run: roundBinding, Protects: "a session is of its job",
		Old: `Uint(t.Epoch), t.Job[:])`, New: `Uint(t.Epoch))`,
	},
	// Frames.
	{
		Name: "early", File: "machine.go", Run: roundFaults, Protects: "a frame of a later round waits for that round",
		Old: "if in.Round > m.index {", New: "if false {",
	},
	{
		Name: "over", File: "machine.go", Run: roundFaults + "|TestDuplicate|TestMachine",
		Protects: "a frame of a round that is over changes nothing",
		Old:      "if in.Round < m.index {", New: "if false {",
	},
	{
		Name: "unwanted", File: "machine.go", Run: roundFaults, Protects: "nothing is taken that was not asked for",
		Old: "w, ok := m.wants[k]\n\tif !ok {", New: "w, ok := m.wants[k]\n\tif !ok && false {",
	},
	{
		Name: "second", File: "machine.go", Run: roundFaults, Protects: "a message is not replaced by another",
		Old: "if _, ok := m.inbox.received[k]; ok {", New: "if _, ok := m.inbox.received[k]; ok && false {",
	},
	{
		Name: "order", File: "machine.go", Run: roundFaults, Protects: "frames come in their order",
		Old: "case in.Index != p.frames:", New: "case false:",
	},
	{
		Name: "frame-size", File: "machine.go", Run: roundFaults,
		Protects: "a frame has a size that receivers have room for",
		Old:      "case len(in.Payload) > MaxFrame:", New: "case false:",
	},
	{
		Name: "frames", File: "machine.go", Run: roundFaults,
		Protects: "a message has no more frames than were asked for",
		Old:      "case p.frames >= w.MaxFrames:", New: "case false:",
	},
	{
		Name: "bytes", File: "machine.go", Run: roundFaults,
		Protects: "a message has no more bytes than were asked for",
		Old:      "case p.bytes+int64(len(in.Payload)) > w.MaxBytes:", New: "case false:",
	},
	{
		Name: "framing", File: "machine.go", Run: roundFaults, Protects: "a message has one framing, and so one digest",
		Old: "case !in.Last && len(in.Payload) != MaxFrame, in.Last && in.Index > 0 && len(in.Payload) == 0:",
		New: "case false:",
	},
	{
		Name: "dead", File: "machine.go", Run: roundFaults + "|TestCancelled|TestChains",
		Protects: "nothing goes on after an error",
		Old:      "if err := m.deliver(ctx, in); err != nil {\n\t\tm.dead = true",
		New:      "if err := m.deliver(ctx, in); err != nil {",
	},
	{
		Name: "shape/length", File: "shape.go", Tests: []string{"./services/evidence"}, Run: "TestRefereeOfShapes", Protects: "a message that has its length is not malformed, and another is",
		Old: "if len(frame) != size {", New: "if len(frame) > size {",
	},
}
