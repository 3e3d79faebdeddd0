package main

var runnerTable = []mutation{
	{
		Name: "signature", File: "drive.go", Run: "TestWrongSigningKey|TestCheat",
		Protects: "what arrives is signed by its sender",
		Old:      "if string(f.Digest) != string(digest[:]) || !e.Verify(d.o.Keys[f.From], f.Signature) {",
		New:      "if string(f.Digest) != string(digest[:]) && e.Verify(d.o.Keys[f.From], f.Signature) {",
	},
	{
		Name: "signature-digest", File: "drive.go", Run: "TestWrongSigningKey|TestCheat",
		Protects:  "what is signed is what arrived",
		Old:       "if string(f.Digest) != string(digest[:]) || !e.Verify",
		New:       "if !e.Verify",
		Redundant: "the signature is checked over the digest of what arrived, whatever digest comes with it",
	},
	{
		Name: "broadcast", File: "drive.go", Run: "TestMessagesOut",
		Protects: "a broadcast is signed as one",
		Old:      "if wanted && int(f.Round) == d.index && w.Broadcast && !f.Broadcast {",
		New:      "if wanted && int(f.Round) == d.index && w.Broadcast && !f.Broadcast && false {",
	},
	{
		Name: "over", File: "drive.go", Run: "TestCheat|TestOther",
		Protects:  "a frame of a round that is over changes nothing",
		Old:       "if int(f.Round) < d.offset {",
		New:       "if false {",
		Redundant: "the machine refuses a round that is over too",
	},
	{
		Name: "early", File: "drive.go", Run: "TestMessagesOut",
		Protects: "a stream is in order",
		Old:      "if errors.Is(err, round.ErrEarly) {",
		New:      "if errors.Is(err, round.ErrEarly) && false {",
	},
	{
		Name: "rate", File: "deadline.go", Run: "TestClock",
		Protects: "a peer that trickles ends the session",
		Old:      "if next.After(c.cap) {",
		New:      "if false {",
	},
	{
		Name: "rate-idle", File: "deadline.go", Run: "TestClock",
		Protects: "silence ends the session",
		Old:      "if !c.begun || next.After(latest) {",
		New:      "if !c.begun {",
	},
}
