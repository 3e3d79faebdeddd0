package main

// vaultThresholdTable has what a vault checks of threshold epochs and of the masks that their decryptions spend.
var vaultThresholdTable = []mutation{
	{
		Name: "masks/reserved", File: "reservation.go", Run: "TestMasksAreForNobody", Protects: "no client gets masks",
		Old: "if b.masks() {", New: "if false {",
	},
	{
		Name: "masks/reserved-class", File: "reservation.go", Run: "TestMasksAreForNobody", Protects: "no client gets masks",
		Old: "case r.Class.Kind == KindMasks:", New: "case false:",
	},
	{
		Name: "masks/check", File: "check.go", Run: "TestCheckOfMasks", Protects: "masks that no decryption would find are found",
		Old: "if !c.masks[b.maskKey()] {", New: "if false {",
	},
}
