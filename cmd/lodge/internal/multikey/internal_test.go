package multikey

// The tests of the commands, which run the whole program, are in a package of their own: they read these records and call
// these functions.

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
