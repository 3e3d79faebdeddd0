package process

// Aliases for the tests that run the whole program, which are in an external test package.

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
