package threshold

// Aliases for the tests that run the whole program, which are in an external test package.

type (
	ApprovalsReport  = approvalsReport
	CiphertextReport = ciphertextReport
	ValuesReport     = valuesReport
)
