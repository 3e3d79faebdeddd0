package conduct

// Aliases for the tests that run the whole program, which are in an external test package.

type (
	AccusationRecord = accusationRecord
	StandingRecord   = standingRecord
	UnnamedRecord    = unnamedRecord
)
