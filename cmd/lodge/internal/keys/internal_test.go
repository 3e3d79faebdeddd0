package keys

// Aliases for the tests that run the whole program, which are in an external test package.

type (
	EndingReport   = endingReport
	KeysRecord     = keysRecord
	RotationReport = rotationReport
)
