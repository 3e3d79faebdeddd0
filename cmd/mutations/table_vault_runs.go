package main

// vaultRunsTable has what a vault checks of the answers that threshold decryption gives.
var vaultRunsTable = []mutation{
	{
		Name: "runs/client", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "an answer is some client's",
		Old: "if r.Client == \"\" || ", New: "if ",
	},
	{
		Name: "runs/client-length", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "the name of a client is bounded",
		Old: "len(r.Client) > 2*maxName || ", New: "",
	},
	{
		Name: "runs/client-text", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "two clients are not recorded as one",
		Old: "!utf8.ValidString(r.Client) || r.Run", New: "!utf8.ValidString(\"\") || r.Run",
	},
	{
		Name: "runs/id", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "runs that have no name are not taken for one",
		Old: " || r.Run == (RunID{}) {", New: " {",
	},
	{
		Name: "runs/bounded", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "a run fits into a transaction",
		Old: "case n == 0 || n > maxRun || r.AnswerBytes < 1 || r.AnswerBytes > maxAnswer || ", New: "case r.AnswerBytes < 1 || ",
	},
	{
		Name: "runs/length", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "each message has an answer",
		Old: "case len(r.Answers) != n*r.AnswerBytes:", New: "case false:",
	},
	{
		Name: "runs/twice", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "a message has one answer of a run",
		Old: "; twice {", New: "; twice && false {",
	},
	{
		Name: "runs/overlap", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "a message has one answer of a run, wherever it is in it",
		Old: "&& r.Messages[i-1].end() <= m.First {", New: "{",
	},
	{
		Name: "runs/messages", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "messages have numbers",
		Old: "if m.First < 0 || m.Count < 1 || m.Count > maxRun || m.First > maxRun-m.Count {", New: "if m.Count > maxRun {",
	},
	{
		Name: "runs/again", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "a run is recorded once",
		Old: "\tif err == nil {\n\t\treturn nil, fmt.Errorf(\"%w: run %x\", ErrExists, r.Run)\n\t}\n", New: "",
	},
	{
		Name: "runs/delivered", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "a ciphertext is decrypted for one client, also when two ask at once",
		Old: "if earlier.Client != r.Client {", New: "if earlier == nil {",
	},
	{
		Name: "runs/counted", File: "runs.go", Run: "TestThresholdLedger$", Protects: "answers are counted",
		Old: "e.Answered += uint64(pieces[k].count)", New: "_ = k",
	},
	{
		Name: "runs/counted-again", File: "runs.go", Run: "TestMessagesOfCiphertexts", Protects: "messages are counted when they are answered for the first time",
		Old: "e.Answered += uint64(fresh)", New: "_ = fresh",
	},
	{
		Name: "runs/kept", File: "pointers.go", Run: "TestMessagesOfCiphertexts|TestLedgerOfAnyMessages", Protects: "a run takes nothing from messages that it does not answer for",
		Old: "if o.first < n.first {", New: "if false {",
	},
	{
		Name: "runs/kept-behind", File: "pointers.go", Run: "TestMessagesOfCiphertexts|TestLedgerOfAnyMessages", Protects: "a run takes nothing from messages that it does not answer for",
		Old: "if o.count > 0 {", New: "if o.count > 0 && false {",
	},
	{
		Name: "runs/pointer", File: "pointers.go", Run: "TestPointersAreChecked", Protects: "a message has one answer",
		Old: "if p.count < 1 || p.first < end {", New: "if p.count < 1 || end < 0 {",
	},
	{
		Name: "runs/entry", File: "pointers.go", Run: "TestPointersAreChecked", Protects: "an entry has an answer for each of its messages",
		Old: "if e.Count < 1 || e.Count > len(b)/size {", New: "if e.Count > len(b)/size {",
	},
	{
		Name: "runs/quorum", File: "pointers.go", Run: "TestThresholdLedger$", Protects: "each quorum has answers of its own",
		Old: "named = binary.LittleEndian.AppendUint32(named, q)", New: "_ = q",
	},
	{
		Name: "runs/purpose", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "a run is under a threshold epoch",
		Old: "e, err := v.answers(tx, r.Epoch, PurposeThreshold)", New: "e, err := v.answers(tx, r.Epoch, e.Purpose)",
	},
	{
		Name: "runs/mine", File: "runs.go", Run: "TestThresholdLedgerRefuses", Protects: "a run is of a quorum, this party in it",
		Old: "err = v.checkMine(e, r.Quorum)", New: "_ = v.checkMine",
	},
	{
		Name: "runs/retired", File: "runs.go", Run: "TestRetireThreshold", Protects: "nothing is decrypted under a retired epoch",
		Old: "if err == nil && e.State == EpochRetired {", New: "if false {",
		Redundant: "its secret is gone, and the transaction looks again",
	},
	{
		Name: "runs/generation", File: "runs.go", Run: "TestRunsMakeAGeneration", Protects: "peers notice a store that has forgotten answers",
		Old: "return v.advance(", New: "return v.update(",
	},
	{
		Name: "runs/looked-up", File: "runs.go", Run: "TestQuarantineOfAnswers|TestThresholdLedgerRefuses", Protects: "a store that may have been put back, and one of another roster, answer nothing",
		Old: "if e, err = v.answers(tx, epoch, PurposeThreshold); err != nil {", New: "if _, err = v.answers(tx, epoch, PurposeThreshold); false {",
	},
	{
		Name: "runs/digest", File: "runs.go", Run: "TestCheckOfRuns", Protects: "an answer is given for its ciphertext, wherever a pointer leads",
		Old: "e.Ciphertext != m.Ciphertext ||", New: "",
	},
	{
		Name: "runs/piece", File: "runs.go", Run: "TestCheckOfRuns", Protects: "an answer is given for its message, whatever a pointer says",
		Old: "|| !e.has(p) {", New: "{",
	},
	{
		Name: "runs/of-this", File: "runs.go", Run: "TestCheckOfRuns", Protects: "an answer is of its quorum, and a pointer leads to one",
		Old: "if h.Run != p.run || h.Epoch != x.epoch.ID || !slices.Equal(h.Quorum, x.quorum) || p.chunk >= h.Chunks || h.AnswerBytes < 1 {", New: "if p.chunk >= h.Chunks || h.AnswerBytes < 1 {",
	},
	{
		Name: "runs/epoch-key", File: "runs.go", Run: "TestAnswersAreUnderTheEpoch", Protects: "the answers under a retired epoch cannot be read, whatever was kept of the records",
		Old: "append(s.chunks, seal(aead, key, plain))", New: "append(s.chunks, bytes.Clone(plain))",
	},
	{
		Name: "runs/forgotten", File: "ledger.go", Run: "TestRetireThreshold|TestLedgerCrash", Protects: "the answers under a retired epoch are erased",
		Old: "if err := v.forgetRuns(tx, epoch); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "runs/check", File: "check_runs.go", Run: "TestCheckOfRuns", Protects: "pointers that lead nowhere are found",
		Old: "r == nil || p.chunk >= r.Chunks {", New: "r == nil && p.chunk < 0 {",
	},
	{
		Name: "runs/check-led", File: "check_runs.go", Run: "TestCheckOfRuns", Protects: "pointers that lead to other ciphertexts are found",
		Old: "if l.led != l.total {", New: "if false {",
	},
	{
		Name: "runs/check-all", File: "check_runs.go", Run: "TestCheckOfRuns", Protects: "answers that no pointer leads to are found",
		Old: "if !all {", New: "if !all && false {",
	},
	{
		Name: "runs/check-count", File: "check_runs.go", Run: "TestCheckOfRuns", Protects: "answers that are missing from a run are found",
		Old: "if count != r.Count {", New: "if false {",
	},
	{
		Name: "opened/bytes", File: "opened.go", Run: "TestOpenedRecords", Protects: "a record that was opened before is given for the same sealed bytes alone",
		Old: "if !ok || !bytes.Equal(held.sealed, sealed) {", New: "if !ok {",
	},
	{
		Name: "opened/apart", File: "opened.go", Run: "TestOpenedRecords", Protects: "who reads a record changes it for nobody else",
		Old: "	return c.clone()\n", New: "	_ = c\n	return held.record.(*T)\n",
	},
	{
		Name: "flooding/quorum", File: "flooding.go", Run: "TestFlooding$", Protects: "a ciphertext is decrypted with flooding by one quorum",
		Old: "case !slices.Equal(e.Quorum, r.Quorum):", New: "case !slices.Equal(e.Quorum, r.Quorum) && false:",
	},
	{
		Name: "flooding/whose", File: "flooding.go", Run: "TestFlooding$", Protects: "a ciphertext is decrypted with flooding for one client",
		Old: "case e.Client != r.Client:", New: "case false:",
	},
	{
		Name: "flooding/mine", File: "flooding.go", Run: "TestFlooding$", Protects: "an answer is of a quorum, this party in it",
		Old: "if err := v.checkMine(e, r.Quorum); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "flooding/client", File: "flooding.go", Run: "TestFlooding$", Protects: "an answer is some client's",
		Old: "if r.Client == \"\" || len(r.Quorum) == 0 ||", New: "if len(r.Quorum) == 0 ||",
	},
	{
		Name: "flooding/key", File: "flooding.go", Run: "TestFlooding$", Protects: "an answer is of its ciphertext",
		Old: "floodingKey(epoch uint64, digest [32]byte) string {\n", New: "floodingKey(epoch uint64, digest [32]byte) string {\n\tdigest = [32]byte{}\n",
	},
	{
		Name: "flooding/twice", File: "flooding.go", Run: "TestFlooding$", Protects: "a ciphertext is counted in a run as often as it is flooded",
		Old: "if seen[d] {", New: "if seen[d] && false {",
	},
	{
		Name: "flooding/count", File: "flooding.go", Run: "TestFlooding", Protects: "floods are counted before they are made",
		Old: "epoch.Decrypted += uint64(len(r.Digests))", New: "_ = epoch",
	},
	{
		Name: "flooding/limit", File: "flooding.go", Run: "TestFlooding", Protects: "keys flood as often as their set allows",
		Old: "if err := mayFlood(epoch, others, len(r.Digests)); err != nil {", New: "if err := mayFlood(epoch, others, 0); err != nil {",
	},
	{
		Name: "flooding/released", File: "flooding.go", Run: "TestFlooding", Protects: "what has left a party is not made anew",
		Old: "if e != nil && e.Released {", New: "if e != nil && e.Released && false {",
	},
	{
		Name: "flooding/others", File: "allowance.go", Run: "TestFloodingUnderNewShares", Protects: "a ciphertext has one quorum under all epochs of the same keys",
		Old: "x.Digest == e.Digest {", New: "x.Digest != x.Digest {",
	},
	{
		Name: "flooding/others-count", File: "allowance.go", Run: "TestFloodingUnderNewShares", Protects: "what was answered under another epoch of the same keys counts",
		Old: "left -= e.Decrypted * each", New: "_ = each",
	},
	{
		Name: "flooding/cost", File: "allowance.go", Run: "TestFloodingCostsByTheFirstThreshold", Protects: "runs with one honest member count as often as they may go uncounted",
		Old: "return uint64(origin.Threshold) + 1", New: "return 1",
	},
	{
		Name: "flooding/newcomer", File: "allowance.go", Run: "TestFloodingByNewHolders", Protects: "new shares bring no decryptions with flooding",
		Old: "if e.From == 0 {", New: "if true {",
	},
	{
		Name: "flooding/foreseen", File: "flooding.go", Tests: []string{"./services/threshold"}, Run: "TestFloodingIsSpentByRestore",
		Protects: "no member of a quorum begins what another may not",
		Old:      "if err == nil && more > 0 {", New: "if false {",
	},
	{
		Name: "flooding/run", File: "flooding.go", Run: "TestFloodingThatEnds", Protects: "what is recorded is of the run that was begun",
		Old: "if err == nil && (e == nil || r.Run != RunID{} && e.Run != r.Run) {", New: "if err == nil && e == nil {",
	},
	{
		Name: "flooding/unrecorded", File: "flooding.go", Run: "TestFloodingThatEnds", Protects: "nothing is released that is not recorded",
		Old: "if e.Object == \"\" || e.Run != held[i].Run {", New: "if e.Run != held[i].Run {",
	},
	{
		Name: "flooding/another-run", File: "flooding.go", Run: "TestFloodingThatEnds", Protects: "what is released is what is recorded",
		Old: "if e.Object == \"\" || e.Run != held[i].Run {", New: "if e.Object == \"\" {",
	},
}
