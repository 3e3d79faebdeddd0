package main

// multikeyServiceTable has what a party checks of multi-key ciphertexts before it takes part in their decryption.
var multikeyServiceTable = []mutation{
	{
		Name: "rule", File: "request.go", Run: "TestMultikeyPolicy", Protects: "a rule says that it is for a party's own keys too",
		Old: "if q.scheme.own() && !q.rule.AllowMultikey {", New: "if false {",
	},
	{
		Name: "owner/quorum", File: "scheme_multikey.go", Run: "TestMultikeyRefusals", Protects: "all owners take part",
		Old: "if !slices.Contains(h.GetQuorum(), x.GetOwner()) {", New: "if len(h.GetQuorum()) == 0 && slices.Contains(h.GetQuorum(), 0) {",
	},
	{
		Name: "owner/self", File: "scheme_multikey.go", Run: "TestMultikeyRefusals", Protects: "a party's own keys are not another's",
		Old: "case mine && owner != self:", New: "case false:",
	},
	{
		Name: "keys/order", File: "scheme_multikey.go", Run: "TestMultikeyRefusals", Protects: "a key is named once",
		Old: "|| i > 0 && bytes.Compare(x.GetKey(), keys[i-1][:]) <= 0 {", New: "|| i > 0 && bytes.Compare(x.GetKey(), keys[i-1][:]) == 2 {",
	},
	{
		Name: "group/threshold", File: "keys.go", Run: "TestMultikeyRefusals", Protects: "two of a group decrypt, or more",
		Old: "if spec.GetThreshold() != 1 {", New: "if false {",
	},
	{
		Name: "published/owner", File: "scheme_multikey.go", Run: "TestPublishedOwners", Protects: "nobody but its owner revokes a key",
		Old: "case known && place == int(owner) && r.Revoked:", New: "case known && r.Revoked:",
	},
}
