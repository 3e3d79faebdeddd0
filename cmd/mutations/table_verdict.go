package main

var verdictTable = []mutation{
	{
		Name: "digest", File: "verdict.go", Run: "",
		Protects: "parties release what all have accepted",
		Old:      "string(in.Bytes(p, Name)) == string(r.digest[:]) ||",
		New:      `string(in.Bytes(p, Name)) != "" ||`,
	},
}
