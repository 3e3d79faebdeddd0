package main

var maccheckTable = []mutation{
	{
		Name: "mac", File: "maccheck.go", Protects: "values are those of the MACs",
		Old: "if !f.EqualVec(sum, f.NewVec(combinations)) && ", New: "if false && ",
	},
	{
		Name: "mac-all-combinations", File: "maccheck.go", Protects: "the MACs of all three combinations are checked",
		Old: "if !f.EqualVec(sum, f.NewVec(combinations)) && ", New: "if !f.IsZero(sum.At(0)) && ",
	},
	{
		Name: "zero", File: "maccheck.go", Protects: "padding and differences of opened values are zero",
		Old: "if !f.IsZero(sum.At(1)) && ", New: "if false && ",
	},
	{
		Name: "sacrifice", File: "maccheck.go", Protects: "products are those of their factors",
		Old: "if !f.IsZero(r.relation.At(0)) && ", New: "if false && ",
	},
	{
		Name: "no-zeros", File: "maccheck.go",
		Protects: "without values that must be zero nobody makes others open alpha times something",
		Old:      "if i > 0 && len(pairs) == 0 && !r.Field.IsZero(t.At(i)) {",
		New:      "if i > 0 && len(pairs) == 0 && false {",
	},
	{
		Name: "no-sacrificed", File: "maccheck.go", Protects: "the same where nothing is sacrificed",
		Old: "if i > 0 && len(pairs) == 0 && !r.Field.IsZero(t.At(i)) {",
		New: "if i == 1 && len(pairs) == 0 && !r.Field.IsZero(t.At(i)) {",
	},
	{
		Name: "shares-decode", File: "maccheck.go", Protects: "opened shares are canonical",
		Old: "if err := r.decode(t, in.Bytes(p, r.openName())); err != nil {",
		New: "if err := r.decode(t, in.Bytes(p, r.openName())); false {",
	},
	{
		Name: "sigmas-decode", File: "maccheck.go", Protects: "sigmas are canonical",
		Old: "if err := r.decode(t, payload); err != nil {", New: "if err := r.decode(t, payload); false {",
	},
	{
		Name: "weights/session", File: "maccheck.go", Protects: "weights are of their session",
		Old: `"lodge mac check weights", c.Session.ID[:], []byte(c.Step)`,
		New: `"lodge mac check weights", []byte(c.Step)`,
	},
	{
		Name: "weights/step", File: "maccheck.go", Protects: "weights are of their check",
		Old: `c.Session.ID[:], []byte(c.Step), coin[:]`, New: `c.Session.ID[:], coin[:]`,
	},
	{
		Name: "weights/coin", File: "maccheck.go", Protects: "weights come after all shares are fixed",
		Old: `[]byte(c.Step), coin[:], round.Uint(uint64(i))`, New: `[]byte(c.Step), round.Uint(uint64(i))`,
	},
	{
		Name: "weights/combination", File: "maccheck.go", Protects: "each combination has weights of its own",
		Old: `coin[:], round.Uint(uint64(i))`, New: `coin[:]`,
	},
	{
		Name: "every-value", File: "maccheck.go", Protects: "every value is in the combination",
		Old: "for _, p := range pairs {\n\t\tfor start",
		New: "for _, p := range pairs[min(1, len(pairs)):] {\n\t\tfor start",
	},
	{
		Name: "fresh-weights", File: "maccheck.go", Protects: "each value has a weight of its own",
		Old: "if err := f.Random(w, xof); err != nil {\n\t\t\t\treturn err\n\t\t\t}", New: "f.Fill(w, f.One())",
	},
	{
		Name: "exposed", File: "maccheck.go", Protects: "the MAC key counts as burnt before the sigma is shown",
		Old: "if err == nil {\n\t\terr = r.before()\n\t}", New: "",
	},
	{
		Name: "numbers", File: "maccheck.go", Protects: "every value has a MAC",
		Old: "if p.Value.Len() != p.MAC.Len() {", New: "if p.Value.Len() < 0 {",
	},
}
