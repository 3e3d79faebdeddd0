package main

// vaultBackupTable has what a backup leaves out, and what a restore checks of one.
var vaultBackupTable = []mutation{
	{
		Name: "restore/unfinished", File: "examine.go", Run: "TestRestoreAfterACrash", Protects: "a restore that did not end is no vault",
		Old: "case errors.Is(err, ErrNotFound) && v.unfinishedRestore():", New: "case false:",
		Redundant: "it has no header, and whoever opens it alone is told that there is no vault",
	},
	{
		Name: "restore/unfinished-open", File: "vault.go", Run: "TestRestoreAfterACrash", Protects: "a restore that did not end is no vault",
		Old: "if v.unfinishedRestore() {", New: "if false {",
	},
	{
		Name: "restore/halved", File: "identity.go", Run: "TestRestore$", Protects: "of decryptions that nobody has counted half are taken as done",
		Old: "if e.Purpose != PurposeThreshold {\n\t\t\t\te.putBack()", New: "if false {\n\t\t\t\te.putBack()",
	},
	{
		Name: "restore/flooding-retired", File: "identity.go", Run: "TestFloodingUnderNewSharesAfterRestore",
		Protects: "what was answered under new shares is not answered again by a store that does not know of it",
		Old:      "if e.Purpose == PurposeThreshold {\n\t\t\te.putBack()", New: "if e.Purpose == PurposeThreshold && e.State != EpochRetired {\n\t\t\te.putBack()",
	},
	{
		Name: "restore/epochs", File: "identity.go", Run: "TestRestore$", Protects: "keys for decryption come back, and no others",
		Old: "if keep && e.decrypts() && ", New: "if keep && ",
		Redundant: "a backup says of others that they are retired",
	},
}
