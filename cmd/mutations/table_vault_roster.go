package main

// vaultRosterTable has what a vault checks of rosters and of epochs that drain, and what it remembers against peers.
var vaultRosterTable = []mutation{
	// What may be done under the present roster.
	{
		Name: "roster/hash", File: "roster.go", Run: "TestStanding", Protects: "keys serve the roster that they were made under",
		Old: "case p == nil || e.RosterHash == p.hash:", New: "case p == nil || len(e.RosterHash) == len(p.hash):",
	},
	{
		Name: "roster/holders", File: "roster.go", Run: "TestStanding", Protects: "shares go to clients while all their holders are who they were",
		Old: "case e.Holders == p.holders:", New: "case p != nil:",
	},
	{
		Name: "roster/holders-keys", File: "roster.go", Run: "TestStanding", Protects: "holders are their signing keys, in order",
		Old: "h.Write(sum[:])", New: "_ = sum",
	},
	{
		Name: "roster/works", File: "roster.go", Run: "TestStanding", Protects: "nothing is made or decrypted with keys of another roster",
		Old: "if v.Standing(e) != SameRoster {", New: "if false {",
	},
	{
		Name: "roster/gives", File: "roster.go", Run: "TestStanding", Protects: "shares of other parties go to nobody",
		Old: "if v.Standing(e) == OtherParties {", New: "if v.Standing(e) > OtherParties {",
	},
	{
		Name: "roster/spend", File: "epoch.go", Run: "TestStanding", Protects: "no session decrypts under keys of another roster",
		Old: "if err := v.works(e); err != nil {", New: "if err := v.works(e); false {",
	},
	{
		Name: "roster/secret", File: "epoch.go", Run: "TestStanding", Protects: "a share of a key is read under its own roster",
		Old: "err = v.works(&e)", New: "_ = v.works(&e)",
	},
	{
		Name: "roster/batch", File: "batch.go", Run: "TestStanding", Protects: "no batch comes to lie under keys of another roster",
		Old: "if err := v.works(e); err != nil {", New: "if err := v.works(e); false {",
	},
	{
		Name: "roster/ledger", File: "ledger.go", Run: "TestStanding", Protects: "no client's ciphertext is decrypted under keys of another roster",
		Old: "if err := v.works(epoch); err != nil {", New: "if err := v.works(epoch); false {",
	},
	{
		Name: "roster/reserve", File: "reservation.go", Run: "TestStanding", Protects: "tuples of other parties are not reserved",
		Old: "err = v.gives(tx, k.Epoch)", New: "_ = v.gives(tx, k.Epoch)",
	},
	{
		Name: "roster/deliver", File: "deliver.go", Run: "TestStanding", Protects: "tuples of other parties are not delivered",
		Old: "err = v.gives(held.tx, k.Epoch)", New: "_ = v.gives",
	},
	{
		Name: "roster/mac-key", File: "mackey.go", Run: "TestStanding", Protects: "a MAC key of other parties is not read",
		Old: "err = v.store.View(func(tx store.Tx) error { return v.gives(tx, k.Epoch) })", New: "_ = v.gives",
	},
	{
		Name: "roster/made-under", File: "epoch.go", Run: "TestHolders", Protects: "the holders of keys are those of the roster that they were made under",
		Old: "if p := v.roster.Load(); p != nil && e.RosterHash == p.hash {", New: "if p := v.roster.Load(); p != nil {",
	},
	{
		Name: "roster/holders-of-before", File: "roster.go", Run: "TestHolders", Protects: "the holders of keys are those of the roster that they were made under",
		Old: " || e.RosterHash != p.hash {", New: " {",
	},
	{
		Name: "roster/holders-stay", File: "roster.go", Run: "TestHolders|TestStanding", Protects: "the holders of keys do not change",
		Old: "if e.Holders != [32]byte{} || ", New: "if ",
		Redundant: "the same roster has the same holders",
	},
	// What is remembered of peers.
	{
		Name: "pin/rearranges", File: "roster.go", Run: "TestPeers", Protects: "what is remembered of a peer follows its key",
		Old: "if err := v.rearrange(tx, old, r.Keys); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "pin/acknowledged", File: "roster.go", Run: "TestPeers", Protects: "nobody has acknowledged for others",
		Old: "\tid.Peers = nil\n", New: "",
	},
	{
		Name: "pin/restored", File: "restore.go", Run: "TestRestoreForgets", Protects: "who has left has not acknowledged a restored store",
		Old: "if err := r.v.forgetStanding(tx); err != nil {", New: "if err := error(nil); err != nil {",
	},
	// Epochs that drain.
	{
		Name: "drain/there", File: "drain.go", Run: "TestDrainEpoch", Protects: "an epoch that is gone does not come back",
		Old: "case e.State == EpochRetired:", New: "case false:",
	},
	{
		Name: "drain/locked", File: "drain.go", Run: "TestDrainEpoch", Protects: "an epoch that is not active everywhere does not become so",
		Old: "case e.State == EpochLocked:", New: "case false:",
	},
	{
		Name: "drain/successor", File: "drain.go", Run: "TestDrainEpoch", Protects: "an epoch has one successor",
		Old: "if e.State == EpochDraining && (e.Successor != 0 || successor == 0) {", New: "if e.State == EpochDraining && successor == 0 {",
	},
	{
		Name: "drain/generation", File: "drain.go", Run: "TestDrainEpoch", Protects: "a store that was put back is seen to have forgotten that an epoch drains",
		Old: "func (v *Vault) DrainEpoch(id, successor uint64) error {\n\treturn v.advance(", New: "func (v *Vault) DrainEpoch(id, successor uint64) error {\n\treturn v.update(",
	},
	{
		Name: "drain/revoke-generation", File: "drain.go", Run: "TestGeneration", Protects: "a store that was put back is seen to have forgotten that an epoch was revoked",
		Old: "var objects []string\n\terr = v.advance(func(tx store.Tx) error {\n\t\tobjects = nil\n\t\te, err := v.drainable", New: "var objects []string\n\terr = v.update(func(tx store.Tx) error {\n\t\tobjects = nil\n\t\te, err := v.drainable",
	},
	{
		Name: "drain/keys", File: "drain.go", Run: "TestDrainEpoch", Protects: "an epoch that is revoked has no MAC keys",
		Old: "return k.Epoch == e.ID }, reason)", New: "return false }, reason)",
	},
	{
		Name: "drain/batches", File: "drain.go", Run: "TestDrainEpoch", Protects: "an epoch that is revoked has no batches",
		Old: "return b.Epoch == e.ID }, reason)", New: "return false }, reason)",
	},
	{
		Name: "drain/batch", File: "batch.go", Run: "TestDrainEpoch", Protects: "no batch comes to lie under an epoch that drains",
		Old: "if err != nil || e.State != EpochActive {", New: "if err != nil {",
	},
	{
		Name: "drain/session", File: "epoch.go", Run: "TestDrainEpoch", Protects: "no session decrypts under an epoch that drains",
		Old: "if e.State != EpochActive {", New: "if false {",
	},
	{
		Name: "drain/stays", File: "epoch.go", Run: "TestDrainEpoch", Protects: "an epoch that drains is not activated again",
		Old: "case e.State != EpochLocked:\n\t\t\treturn nil", New: "case false:\n\t\t\treturn nil",
	},
	{
		Name: "epoch/once", File: "epoch.go", Run: "TestEpochs|TestRetire", Protects: "an id names one epoch, ever",
		Old: "if _, err := v.Epoch(e.ID); err == nil {", New: "if _, err := v.Epoch(e.ID); err == nil && false {",
	},
	{
		Name: "epoch/once-at-last", File: "epoch.go", Run: "TestTwoWritersOfAnEpoch", Protects: "an id names one epoch, ever",
		Old: "if _, err := w.v.Epoch(w.epoch.ID); err == nil {", New: "if _, err := w.v.Epoch(w.epoch.ID); err == nil && false {",
	},
	{
		Name: "epoch/locked-keys", File: "epoch.go", Run: "TestEpochs", Protects: "keys that are not active everywhere are not read",
		Old: "case e.State == EpochLocked:", New: "case false:",
	},
	{
		Name: "epoch/spend-quarantine", File: "epoch.go", Run: "TestQuarantine", Protects: "a store that may have been put back lets no session decrypt",
		Old: "if err := v.trusted(tx); err != nil {", New: "if err := v.trusted(tx); false {",
	},
	{
		Name: "epoch/spend-generation", File: "epoch.go", Run: "TestGeneration", Protects: "a store that was put back is seen to have forgotten decryptions",
		Old: "func (v *Vault) SpendDecryptions(id, n uint64) error {\n\treturn v.advance(", New: "func (v *Vault) SpendDecryptions(id, n uint64) error {\n\treturn v.update(",
	},
	{
		Name: "epoch/retire-generation", File: "epoch.go", Run: "TestGeneration", Protects: "a store that was put back is seen to have forgotten that an epoch is gone",
		Old: "var objects []string\n\terr = v.advance(", New: "var objects []string\n\terr = v.update(",
	},
	// What is held against peers.
	{
		Name: "accusation/once", File: "accusation.go", Run: "TestConductIsDurable", Protects: "a pardon stays when the same evidence comes again",
		Old: "if _, err := get[Accusation](v, tx, key); !errors.Is(err, ErrNotFound) {", New: "if _, err := get[Accusation](v, tx, key); err != nil && !errors.Is(err, ErrNotFound) {",
	},
	{
		Name: "accusation/per-culprit", File: "accusation.go", Run: "TestRoomForEvidence", Protects: "evidence against one party leaves room for that against others",
		Old: "(of[a.Key] >= r.PerCulprit || total > r.Bytes)", New: "total > r.Bytes",
	},
	{
		Name: "accusation/room", File: "accusation.go", Run: "TestRoomForEvidence", Protects: "evidence takes no more room than it may",
		Old: "(of[a.Key] >= r.PerCulprit || total > r.Bytes)", New: "of[a.Key] >= r.PerCulprit",
	},
}
