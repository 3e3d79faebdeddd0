package cli

// LinearText says what linear algebra is secure against; every text about it begins with it.
const LinearText = "Two-party linear algebra is secure against a party that follows the protocol. Clients that share a product prove that\n" +
	"their inputs are well formed. Parties refuse all of this unless their operators have set allow_passive_linear, and inputs\n" +
	"without proofs unless they have set allow_unproved_linear too. docs/guides/linear.md says more.\n\n"
