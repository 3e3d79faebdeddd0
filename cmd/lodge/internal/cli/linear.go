package cli

// LinearText states the security of two-party linear algebra. It begins every help text about it.
const LinearText = "Two-party linear algebra is secure against a party that follows the protocol. Clients that share a product prove that\n" +
	"their inputs are well formed. Parties reject all of this unless their operators have set allow_passive_linear, and inputs\n" +
	"without proofs unless they have also set allow_unproved_linear. docs/guides/linear.md describes the details.\n" +
	"\n"
