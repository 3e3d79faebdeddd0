package main

// vaultThresholdTable has what a vault checks of threshold epochs and of the masks that their decryptions spend.
var vaultThresholdTable = []mutation{
	{
		Name: "threshold/members", File: "threshold.go", Run: "TestMembers", Protects: "some members of an epoch, and not all, decrypt",
		Old: "if n > maxMembers || e.Threshold == 0 || uint64(e.Threshold) >= uint64(n) {", New: "if false {",
	},
	{
		Name: "threshold/members-twice", File: "threshold.go", Run: "TestMembers", Protects: "nobody holds two shares of a key",
		Old: "if len(m) == 0 || hasKey(e.Members[:i], m) {", New: "if len(m) == 0 && hasKey(e.Members[:i], m) {",
	},
	{
		Name: "threshold/member", File: "threshold.go", Run: "TestMembers", Protects: "who holds a share is a member",
		Old: "if p := v.roster.Load(); p != nil && p.member(e) < 0 {", New: "if false {",
	},
	{
		Name: "threshold/of-others", File: "threshold.go", Run: "TestMembers", Protects: "keys for triples have no threshold",
		Old: "if e.Threshold > 0 || len(e.Members) > 0 || e.AnyQuorum {", New: "if false {",
	},
	{
		Name: "threshold/enough", File: "threshold.go", Run: "TestStandingOfThreshold", Protects: "a key serves while enough of its members are there",
		Old: "if here <= int(e.Threshold) || ", New: "if ",
	},
	{
		Name: "threshold/self", File: "threshold.go", Run: "TestStandingOfThreshold", Protects: "a key serves where this party is a member",
		Old: "|| p.member(e) < 0 {", New: "{",
	},
	{
		Name: "threshold/holders", File: "epoch.go", Run: "TestMembers", Protects: "a threshold epoch does not depend on a roster",
		Old: " && e.Purpose != PurposeThreshold {", New: " {",
		Redundant: "what a roster leaves of a threshold epoch does not look at its holders",
	},
	{
		Name: "threshold/triples", File: "epoch.go", Run: "TestPurposesNeverCross", Protects: "no session makes tuples under a threshold key",
		Old: "|| e.Purpose == PurposeThreshold {", New: "{",
	},
	{
		Name: "threshold/batches", File: "masks.go", Run: "TestPurposesNeverCross", Protects: "tuples lie under keys for triples, and masks under threshold keys",
		Old: "if b.masks() != (e.Purpose == PurposeThreshold) || e.Purpose == PurposeDecryption {", New: "if false {",
	},
	{
		Name: "threshold/batches-decryption", File: "masks.go", Run: "TestPurposesNeverCross", Protects: "no tuples lie under keys for decryption",
		Old: "|| e.Purpose == PurposeDecryption {", New: "{",
	},
	{
		Name: "threshold/quorum", File: "threshold.go", Run: "TestMasksOfAQuorum", Protects: "masks are of as many members as decrypt, each once",
		Old: "if !good {", New: "if false {",
	},
	{
		Name: "threshold/quorum-member", File: "threshold.go", Run: "TestMasksOfAQuorum", Protects: "masks are of members",
		Old: "good && int64(q) < int64(len(e.Members)) && (", New: "good && (",
	},
	{
		Name: "threshold/quorum-order", File: "threshold.go", Run: "TestMasksOfAQuorum", Protects: "no member is in a quorum twice",
		Old: "quorum[i-1] < q)", New: "quorum[i-1] < q || true)",
	},
	{
		Name: "threshold/quorum-mine", File: "threshold.go", Run: "TestMasksOfAQuorum", Protects: "a party keeps masks of its own quorums",
		Old: "if self := p.member(e); self < 0 || !slices.Contains(quorum, uint32(self)) {", New: "if false {",
	},
	{
		Name: "masks/kind", File: "masks.go", Run: "TestMasksOfAQuorum", Protects: "tuples are of no quorum",
		Old: "case !b.masks() && (b.Form != \"\" || len(b.Quorum) > 0):", New: "case false:",
	},
	{
		Name: "masks/form", File: "masks.go", Run: "TestMasksOfAQuorum", Protects: "masks are of a form that there is",
		Old: "case b.masks() && b.Form != MasksExact && b.Form != MasksPaper:", New: "case false:",
	},
	{
		Name: "masks/mac-key", File: "masks.go", Run: "TestMasksOfAQuorum", Protects: "masks do not go with a MAC key that they have nothing to do with",
		Old: "case b.masks() && b.MACKey != \"\":", New: "case false:",
	},
	{
		Name: "masks/fresh-mac-key", File: "batch.go", Run: "TestMasksOfAQuorum", Protects: "no MAC key lies under a threshold key",
		Old: "if fresh != nil && w.batch.masks() {", New: "if false {",
	},
	{
		Name: "masks/reserved", File: "reservation.go", Run: "TestMasksAreForNobody", Protects: "no client gets masks",
		Old: "if b.masks() {", New: "if false {",
	},
	{
		Name: "masks/reserved-class", File: "reservation.go", Run: "TestMasksAreForNobody", Protects: "no client gets masks",
		Old: "case r.Class.Kind == KindMasks:", New: "case false:",
	},
	{
		Name: "masks/tuples", File: "masks.go", Run: "TestMasksAreForNobody", Protects: "no session spends tuples, which may be a client's",
		Old: "case !b.masks():\n\t\treturn nil, ", New: "case false:\n\t\treturn nil, ",
	},
	{
		Name: "masks/taken", File: "masks.go", Run: "TestSpendMasks$|TestMasksCrash", Protects: "no mask is spent twice",
		Old: "if b.Taken.Within(x) > 0 {", New: "if false {",
	},
	{
		Name: "masks/durable", File: "masks.go", Run: "TestSpendMasks$|TestMasksCrash", Protects: "what was spent stays so",
		Old: "b.Taken, b.Gone = b.Taken.With(span), b.Gone.With(span)", New: "_ = span",
	},
	{
		Name: "masks/generation", File: "masks.go", Run: "TestMasksMakeAGeneration", Protects: "peers notice a store that has forgotten what was spent",
		Old: "err = v.advance(", New: "err = v.update(",
	},
	{
		Name: "masks/uncertain", File: "masks.go", Run: "TestMasksCrash", Protects: "masks of which it is in doubt whether they are spent are not given",
		Old: "\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn v.readSpent", New: "\tif err != nil && !gone {\n\t\treturn nil, err\n\t}\n\treturn v.readSpent",
	},
	{
		Name: "masks/available", File: "masks.go", Run: "TestSpendMasks$", Protects: "masks of batches that not all parties have, and of no batch, are not spent",
		Old: "if err := b.available(x); err != nil {", New: "if err := b.available(x); errors.Is(err, ErrRange) {",
	},
	{
		Name: "masks/overflow", File: "masks.go", Run: "TestSpendMasks$", Protects: "a span ends after it begins",
		Old: "if span.End() < span.First {", New: "if false {",
		Redundant: "the span is then not of the batch's masks",
	},
	{
		Name: "masks/quarantine", File: "masks.go", Run: "TestSpendMasks$", Protects: "a store that may have been put back gives no masks",
		Old: "if err := v.trusted(tx); err != nil {", New: "if err := v.trusted(tx); false {",
	},
	{
		Name: "masks/roster", File: "masks.go", Run: "TestStandingOfThreshold", Protects: "masks are spent where the key serves",
		Old: "return b, v.works(e)", New: "_ = v.works(e)\n\treturn b, nil",
	},
	{
		Name: "masks/bounded", File: "masks.go", Run: "TestSpendingIsBounded", Protects: "masks that are spent at once fit into memory",
		Old: "if x.Count > maxSpend/b.TupleBytes {", New: "if false {",
	},
	{
		Name: "masks/reading", File: "wipe.go", Run: "TestSweepWhileReading", Protects: "masks that are being read are not erased",
		Old: "gone = b.Gone.AndNot(v.reading.of(b.ID))", New: "gone = b.Gone",
	},
	{
		Name: "masks/wiped", File: "masks.go", Run: "TestMasksCrash", Protects: "masks that are erased are not read as zeros",
		Old: "if b.Wiped.Within(x) > 0 {", New: "if false {",
		Redundant: "none of what was spent just now is erased while it is read",
	},
	{
		Name: "masks/again", File: "wipe.go", Run: "TestSweepOfMasksFails", Protects: "an erasure that failed is tried again by the next sweep",
		Old: "\t\t\tv.owe(id, time.Time{})\n", New: "",
	},
	{
		Name: "masks/names", File: "batch.go", Run: "TestMasksCrash|TestCheckOfMasks|TestFreeMasks", Protects: "masks that are revoked are not looked at any more",
		Old: "if err := dropMasks(tx, b); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "masks/backup", File: "backup.go", Run: "TestBackupOfMasks", Protects: "a backup names no masks",
		Old: "|| strings.HasPrefix(key, maskPrefix) ||", New: "||",
	},
	{
		Name: "masks/check", File: "check.go", Run: "TestCheckOfMasks", Protects: "masks that no decryption would find are found",
		Old: "if !c.masks[b.maskKey()] {", New: "if false {",
	},
}
