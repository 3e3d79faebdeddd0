package main

// tossTable has what founders check when they toss for the seed of multi-key keys.
var tossTable = []mutation{
	{
		Name: "reveal/missing", File: "toss.go", Run: "TestRevealRefused", Protects: "nobody reveals before all are committed",
		Old: "	if err := c.missing(there); err != nil {\n		return nil, err\n	}\n	if list[s.seat]", New: "	if list[s.seat]",
	},
	{
		Name: "reveal/signature", File: "toss.go", Run: "TestRevealRefused", Protects: "a commitment is its founder's",
		Old: "if !c.signed(m.seat, &m.signedCommitment) {", New: "if false {",
	},
	{
		Name: "reveal/other", File: "toss.go", Run: "TestRevealRefused", Protects: "a commitment is to this toss",
		Old: "		if m.digest != c.digest {\n			return nil, fmt.Errorf(\"the commitment", New: "		if false {\n			return nil, fmt.Errorf(\"the commitment",
	},
	{
		Name: "reveal/twice", File: "toss.go", Run: "TestRevealRefused", Protects: "a founder has one commitment",
		Old: "if there[m.seat] && list[m.seat].commitment != m.commitment {", New: "if false {",
	},
	{
		Name: "reveal/own", File: "toss.go", Run: "TestRevealRefused", Protects: "a founder sees that somebody else signs with its key",
		Old: "if list[s.seat].commitment != c.commitTo(s.seat, &s.opening) {", New: "if false {",
	},
	{
		Name: "reveal/founder", File: "toss.go", Run: "TestRevealRefused", Protects: "what is revealed is signed by whose it is",
		Old: "err != nil || seat != s.seat {", New: "err != nil || seat < 0 {",
	},
	{
		Name: "combine/other", File: "toss.go", Run: "TestCombineRefused", Protects: "a reveal is of this toss",
		Old: "		if m.digest != c.digest {\n			return nil, fmt.Errorf(\"the reveal", New: "		if false {\n			return nil, fmt.Errorf(\"the reveal",
	},
	{
		Name: "combine/signature", File: "toss.go", Run: "TestCombineRefused", Protects: "nobody is named for what others have changed",
		Old: "if !ed25519.Verify(c.Founders[m.seat].Key,", New: "if false && !ed25519.Verify(c.Founders[m.seat].Key,",
	},
	{
		Name: "combine/list", File: "toss.go", Run: "TestCombineRefused", Protects: "nobody is named for commitments that it has not signed",
		Old: "if !c.signed(i, &m.list[i]) {", New: "if false {",
	},
	{
		Name: "combine/twice", File: "toss.go", Run: "TestCombineRefused", Protects: "a founder that shows others different commitments is named",
		Old: "if m.list[i].commitment != reveals[0].list[i].commitment {", New: "if m.list[i].commitment != m.list[i].commitment {",
	},
	{
		Name: "combine/missing", File: "toss.go", Run: "TestCombineRefused", Protects: "a founder that reveals nothing is named",
		Old: "	if err := c.missing(there); err != nil {\n		return nil, err\n	}\n	if err := t.Verify()", New: "	if err := t.Verify()",
	},
	{
		Name: "verify/commitment", File: "toss.go", Run: "TestVerifyRefused", Protects: "a transcript has what founders have signed",
		Old: "if !t.signed(i, &t.list[i]) {", New: "if false {",
		Redundant: "the reveals are signed with all commitments, and each opens its founder's; this says sooner what is wrong",
	},
	{
		Name: "verify/reveal", File: "toss.go", Run: "TestVerifyRefused", Protects: "founders knew the commitments of all when they revealed",
		Old: "if !ed25519.Verify(f.Key,", New: "if false && !ed25519.Verify(f.Key,",
	},
	{
		Name: "verify/opening", File: "toss.go", Run: "TestCombineRefused|TestVerifyRefused", Protects: "a founder reveals what it was committed to",
		Old: "if t.commitTo(i, &o.opening) != t.list[i].commitment {", New: "if false {",
	},
	{
		Name: "ceremony/hash", File: "ceremony.go", Run: "TestCeremonyRefused", Protects: "the seed is for the set that founders know",
		Old: "if set.Hash() != c.Hash {", New: "if false && set.Hash() != c.Hash {",
	},
	{
		Name: "ceremony/keys", File: "ceremony.go", Run: "TestCeremonyRefused", Protects: "no founder has two places",
		Old: "case i > 0 && bytes.Compare(f.Key, c.Founders[i-1].Key) <= 0:", New: "case i > 0 && bytes.Compare(f.Key, c.Founders[i-1].Key) == 2:",
	},
	{
		Name: "commitment/founder", File: "ceremony.go", Run: "TestCopiedCommitment", Protects: "nobody opens another's commitment as its own",
		Old: "c.digest[:], c.Founders[seat].Key, o.value[:], o.blind[:]}", New: "c.digest[:], o.value[:], o.blind[:]}",
	},
	{
		Name: "message/end", File: "message.go", Run: "TestMessagesRefused", Protects: "a message has one encoding",
		Old: "case len(r.left) > 0:", New: "case len(r.left) > 1<<30:",
	},
	{
		Name: "message/short", File: "message.go", Run: "TestMessagesRefused", Protects: "what is not there is not read as zeros",
		Old: "	case r.short:\n", New: "	case false:\n",
	},
	{
		Name: "message/seat", File: "message.go", Run: "TestMessagesRefused", Protects: "a place is a founder's",
		Old: "if seat >= len(c.Founders) {", New: "if seat > 255 {",
	},
	{
		Name: "message/size", File: "message.go", Run: "TestMessagesRefused", Protects: "nobody has to read what is large",
		Old: "if len(b) > MaxSize {", New: "if false {",
	},
}
