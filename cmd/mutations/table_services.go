package main

var triplesTable = []mutation{
	{
		Name: "check/unfinished", File: "checks.go", Run: "TestHowAnEnd|TestAPeerThatWithholds",
		Protects: "a check that does not end counts",
		Old:      "	return vault.CheckUnfinished\n",
		New:      "	return vault.CheckPassed\n",
	},
	{
		Name: "check/failed", File: "checks.go", Run: "TestHowAnEnd|TestOnlyTheOwn",
		Protects: "every check that drops a batch counts",
		Old:      "var verdicts = []string{maccheck.CheckMAC, maccheck.CheckZero, maccheck.CheckSacrifice}",
		New:      "var verdicts = []string{maccheck.CheckMAC}",
	},
	{
		Name: "check/rejected", File: "checks.go", Run: "TestHowAnEnd",
		Protects: "a signed word that a check failed elsewhere counts",
		Old:      "failedHere(err) || rejected(err)",
		New:      "failedHere(err)",
	},
	{
		Name: "verdict/signed", File: "verdict.go", Run: "TestActivation",
		Protects: "a batch is released with the signatures of all parties",
		Old:      "if p >= len(b.Verdict.Signatures) || !e.Verify(key, b.Verdict.Signatures[p]) {",
		New:      "if p >= len(b.Verdict.Signatures) || len(e.Name)+len(key) == 0 {",
	},
	{
		Name: "verdict/batch", File: "verdict.go", Run: "TestActivation",
		Protects: "a verdict is on its batch",
		Old:      "digest, err := round.DigestOf(verdict.Name, round.Bytes(b.Digest[:]))",
		New:      "digest, err := round.DigestOf(verdict.Name, round.Bytes(nil))",
	},
	{
		Name: "verdict/session", File: "verdict.go", Run: "TestActivation",
		Protects: "a verdict is of its session",
		Old:      "Session: b.SessionID, Round",
		New:      "Round",
	},
	{
		Name: "verdict/number", File: "verdict.go", Run: "TestABatch|TestActivation",
		Protects: "a batch is stored with the verdicts of all parties",
		Old:      "if len(signed) != parties {",
		New:      "if len(signed) > parties {",
	},
	{
		Name: "verdict/activated", File: "run.go", Run: "TestActivation|TestABatch",
		Protects: "activation looks at the verdicts",
		Old:      "if err := accepted(&b, of.Keys); err != nil {",
		New:      "if err := accepted(&b, of.Keys); false {",
	},
	{
		Name: "check/begin", File: "checks.go", Run: "TestAPeerThatWithholds|TestAnEndBefore",
		Protects: "a check is recorded as under way before anything is opened",
		Old:      "err := r.vault.BeginCheck(r.macID, r.name())",
		New:      "err := error(nil)",
	},
	{
		Name: "check/proved", File: "checks.go", Run: "TestHowAnEnd|TestABatchIsReleased",
		Protects: "under keys that are not proved only a batch that all accept leaves the MAC key alone",
		Old:      "case r.passed && r.proved:",
		New:      "case r.passed:",
	},
	{
		Name: "unreleased", File: "verdict.go", Run: "TestAnUnreleased",
		Protects: "a result that not all accept is erased",
		Old:      "	rs.Secrets.Own(held)\n",
		New:      "",
	},
	{
		Name: "claim", File: "claims.go", Run: "TestClaims",
		Protects: "one session makes the MAC key of a slot",
		Old:      "case h.maker || x.maker:",
		New:      "case false:",
	},
	{
		Name: "claim-locked", File: "claims.go", Run: "TestClaims",
		Protects: "a MAC key that is not active everywhere is nobody's",
		Old:      "case k.State == vault.MACLocked:",
		New:      "case false:",
	},
	{
		Name: "claim-users", File: "claims.go", Run: "TestClaims",
		Protects: "a MAC key that others use is not given up",
		Old:      "case h.users > 1:",
		New:      "case false:",
	},
	{
		Name: "stored-mac-key", File: "run.go", Run: "Fuzz",
		Protects:  "a stored MAC key has its length",
		Old:       "if len(b) < size || (len(b)-size)%2 != 0 {",
		New:       "if len(b) < size {",
		Redundant: "the polynomials behind the share have one length, which their decoder demands",
	},
	{
		Name: "stored-share", File: "run.go", Run: "Fuzz",
		Protects: "a stored share of a MAC key is canonical",
		Old:      "if err := s.Field.DecodeVec(m.Share, b[:size]); err != nil {",
		New:      "if err := s.Field.DecodeVec(m.Share, b[:size]); err != nil && false {",
	},
}
