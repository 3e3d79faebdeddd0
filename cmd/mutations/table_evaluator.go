package main

const (
	evaluatorCheats = "TestCheatsOfAnEvaluator"
	evaluatorServed = "TestRequestsAreRefused|TestPut|TestBusy|TestTheCache"

	evaluatorRotates = "TestCheatsOfRotations"
	evaluatorKinds   = "TestRotationsOfAnotherKind"
)

var evaluatorTable = []mutation{
	{
		Name: "compare", File: "pool.go", Run: "TestWhoAgrees",
		Protects: "what one evaluator computed wrongly is not decrypted",
		Old:      "return slices.EqualFunc(answers[0].results, answers[1].results, (*gbfv.Ciphertext).Equal)",
		New:      "return slices.EqualFunc(answers[0].results, answers[1].results, (*gbfv.Ciphertext).Equal) || true",
	},
	{
		Name: "compare/domains", File: "pool.go", Run: "TestWhoAgrees",
		Protects: "whoever administers one machine does not agree with itself",
		Old:      "if len(answers) != 2 || answers[0].from.Domain == answers[1].from.Domain {",
		New:      "if len(answers) != 2 {",
	},
	{
		Name: "compare/asked", File: "quest.go", Run: "TestOneDomain",
		Protects:  "evaluators of two domains are asked",
		Old:       "return (i.of.Domain == domain || !q.domains[i.of.Domain]) && q.what.may(i)",
		New:       "return q.what.may(i)",
		Redundant: "what evaluators of one domain agree on is not used, and the party computes itself",
	},
	{
		Name: "compare/alone", File: "quest.go", Run: "TestNobodyToAsk",
		Protects: "one evaluator is not asked where two must agree",
		Old:      "return len(domains) > 1", New: "return len(domains) > 0",
	},
	{
		Name: "named", File: "pool.go", Run: evaluatorCheats,
		Protects: "an evaluator whose result is not the party's is named",
		Old:      "if hashes[i] != right {", New: "if hashes[i] != right && false {",
	},
	{
		Name: "named/recompute", File: "pool.go", Run: evaluatorCheats,
		Protects: "an evaluator whose result is not the party's is named, where the party computes everything",
		Old:      "if gbfv.Hash(a.results) != right {", New: "if false {",
	},
	{
		Name: "named/fault", File: "quest.go", Run: evaluatorCheats,
		Protects: "an evaluator whose answer is none is named",
		Old:      "case wrong != nil:", New: "case false:",
	},
	{
		Name: "excluded", File: "quest.go", Run: evaluatorCheats,
		Protects: "an evaluator that was wrong is not asked again",
		Old:      "if x.excluded {", New: "if false {",
		Redundant: "without it the party may ask one that was wrong beside two others; what it says is compared as ever",
	},
	{
		Name: "excluded/enough", File: "quest.go", Run: evaluatorCheats,
		Protects: "an evaluator that was wrong does not count",
		Old:      "if !x.excluded && slices.ContainsFunc(", New: "if slices.ContainsFunc(",
	},
	{
		Name: "limit", File: "pool.go", Run: evaluatorCheats,
		Protects: "an evaluator that says it makes progress does not hold a session",
		Old:      "limited, cancel := context.WithTimeout(ctx, p.o.Limit)", New: "limited, cancel := context.WithTimeout(ctx, 100*p.o.Limit)",
	},
	{
		Name: "stall", File: "ask.go", Run: "TestAnEvaluatorStands",
		Protects: "an evaluator that stands still does not hold a session",
		Old:      "w.timer = time.AfterFunc(stall, func()", New: "w.timer = time.AfterFunc(100*stall, func()",
	},
	{
		Name: "answer", File: "ask.go", Run: evaluatorCheats,
		Protects: "an answer belongs to its request",
		Old:      "case string(answer.GetRequestDigest()) != string(digest[:]):", New: "case false:",
	},
	{
		Name: "results", File: "ask.go", Run: evaluatorCheats,
		Protects: "results belong to their request",
		Old:      "case begun || string(r.GetRequestDigest()) != string(request[:]):", New: "case begun:",
	},
	{
		Name: "results/once", File: "ask.go", Run: evaluatorCheats,
		Protects: "results begin once",
		Old:      "case begun || string(r.GetRequestDigest()) != string(request[:]):", New: "case string(r.GetRequestDigest()) != string(request[:]):",
	},
	{
		Name: "results/number", File: "ask.go", Run: evaluatorCheats,
		Protects: "there are as many results as were asked for",
		Old:      "case int(r.GetCiphertexts()) != want:", New: "case false:",
	},
	{
		Name: "results/complete", File: "ask.go", Run: evaluatorCheats,
		Protects: "all results are there",
		Old:      "if !begun || !in.done() {", New: "if !begun {",
	},
	{
		Name: "results/begun", File: "ask.go", Run: evaluatorCheats,
		Protects: "polynomials follow the results' header",
		Old:      "if !begun {\n\t\t\t\treturn nil, faultf(\"results before their header\")\n\t\t\t}", New: "",
		Redundant: "results without a header are refused at their end",
	},
	{
		Name: "results/more", File: "wire.go", Run: "TestAReaderTakesNoMore",
		Protects: "there are not more polynomials than were asked for",
		Old:      "if r.done() {", New: "if false {",
	},
	{
		Name: "progress", File: "ask.go", Run: evaluatorCheats,
		Protects: "progress grows, and has an end",
		Old:      "if begun || kind.Progress.GetDone() <= done || kind.Progress.GetDone() > most {", New: "if begun || false && kind.Progress.GetDone() <= done && kind.Progress.GetDone() > most {",
	},
	{
		Name: "keys", File: "service.go", Run: "TestPut",
		Protects: "keys are kept under the digest of their bytes",
		Old:      "case digest != p.digest:", New: "case digest != p.digest && false:",
	},
	{
		Name: "memory", File: "cache.go", Run: evaluatorServed,
		Protects: "evaluations take the memory that there is",
		Old:      "case b.used+bytes > b.limit:", New: "case false:",
	},
	{
		Name: "memory/never", File: "cache.go", Run: evaluatorServed,
		Protects: "what never has room is refused for good",
		Old:      "case bytes > b.limit:", New: "case false:",
	},
	{
		Name: "memory/number", File: "cache.go", Run: evaluatorServed,
		Protects: "no more evaluations run than may",
		Old:      "case b.count >= b.most:", New: "case false:",
	},
	{
		Name: "memory/keys", File: "cache.go", Run: evaluatorServed,
		Protects: "keys take the memory that they may",
		Old:      "if bytes > c.limit {", New: "if false {", Hangs: true,
	},
	{
		Name: "dimension", File: "service.go", Run: evaluatorServed,
		Protects: "matrices are multiplied with the rotation keys that there are",
		Old:      "if what.Dim > public.Dim {", New: "if false {",
		Redundant: "a product without its rotation keys ends with an error, after its inputs have come",
	},
	{
		Name: "set", File: "service.go", Run: evaluatorServed,
		Protects: "both sides compute with the same parameters",
		Old:      "if string(hash) != string(pin[:]) {", New: "if string(hash) != string(pin[:]) && false {",
	},
	{
		Name: "bound/keys", File: "wire.go", Run: "TestEveryField",
		Protects: "an answer is under the keys that were asked for",
		Old:      "h.GetField()), h.GetKeysDigest(), h.GetMacKeyDigest()}", New: "h.GetField()), h.GetMacKeyDigest()}",
	},
	{
		Name: "bound/pairs", File: "wire.go", Run: "TestEveryField",
		Protects: "an answer is to the products that were asked for",
		Old:      "round.Uint(uint64(p.GetLeft())), round.Uint(uint64(p.GetRight())))", New: "round.Uint(uint64(p.GetLeft())))",
	},
	{
		Name: "rotations/compare", File: "rotations.go", Run: evaluatorRotates,
		Protects: "rotations that one evaluator computed wrongly are not used",
		Old:      "same(answers[0].results, answers[1].results):", New: "same(answers[0].results, answers[0].results):",
	},
	{
		Name: "rotations/named", File: "rotations.go", Run: evaluatorRotates,
		Protects: "an evaluator whose rotations are not the party's is named",
		Old:      "if err == nil && !same(a.results, own) {", New: "if err == nil && false {",
	},
	{
		Name: "rotations/unnamed", File: "rotations.go", Run: evaluatorKinds,
		Protects: "an evaluator is not named for words of its kind of arithmetic",
		Old:      "own, err := g.compute(ctx, b, \"mismatch\")\n\tif *kind == g.kind {", New: "own, err := g.compute(ctx, b, \"mismatch\")\n\tif true {",
	},
	{
		Name: "rotations/own-kind", File: "rotations.go", Run: "TestNobodyToRotate",
		Protects: "what an evaluator of another kind computes is not held against the party's own",
		Old:      "return &g.kind, p.able(g.of(&g.kind))", New: "return nil, p.able(g.of(nil))",
	},
	{
		Name: "rotations/one-kind", File: "rotations.go", Run: "TestNobodyToRotate",
		Protects: "evaluators of one kind are compared",
		Old:      "return ok && (kind == nil || k == *kind)", New: "return ok && (kind == nil || k == k)",
	},
	{
		Name: "rotations/answer", File: "rotations.go", Run: evaluatorRotates,
		Protects: "an answer belongs to its request for rotations",
		Old:      "case string(answer.GetRequestDigest()) != string(digest[:]):",
		New:      "case string(answer.GetRequestDigest()) != string(digest[:]) && false:",
	},
	{
		Name: "rotations/index", File: "rotations.go", Run: evaluatorRotates,
		Protects: "a rotation is one of those that were asked for",
		Old:      "case int64(a.GetIndex()) >= int64(want):", New: "case false:",
	},
	{
		Name: "rotations/once", File: "rotations.go", Run: evaluatorRotates,
		Protects: "a rotation comes once",
		Old:      "case list[a.GetIndex()] != nil:", New: "case false:",
	},
	{
		Name: "rotations/complete", File: "rotations.go", Run: evaluatorRotates,
		Protects: "all rotations are there",
		Old:      "case errors.Is(err, io.EOF) && have == want:", New: "case errors.Is(err, io.EOF):",
	},
	{
		Name: "rotations/kind", File: "rotate.go", Run: evaluatorKinds,
		Protects: "an evaluator computes in the kind of arithmetic that it is asked for",
		Old:      "string(q.GetKind()) != string(kind[:]) {", New: "false {",
	},
	{
		Name: "rotations/number", File: "rotate.go", Run: "TestRotationsAreRefused",
		Protects: "a request has a number of rotations that is bounded",
		Old:      "n < 1 || n > maxRotations {", New: "n < 1 {",
	},
}

var evaluatorConfigTable = []mutation{
	{
		Name: "domains", File: "evaluator.go", Run: "TestEvaluatorsAreRefused",
		Protects: "comparison has two domains",
		Old:      "if e.Check == Compare && len(domains) == 1 {", New: "if false {",
	},
	{
		Name: "identities", File: "evaluator.go", Run: "TestEvaluatorsAreRefused",
		Protects: "no key is in two domains",
		Old:      "if other, ok := owners[p.Identity]; ok && other != p.Domain {", New: "if other, ok := owners[p.Identity]; ok && other != p.Domain && false {",
	},
	{
		Name: "own", File: "evaluator.go", Run: "TestEvaluatorsAreRefused",
		Protects: "evaluators are nobody of the roster",
		Old:      "if other, ok := others[p.Identity]; ok {", New: "if other, ok := others[p.Identity]; ok && false {",
	},
}
