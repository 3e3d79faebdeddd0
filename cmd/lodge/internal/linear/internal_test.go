package linear

// Aliases for the tests that run the whole program, which are in an external test package.

type (
	LinearReport = linearReport
)

var (
	ReadIntegers = readIntegers
)
