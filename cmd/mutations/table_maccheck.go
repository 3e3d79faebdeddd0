package main

var maccheckTable = []mutation{
	{
		Name: "mac", File: "maccheck.go", Protects: "values are those of the MACs",
		Old: "if !f.EqualVec(sum, f.NewVec(Combinations)) && ", New: "if false && ",
	},
	{
		Name: "mac-all-combinations", File: "maccheck.go", Protects: "the MACs of all three combinations are checked",
		Old: "if !f.EqualVec(sum, f.NewVec(Combinations)) && ", New: "if !f.IsZero(sum.At(0)) && ",
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
		Name: "no-zeros", File: "maccheck.go", Protects: "nobody adds to a combination that has no values",
		Old: "if !r.used(k%Combinations) && !r.Field.IsZero(t.At(k)) {", New: "if k < 0 {",
	},
	{
		Name: "no-m", File: "maccheck.go", Protects: "the same for what hides the MAC of such a combination",
		Old: "if !r.used(k%Combinations) && !r.Field.IsZero(t.At(k)) {",
		New: "if k < Combinations && !r.used(k) && !r.Field.IsZero(t.At(k)) {",
	},
	{
		Name: "shares-decode", File: "maccheck.go", Protects: "opened shares are canonical",
		Old: "if err := r.decode(t, in.Bytes(p, r.openName())); err != nil {",
		New: "if err := r.decode(t, in.Bytes(p, r.openName())); false {",
	},
	{
		Name: "z-decode", File: "maccheck.go", Protects: "each z is canonical",
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
		Name: "opening", File: "maccheck.go", Protects: "a check counts before anything of it is opened",
		Old: "if c.Opening != nil {", New: "if false {",
	},
	{
		Name: "numbers", File: "maccheck.go", Protects: "every value has a MAC",
		Old: "if p.Value.Len() != p.MAC.Len() {", New: "if p.Value.Len() < 0 {",
	},
}
