package main

// accusationsTable has what a party makes of evidence and of failures with nobody named.
var accusationsTable = []mutation{
	{
		Name: "convicts/key", File: "book.go", Run: "TestAccusationFollows", Protects: "an accusation is of the holder of a key, and of no name",
		Old: "if m.SigningKey == a.Key {", New: "if m.Name == a.Culprit {",
	},
	{
		Name: "convicts/pardon", File: "book.go", Run: "TestPardon", Protects: "who was pardoned is not excluded",
		Old: "return round.Party(i), a.Pardon == nil", New: "return round.Party(i), true",
	},
	{
		Name: "convicts/policy", File: "book.go", Run: "TestPardon", Protects: "cheats are excluded where that is the policy",
		Old: "b.Policy.OnProvenCheat == config.Exclude && ", New: "",
	},
	{
		Name: "convict/verified", File: "book.go", Run: "TestWhatProvesNothing", Protects: "a file counts for what it proves, whoever brings it",
		Old: "f, err := b.verified(ctx, e)\n\tif err != nil {\n\t\treturn a, false, err\n\t}",
		New: "f, err := b.verified(ctx, e)\n\tif err != nil {\n\t\tf = &evidence.Finding{Culprit: evidence.Party{Index: 2}}\n\t}",
	},
	{
		Name: "convict/roster", File: "book.go", Run: "TestWhatProvesNothing", Protects: "a file convicts somebody of the roster",
		Old: "if err == nil && (f.Culprit.Index < 0 || int(f.Culprit.Index) >= len(b.Roster.Parties)) {", New: "if false {",
	},
	{
		Name: "convict/at-once", File: "book.go", Run: "TestMuchEvidence", Protects: "who is convicted is excluded at once",
		Old: "\tb.reread()\n\tif err := b.Excluded(culprit)", New: "\tif err := b.Excluded(culprit)",
	},
	{
		Name: "convict/cancels", File: "book.go", Run: "TestMuchEvidence", Protects: "sessions with a convicted party end",
		Old: "if err := b.Excluded(culprit); err != nil {", New: "if err := b.Excluded(culprit); false {",
	},
	{
		Name: "admit/excluded", File: "book.go", Run: "TestMuchEvidence", Protects: "no session begins with a convicted party",
		Old: "if err := b.Excluded(p); err != nil {", New: "if err := b.Excluded(p); false {",
	},
	{
		Name: "admit/late", File: "book.go", Run: "TestFailureThatIsNotRecorded", Protects: "no session begins before a failure is recorded",
		Old: "if err := b.catchUp(); err != nil {\n\t\treturn rpc.Errorf", New: "if err := b.catchUp(); err != nil && false {\n\t\treturn rpc.Errorf",
	},
	{
		Name: "admit/stopped", File: "book.go", Run: "TestStop", Protects: "too many failures stop generation",
		Old: "\treturn b.stopped(c)\n}", New: "\t_ = c\n\treturn nil\n}",
	},
	{
		Name: "ended/notes", File: "book.go", Run: "TestWhatCounts", Protects: "failures are counted",
		Old: "b.late = append(b.late, u)", New: "",
	},
	{
		Name: "ended/peers", File: "book.go", Run: "TestWhatCounts", Protects: "a peer whose check failed may lie, or was lied to by any other",
		Old: "if f.Outcome == runner.PeerAbort || len(f.Suspects) == 0 {", New: "if len(f.Suspects) == 0 {",
	},
	{
		Name: "ended/everybody", File: "book.go", Run: "TestWhatCounts", Protects: "where nobody is suspected everybody is",
		Old: "if f.Outcome == runner.PeerAbort || len(f.Suspects) == 0 {", New: "if f.Outcome == runner.PeerAbort {",
	},
	{
		Name: "ended/sacrifice", File: "book.go", Run: "TestSacrifice", Protects: "keys that make wrong products make nothing more",
		Old: "if f.Outcome == runner.Aborted && check == checkSacrifice {", New: "if false {",
	},
	{
		Name: "ended/sacrifice-here", File: "book.go", Run: "TestSacrifice", Protects: "the word of a peer ends the use of no keys",
		Old: "if f.Outcome == runner.Aborted && check == checkSacrifice {", New: "if check == checkSacrifice {",
	},
	{
		Name: "unnamed/check", File: "unnamed.go", Run: "TestWhatCounts", Protects: "what proves no cheat does not count",
		Old: "return f.Check, slices.Contains(checks, f.Check)", New: "return f.Check, !slices.Contains(checks, \"\")",
	},
	{
		Name: "unnamed/outcome", File: "unnamed.go", Run: "TestWhatCounts", Protects: "what proves no cheat does not count",
		Old: "if f.Outcome == runner.Aborted {", New: "if f.Outcome != runner.PeerAbort {",
	},
	{
		Name: "unnamed/word", File: "unnamed.go", Run: "TestWhatCounts", Protects: "a peer's word counts for checks that cheats fail",
		Old: "case check == \"\" && w.Rejects(checks...):", New: "case check == \"\":",
	},
	{
		Name: "unnamed/worst", File: "unnamed.go", Run: "TestWhatCounts", Protects: "of several words the worst counts",
		Old: "case w.Rejects(checkSacrifice):", New: "case false:",
	},
	{
		Name: "unnamed/mac", File: "unnamed.go", Run: "TestWhatCounts", Protects: "failed MAC checks count",
		Old: "\tmaccheck.CheckMAC, maccheck.CheckZero,", New: "\tmaccheck.CheckZero,",
	},
	{
		Name: "unnamed/zero", File: "unnamed.go", Run: "TestWhatCounts", Protects: "values that should be zero count",
		Old: "maccheck.CheckMAC, maccheck.CheckZero, ", New: "maccheck.CheckMAC, ",
	},
	{
		Name: "unnamed/sacrifice", File: "unnamed.go", Run: "TestWhatCounts", Protects: "failed sacrifices count",
		Old: "maccheck.CheckZero, checkSacrifice, ", New: "maccheck.CheckZero, ",
	},
	{
		Name: "unnamed/verdict", File: "unnamed.go", Run: "TestWhatCounts", Protects: "other verdicts count",
		Old: "checkSacrifice, verdict.Check, ", New: "checkSacrifice, verdict.Check + \"?\", ",
	},
	{
		Name: "unnamed/echo", File: "unnamed.go", Run: "TestWhatCounts", Protects: "broadcasts that differ count",
		Old: "round.CheckEcho, ", New: "round.CheckEcho + \"?\", ",
	},
	{
		Name: "unnamed/evaluated", File: "unnamed.go", Run: "TestWhatCounts", Protects: "ciphertexts that differ count",
		Old: "triple.CheckEvaluated, ", New: "triple.CheckEvaluated + \"?\", ",
	},
	{
		Name: "unnamed/agree", File: "unnamed.go", Run: "TestWhatCounts", Protects: "keys that differ count",
		Old: ", keygen.CheckAgree,", New: ", keygen.CheckAgree + \"?\",",
	},
	// The calls of those who are excluded.
	{
		Name: "refuse/call", File: "refuse.go", Run: "TestCallsOfTheExcluded", Protects: "calls of a convicted party are refused",
		Old: "if err := b.refuses(ctx, info.FullMethod); err != nil {", New: "if err := b.refuses(ctx, info.FullMethod); false {",
	},
	{
		Name: "refuse/stream", File: "refuse.go", Run: "TestCallsOfTheExcluded", Protects: "streams of a convicted party are refused",
		Old: "if err := b.refuses(s.Context(), info.FullMethod); err != nil {", New: "if err := b.refuses(s.Context(), info.FullMethod); false {",
	},
	{
		Name: "refuse/open-stream", File: "refuse.go", Run: "TestCallsOfTheExcluded", Protects: "streams that a convicted party has open end",
		Old: "return w.book.refuses(w.Context(), w.method)", New: "return nil",
	},
	{
		Name: "refuse/evidence", File: "refuse.go", Run: "TestCallsOfTheExcluded", Protects: "who is excluded, perhaps by itself alone, may show what others did",
		Old: "method == accusationsv1.AccusationsService_Offer_FullMethodName {", New: "method == accusationsv1.AccusationsService_Offer_FullMethodName+\"?\" {",
	},
	// What peers show.
	{
		Name: "offer/digest-form", File: "offer.go", Run: "TestOffer", Protects: "a file is announced by its digest",
		Old: "case len(r.GetDigest()) != sha256.Size || ", New: "case ",
	},
	{
		Name: "offer/size", File: "offer.go", Run: "TestOffer", Protects: "a file fits",
		Old: "case r.GetSize() > maxFile:", New: "case false:",
	},
	{
		Name: "offer/chunk", File: "offer.go", Run: "TestOffer", Protects: "a file comes in pieces that fit",
		Old: "if n > chunk || n > left {", New: "if n > left {",
	},
	{
		Name: "offer/longer", File: "offer.go", Run: "TestOffer", Protects: "a file takes no more room than was said",
		Old: "if n > chunk || n > left {", New: "if n > chunk {",
	},
	{
		Name: "offer/digest", File: "offer.go", Run: "TestOffer", Protects: "a file is the one that was announced",
		Old: "if sum := e.Digest(); !bytes.Equal(sum[:], first.GetDigest()) {", New: "if sum := e.Digest(); bytes.Equal(sum[:], nil) {",
	},
	{
		Name: "offer/proof", File: "offer.go", Run: "TestOffer", Protects: "who shows what proves nothing is heard less often",
		Old: "\tproof = err == nil\n", New: "\tproof = true\n",
	},
	{
		Name: "offer/nothing", File: "offer.go", Run: "TestOffer", Protects: "who shows what proves nothing is heard less often",
		Old: "case errors.As(err, &nothing):", New: "case errors.As(err, &nothing) && func() bool { proof = true; return true }():",
	},
	{
		Name: "offer/one", File: "book.go", Run: "TestOffer", Protects: "one file is looked at at a time",
		Old: "receiving: make(chan struct{}, 1)", New: "receiving: make(chan struct{}, 100)",
	},
	{
		Name: "limits/one", File: "offer.go", Run: "TestOffersAreLimited", Protects: "a peer shows one file at a time",
		Old: "case l.open:", New: "case false:",
	},
	{
		Name: "limits/rate", File: "offer.go", Run: "TestOffersAreLimited", Protects: "a peer shows few files",
		Old: "case wait <= 0 && l.bucket.AllowN(now, 1):", New: "case wait <= 0:",
	},
	{
		Name: "limits/pause", File: "offer.go", Run: "TestOffersAreLimited", Protects: "who shows what proves nothing waits",
		Old: "l.until = now.Add(l.pause)", New: "",
	},
	{
		Name: "limits/longer", File: "offer.go", Run: "TestOffersAreLimited", Protects: "who shows what proves nothing waits ever longer",
		Old: "max(2*l.pause, firstPause)", New: "max(l.pause, firstPause)",
	},
	// Operators.
	{
		Name: "act/reason", File: "service.go", Run: "TestPardon", Protects: "an operator says why",
		Old: "if reason == \"\" {", New: "if false {",
	},
	{
		Name: "act/last", File: "service.go", Run: "TestStop", Protects: "failures that an operator has not seen are not cleared",
		Old: "b.Vault.ClearUnnamed(b.roster, r.GetLast(), act)", New: "b.Vault.ClearUnnamed(b.roster, 0, act)",
	},
	{
		Name: "act/late", File: "service.go", Run: "TestFailureThatIsNotRecorded", Protects: "failures that are not recorded yet are not cleared",
		Old: "if err := b.catchUp(); err != nil {\n\t\treturn nil, err\n\t}", New: "",
		Redundant: "what is recorded later is not among those that were cleared, and counts",
	},
	{
		Name: "act/permission", File: "service.go", Tests: []string{"./services/internal/refusals"}, Protects: "failures are cleared, and cheats pardoned, by those who may",
		Old: "act  = rpc.Allow(rpc.Self, rpc.Client).With(config.PermAccusations)", New: "act  = rpc.Allow(rpc.Self, rpc.Client).With(config.PermStatus)",
	},
	{
		Name: "offer/peers", File: "service.go", Tests: []string{"./services/internal/refusals"}, Protects: "evidence comes from parties",
		Old: "rpc.Allow(rpc.Peer),", New: "rpc.Allow(rpc.Peer, rpc.Client),",
	},
}
