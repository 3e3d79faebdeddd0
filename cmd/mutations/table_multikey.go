package main

// multikeyRotations are the tests of what is asked and given of rotations elsewhere.
const multikeyRotations = "TestRotationRefusals|TestRotationKeyRefusals"

var multikeyTable = []mutation{
	{
		Name: "name", File: "set.go", Run: "Validate", Protects: "a set that is not secure says so in its name",
		Old: "case strings.HasPrefix(s.Name, InsecurePrefix) != s.Insecure:", New: "case false:",
	},
	{
		Name: "dropped", File: "set.go", Run: "Validate", Protects: "what keys do not have is far below their errors",
		Old: "case s.Drop < 0 || math.Exp2(float64(s.Drop)) > s.Ring*(1<<ringBits)/4 && s.Drop > 0:", New: "case s.Drop < 0:",
	},
	{
		Name: "most-parties", File: "set.go", Run: "Sets", Protects: "a set is for the parties that it was made for",
		Old: "parties >= 1 && parties <= s.Parties && !s.Insecure", New: "parties <= s.Parties && !s.Insecure",
	},
	{
		Name: "shipped", File: "set.go", Run: "Sets", Protects: "no set that is not secure is chosen by itself",
		Old: "parties <= s.Parties && !s.Insecure && !s.Legacy() {", New: "parties <= s.Parties && s.Insecure {",
	},
}
