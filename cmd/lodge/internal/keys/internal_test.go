package keys

// The tests of the commands, which run the whole program, are in a package of their own: they read these records and call
// these functions.

type (
	EndingReport   = endingReport
	KeysRecord     = keysRecord
	RotationReport = rotationReport
)
