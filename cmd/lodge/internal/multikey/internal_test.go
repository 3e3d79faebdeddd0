package multikey

// Aliases for the tests that run the whole program, which are in an external test package.

type (
	CostRecord       = costRecord
	EvaluationRecord = evaluationRecord
	MkDecryptReport  = mkDecryptReport
	PublishedList    = publishedList
	SeedRecord       = seedRecord
)

var (
	MkContext    = mkContext
	MkParty      = mkParty
	ReadMultikey = readMultikey
)

const (
	RevealedLine = revealedLine
)
