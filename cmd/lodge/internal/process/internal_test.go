package process

// The tests of the commands, which run the whole program, are in a package of their own: they read these records and call
// these functions.

type (
	AuditReport  = auditReport
	CheckReport  = checkReport
	ConfigReport = configReport
	DoctorReport = doctorReport
	LevelRecord  = levelRecord
	StatusReport = statusReport
)

var (
	ErrUnsound = errUnsound
)
