package main

// sessionTable has what a party checks of sessions before they begin, and of what becomes of their results.
var sessionTable = []mutation{
	{
		Name: "start/protocol", File: "registry.go", Run: "TestStart", Protects: "a service runs its own protocol",
		Old: "if spec.GetProtocol() != of {", New: "if false {",
	},
	{
		Name: "start/again", File: "registry.go", Run: "TestStart", Protects: "a reference names one session",
		Old: "case old.digest != digest:", New: "case false:",
	},
	{
		Name: "start/gate", File: "registry.go", Run: "TestStart", Protects: "a session is within the party's policy",
		Old: "if err := r.Gate.Check(spec); err != nil {", New: "if err := r.Gate.Check(spec); false {",
		Redundant: "the gate checks it again when it admits the session",
	},
	{
		Name: "start/conduct-before", File: "registry.go", Run: "TestStart", Protects: "a session with a convicted party is refused before keys are loaded",
		Old: "if err := r.behaved(spec); err != nil {\n\t\treturn nil, err\n\t}\n\tmemory", New: "memory",
		Redundant: "it is refused again just before it begins",
	},
	{
		Name: "start/conduct", File: "registry.go", Run: "TestStart", Protects: "no session begins with a party that was convicted meanwhile",
		Old: "if err := r.behaved(spec); err != nil {\n\t\treturn nil, err\n\t}\n\trelease", New: "release",
	},
	{
		Name: "start/closed", File: "registry.go", Run: "TestStart", Protects: "nothing begins at a party that stops",
		Old: "if r.closed {\n\t\treturn nil, errStopping\n\t}\n\tif err", New: "if err",
	},
	{
		Name: "start/room", File: "registry.go", Run: "TestStart", Protects: "a session is within the party's memory",
		Old: "free, err := r.Gate.Admit(spec, memory)\n\tif err != nil {\n\t\tleave()\n\t\treturn nil, err\n\t}", New: "free, err := r.Gate.Admit(spec, memory)\n\tif err != nil {\n\t\tfree = func() {}\n\t}",
	},
	{
		Name: "fail/conduct", File: "session.go", Run: "TestFailuresAreNoted", Protects: "a failure is counted before anybody hears of it",
		Old: "if s.registry.Conduct != nil {", New: "if false {",
	},
	{
		Name: "accuse/blamed", File: "accuse.go", Run: "TestRecord", Protects: "what ended without a culprit accuses nobody",
		Old: " || f.Outcome != runner.Blamed {", New: " {",
		Redundant: "an accusation is made of a *round.Blame, which other outcomes do not have",
	},
	{
		Name: "complete/cancelled", File: "session.go", Run: "TestResults", Protects: "a result that comes too late is erased",
		Old: "if s.cancelled {", New: "if false {",
	},
	{
		Name: "activate/digest", File: "session.go", Run: "TestResults", Protects: "what is activated is what the party computed",
		Old: "case string(digest) != string(stored.Digest[:]):", New: "case false:",
	},
	{
		Name: "activate/state", File: "session.go", Run: "TestResults", Protects: "what is activated is there",
		Old: "case state != jobv1.JobState_JOB_STATE_ACTIVATING:", New: "case false:",
	},
	{
		Name: "cancel/complete", File: "session.go", Run: "TestResults", Protects: "what is active everywhere is not taken back",
		Old: "case state == jobv1.JobState_JOB_STATE_COMPLETED:\n\t\treturn true, rpc", New: "case false:\n\t\treturn true, rpc",
	},
	{
		Name: "activate/erased", File: "session.go", Run: "TestResults", Protects: "what is erased is not waited for",
		Old: "case stored != nil && job.Final(state):", New: "case false:",
	},
	{
		Name: "cancel/verifying", File: "registry.go", Tests: []string{"./services/triples"}, Run: "TestADrainKeeps", Protects: "a drain costs no MAC key",
		Old: "return s < jobv1.JobState_JOB_STATE_VERIFYING", New: "return !job.Final(s)",
	},
	{
		Name: "cancel/epoch", File: "registry.go", Tests: []string{"./services/party"}, Run: "TestRetiringEnds", Protects: "sessions under keys that are gone end",
		Old: "if s.Spec.GetEpoch() == epoch {", New: "if false {",
	},
	{
		Name: "cancel/all", File: "registry.go", Run: "TestResults", Protects: "sessions with a convicted party end",
		Old: "if !job.Final(s.Status().GetState()) {\n\t\t\trunning = append", New: "if false {\n\t\t\trunning = append",
	},
}
