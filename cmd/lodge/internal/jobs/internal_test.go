package jobs

// Aliases for the tests that run the whole program, which are in an external test package.

type (
	EstimateRecord = estimateRecord
	StockRecord    = stockRecord
)
