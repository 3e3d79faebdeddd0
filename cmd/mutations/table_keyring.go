package main

var keyringTable = []mutation{
	{
		Name: "purpose", File: "keyring.go", Run: "TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed",
		Protects: "keys serve what they were made for",
		Old:      "case e.Purpose != purpose:",
		New:      "case false:",
		Tests:    []string{"./services/party", "./services/keyring"},
	},
	{
		Name: "retired", File: "keyring.go", Run: "TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed",
		Protects: "a retired epoch serves nothing",
		Old:      "case e.State == vault.EpochRetired:",
		New:      "case false:",
		Tests:    []string{"./services/party", "./services/keyring"},
	},
	{
		Name: "locked", File: "keyring.go", Run: "TestKeysThat",
		Protects: "an epoch serves when it is active everywhere",
		Old:      "case e.State == vault.EpochLocked:",
		New:      "case false:",
	},
	{
		Name: "roster", File: "keyring.go", Run: "TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed",
		Protects: "an epoch serves the roster that it was made under",
		Old:      "case r.vault.Standing(&e) != vault.SameRoster:",
		New:      "case false:",
		Tests:    []string{"./services/party", "./services/keyring"},
	},
	{
		Name: "passive", File: "keyring.go", Run: "TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed",
		Protects: "keys without proofs serve those who allow them",
		Old:      "case e.KeygenSecurity != params.Proved && !r.passive:",
		New:      "case false:",
		Tests:    []string{"./services/party", "./services/keyring"},
	},
	{
		Name: "draining", File: "keyring.go", Run: "TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed",
		Protects: "nothing new is made under an epoch that drains",
		Old:      "if err == nil && e.State == vault.EpochDraining {",
		New:      "if false {",
		Tests:    []string{"./services/party", "./services/keyring"},
	},
	{
		Name: "statistical-security", File: "keyring.go", Run: "TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed",
		Protects: "decryptions leave enough statistical security",
		Old:      "if err := s.CheckStatSecurity(); err != nil {",
		New:      "if err := s.CheckStatSecurity(); false {",
		Tests:    []string{"./services/party", "./services/keyring"}, Redundant: "every set of the registry leaves enough, which tests of the registry demand",
	},
	{
		Name: "secret", File: "keyring.go", Run: "TestKeysThat",
		Protects: "a secret fits its encoding",
		Old:      "if c != int64(int16(c)) {",
		New:      "if false {",
	},
}
