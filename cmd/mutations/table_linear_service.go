package main

var linearServiceTable = []mutation{
	{
		Name: "passive", File: "linear.go", Run: "TestPassiveIsRefused",
		Protects: "a party computes nothing that is passively secure unless it is told to",
		Old:      "if !s.AllowPassive {", New: "if false {",
	},
	{
		Name: "insecure", File: "linear.go", Run: "TestMultiplySecurely",
		Protects: "sets that hide nothing are for tests",
		Old:      "if set.Insecure && !s.AllowInsecure {", New: "if false {",
	},
	{
		Name: "set-hash", File: "linear.go", Run: "Refuse",
		Protects: "both sides mean the same set",
		Old:      "string(hash) != string(want[:]) {", New: "false && string(hash) != string(want[:]) {",
	},
	{
		Name: "rate", File: "linear.go", Run: "TestWhoMayMultiply",
		Protects: "a client has no more products in an hour than the policy says",
		Old:      "if len(list) >= most {", New: "if false {",
	},
	{
		Name: "twice", File: "runs.go", Run: "TestEndsMustFit",
		Protects: "an end of a run is there once",
		Old:      "case x.ends[who]:", New: "case false:",
	},
	{
		Name: "meaning", File: "runs.go", Run: "TestEndsMustFit",
		Protects: "both ends mean the same product",
		Old:      "case x.means != meaningOf(h):", New: "case false:",
	},
	{
		Name: "named", File: "runs.go", Run: "TestEndsMustFit",
		Protects: "nobody takes the end of another client",
		Old:      "key := runKey{[runIDSize]byte(h.GetRun()), client, h.GetWith()}",
		New:      "key := runKey{[runIDSize]byte(h.GetRun()), \"\", \"\"}",
	},
	{
		Name: "residues", File: "shared.go", Run: "TestRunsRefuse",
		Protects: "what is multiplied with is residues, in one encoding",
		Old:      "[]uint64{x.scheme.T}, b); err != nil {", New: "[]uint64{x.scheme.T}, b); false {",
	},
	{
		Name: "log", File: "ask.go", Run: "TestProductsAreInTheLog",
		Protects: "whose matrix it was learns how often it was used",
		Old:      "if _, err := s.Audit.Append(audit.Entry{Event: audit.Multiplied", New: "if _, err := s.Audit.Append(audit.Entry{Event: audit.Reserved",
	},
	{
		Name: "spend", File: "budget.go", Run: "TestDistanceBudget",
		Protects: "the distance of a product is counted before an answer leaves",
		Old:      "s.Vault.SpendDistance(x.pair(), x.distance(), s.Policy.DistanceBudget())",
		New:      "x.pair(), s.Vault.MayDistance(x.pair(), x.distance(), s.Policy.DistanceBudget())",
	},
	{
		Name: "identity", File: "budget.go", Run: "TestDistanceBudget",
		Protects: "another name of the same certificate has no budget of its own",
		Old:      "Asks: asks.Identity, Answers: answers.Identity,", New: "Asks: asks.Name, Answers: answers.Name,",
	},
}
