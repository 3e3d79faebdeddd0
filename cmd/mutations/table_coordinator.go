package main

// coordinatorTable has what the coordinator takes for the result of a job. What a party must not do it checks itself, whatever
// the coordinator says.
var coordinatorTable = []mutation{
	// Results.
	{
		Name: "result/agreed", File: "run.go", Run: "TestFailures", Protects: "nothing is activated that the parties do not agree on",
		Old: "state, f = failed, agreed(j.GetParties())", New: "state, f = failed, nil",
	},
	{
		Name: "result/form", File: "schedule.go", Run: "TestAgreed", Protects: "a result has a digest",
		Old: "case len(s.GetDigest()) != 32:", New: "case false:",
	},
	{
		Name: "result/digest", File: "schedule.go", Run: "TestAgreed", Protects: "parties have the same result",
		Old: "case string(s.GetDigest()) != string(first.GetDigest()) || ", New: "case ",
	},
	{
		Name: "result/epoch", File: "schedule.go", Run: "TestAgreed", Protects: "parties have a result of the same epoch",
		Old: "s.GetEpoch() != first.GetEpoch() ||\n", New: "\n",
	},
	{
		Name: "result/batch", File: "schedule.go", Run: "TestAgreed", Protects: "parties have a result of the same name",
		Old: "s.GetBatchId() != first.GetBatchId() || ", New: "",
	},
	{
		Name: "result/count", File: "schedule.go", Run: "TestAgreed", Protects: "parties have as many tuples",
		Old: " || s.GetCount() != first.GetCount():", New: ":",
	},
	{
		Name: "result/state", File: "schedule.go", Run: "TestObserve", Protects: "parties do not say that a job is complete",
		Old: "state := storing\n", New: "state := completed\n",
	},
	{
		Name: "result/all", File: "run.go", Run: "TestFailures|TestJobs", Protects: "a session runs at all parties or at none",
		Old: "if slices.ContainsFunc(ends, func(e ended) bool { return !e.ok() }) {\n\t\treturn ends", New: "if false {\n\t\treturn ends",
	},
	{
		Name: "result/cancelled", File: "run.go", Run: "TestCancelled", Protects: "a job that a client has cancelled does not complete",
		Old: "if e.stop != \"\" {\n\t\t\tf = ", New: "if false {\n\t\t\tf = ",
	},
	{
		Name: "result/erased", File: "run.go", Run: "TestAnErased", Protects: "a result that one party has erased is no result",
		Old: "if erased[i] != nil {", New: "if false {",
	},
	{
		Name: "result/held-keys", File: "parties.go", Run: "TestHolds", Protects: "keys that are locked at a party are not active everywhere",
		Old: "return e.GetState() != keygenv1.EpochState_EPOCH_STATE_LOCKED", New: "return true",
	},
	{
		Name: "result/held-batches", File: "parties.go", Run: "TestHolds", Protects: "tuples that are locked at a party are not active everywhere",
		Old: "return b.GetState() != tuplesv1.BatchState_BATCH_STATE_LOCKED", New: "return true",
	},
	{
		Name: "result/swept-keys", File: "parties.go", Run: "TestSweep$", Protects: "what a job left that failed is erased",
		Old: "LOCKED && !keeps(e.GetSession()) {", New: "LOCKED && false {",
	},
	{
		Name: "result/swept", File: "parties.go", Run: "TestSweep$", Protects: "what a job left that failed is erased",
		Old: "if !keeps(b.GetId()) {", New: "if false {",
	},
	{
		Name: "result/kept", File: "coordinator.go", Run: "TestSweepKeeps", Protects: "what runs is not erased",
		Old: "return s > pending && s <= completed\n", New: "return s > completed\n",
	},
	{
		Name: "result/recorded", File: "entries.go", Run: "TestRecorded", Protects: "a state is recorded before anybody acts on it",
		Old: "if !job.Final(now) {\n\t\t\t\treturn err", New: "if false {\n\t\t\t\treturn err",
	},
}
