package main

// vaultRosterTable has what a vault checks of rosters and of epochs that drain, and what it remembers against peers.
var vaultRosterTable = []mutation{
	// What may be done under the present roster.
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
	// What is remembered of peers.
	{
		Name: "pin/anothers-left", File: "identity.go", Run: "TestNobody", Protects: "a party does not have another refused that has left",
		Old: "r.together(hex.EncodeToString(r.Keys[party]), name) {", New: "name == \"\" {",
	},
	{
		Name: "pin/anothers-unknown", File: "identity.go", Run: "TestNobody", Protects: "a party of which no store is known may come back under another key",
		Old: "if known(p) && !bytes.Equal(p.ID, stored) && known(x.Peer)", New: "if known(x.Peer)",
	},
	// Epochs that drain.
	// What is held against peers.
}
