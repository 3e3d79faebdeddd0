package tuples

// Aliases for the tests that run the whole program, which are in an external test package.

type (
	ExportReport      = exportReport
	FetchReport       = fetchReport
	ReservationRecord = reservationRecord
)
