package main

// coordinatorRefusalsTable has what the coordinator refuses: it keeps tenants and clients apart, and what parties say within
// bounds.
var coordinatorRefusalsTable = []mutation{
	{
		Name: "heard/blame", File: "schedule.go", Run: "TestWhatIsHeard", Protects: "who is blamed is a party",
		Old: " && b.GetParty() < parties {", New: " {",
	},
	{
		Name: "heard/suspects", File: "schedule.go", Run: "TestWhatIsHeard", Protects: "who is suspected is a party",
		Old: "if p < parties {", New: "if true {",
	},
	{
		Name: "heard/digest", File: "schedule.go", Run: "TestWhatIsHeard", Protects: "what a party says takes no more room than it may",
		Old: "st.GetDigest()[:min(len(st.GetDigest()), 64)]", New: "st.GetDigest()",
	},
	{
		Name: "heard/text", File: "schedule.go", Run: "TestWhatIsHeard", Protects: "what a party says takes no more room than it may",
		Old: "strings.ToValidUTF8(s[:min(len(s), most)], \"?\")", New: "strings.ToValidUTF8(s, \"?\")",
	},
	{
		Name: "heard/utf8", File: "schedule.go", Run: "TestWhatIsHeard", Protects: "what a party says can be written and shown",
		Old: "strings.ToValidUTF8(s[:min(len(s), most)], \"?\")", New: "s[:min(len(s), most)]",
	},
	{
		Name: "heard/time", File: "schedule.go", Run: "TestWhatIsHeard", Protects: "what a party says can be written and shown",
		Old: "if !t.IsValid() {", New: "if t == nil {",
	},
	{
		Name: "job/tenant", File: "api.go", Run: "TestJobsOfTenants", Protects: "a client makes jobs for its tenants",
		Old: "if err := serves(caller, q); err != nil {", New: "if err := serves(caller, q); false {",
	},
	{
		Name: "job/tenant-of-estimate", File: "estimate.go", Run: "TestJobsOfTenants", Protects: "a client hears of its tenants",
		Old: "if err := serves(caller, r.GetJob()); err != nil {", New: "if err := serves(caller, r.GetJob()); false {",
	},
	{
		Name: "job/seen", File: "api.go", Run: "TestJobsOfTenants", Protects: "a client sees, and ends, jobs of its tenants",
		Old: "err == nil && !sees(caller, e.request) {", New: "err == nil && caller.Name == \"\" {",
	},
	{
		Name: "job/serves", File: "api.go", Run: "TestJobsOfTenants", Protects: "tenants are told apart",
		Old: "return q.GetTenant() == \"\" || caller.Serves(q.GetTenant())", New: "return caller.Name != \"\"",
	},
	{
		Name: "job/set", File: "api.go", Run: "TestAPI", Protects: "a job is of parameters that were pinned",
		Old: "!pinned {", New: "!pinned && false {",
	},
	{
		Name: "job/valid", File: "api.go", Run: "TestAPI", Protects: "a job is one that a party could take",
		Old: "if err := job.Validate(c.trial(q), time.Now()); err != nil {", New: "if err := job.Validate(c.trial(q), time.Now()); false {",
	},
	{
		Name: "job/epoch", File: "api.go", Run: "TestAPI", Protects: "a job names its keys",
		Old: "if !job.MakesEpoch(q.GetKind()) && q.GetEpoch() == 0 {", New: "if false {",
	},
	{
		Name: "job/input-party", File: "api.go", Run: "TestAPI", Protects: "input masks are of a party",
		Old: "int64(q.GetInputParty()) >= int64(n) {", New: "n < 0 {",
	},
	{
		Name: "job/timeout", File: "api.go", Run: "TestAPI", Protects: "a job's time is a time",
		Old: "t != nil && (t.CheckValid() != nil || t.AsDuration() <= 0) {", New: "t != nil && false {",
	},
	{
		Name: "job/key-length", File: "api.go", Run: "TestAPI", Protects: "a client's key takes no more room than it may",
		Old: "if len(r.GetIdempotencyKey()) > 64 {", New: "if false {",
	},
	{
		Name: "job/key-owner", File: "api.go", Run: "TestAPI", Protects: "a client's key is its own",
		Old: "key = caller.Name + \"/\" + r.GetIdempotencyKey()", New: "key = r.GetIdempotencyKey()",
	},
	{
		Name: "job/key-body", File: "api.go", Run: "TestAPI", Protects: "a client's key is of one job",
		Old: "case !proto.Equal(e.job.GetRequest(), q):", New: "case false:",
	},
	{
		Name: "job/epoch-there", File: "api.go", Run: "TestAPI|TestRotate$", Protects: "a job is under keys that there are",
		Old: "if err := c.epochThere(ctx, q, key); err != nil {", New: "if err := c.epochThere(ctx, q, key); false {",
	},
	{
		Name: "job/epoch-draining", File: "parties.go", Run: "TestRotate$", Protects: "no job begins under keys that drain",
		Old: "case e.GetState() == keygenv1.EpochState_EPOCH_STATE_DRAINING && e.GetSuccessor() != 0:", New: "case e.GetEpoch() == epoch:\n\t\t\treturn nil\n\t\tcase false:",
	},
	{
		Name: "job/epoch-retired", File: "parties.go", Run: "TestAnEpochThat", Protects: "no job begins under keys that are gone",
		Old: "case e.GetState() == keygenv1.EpochState_EPOCH_STATE_RETIRED:", New: "case false:",
	},
	{
		Name: "job/cancel", File: "api.go", Run: "TestCancel|TestActivation", Protects: "what parties have activated is not cancelled",
		Old: "state >= activating {", New: "state > activating && false {",
	},
	{
		Name: "job/reason", File: "api.go", Run: "TestLongReasons", Protects: "a reason takes no more room than it may",
		Old: "if len(r.GetReason()) > maxReason {", New: "if false {",
	},
	{
		Name: "job/permission", File: "api.go", Tests: []string{"./services/internal/refusals"}, Protects: "jobs are submitted by those who may",
		Old: "prefix + \"SubmitJob\":   rpc.Allow(rpc.Client).With(config.PermSubmit),", New: "prefix + \"SubmitJob\":   rpc.Allow(rpc.Client).With(config.PermStatus),",
	},
	{
		Name: "job/record", File: "records.go", Run: "Fuzz", Protects: "a damaged record is an error",
		Old: "if len(v) < 4 || int64(binary.LittleEndian.Uint32(v)) > int64(len(v)-4) {", New: "if false {",
	},
	{
		Name: "epoch/ahead", File: "run.go", Run: "TestAPartyFarAhead", Protects: "one party does not use up the numbers of epochs",
		Old: "if a.last > made+maxAhead {", New: "if false {",
	},
	{
		Name: "job/epoch-roster", File: "parties.go", Run: "TestAnEpochThat", Protects: "no job begins under keys of another roster",
		Old: "case e.GetStanding() != keygenv1.RosterStanding_ROSTER_STANDING_SAME:", New: "case false:",
	},
	{
		Name: "estimate/agreed", File: "estimate.go", Run: "TestEstimateRefusals", Protects: "parties speak of the same job",
		Old: "if a.GetTuples() != first.GetTuples() || a.GetDim() != first.GetDim() {", New: "if false {",
	},
	{
		Name: "estimate/refused", File: "estimate.go", Run: "TestEstimateRefusals", Protects: "there is no estimate of what a party refuses",
		Old: "return nil, &e\n", New: "away = &e\n",
	},
	{
		Name: "estimate/valid", File: "estimate.go", Run: "TestEstimateRefusals", Protects: "there is no estimate of what is no job",
		Old: "if err := c.check(checked); err != nil {", New: "if err := c.check(checked); false {",
	},
	{
		Name: "rotate/permission", File: "rotate.go", Run: "TestRotateRefuses", Protects: "policies are moved by those who may",
		Old: "if !caller.May(config.PermPolicy) {", New: "if false {",
	},
	{
		Name: "rotate/word", File: "rotate.go", Run: "TestRotateRefuses", Protects: "what is asked of keys is understood",
		Old: "s != \"\" && s != proved {", New: "s == \"?\" {",
	},
	{
		Name: "rotate/valid", File: "rotate.go", Run: "TestRotateRefuses", Protects: "keys are of parameters that were pinned",
		Old: "if err := c.check(keys); err != nil {", New: "if err := c.check(keys); false {",
	},
	{
		Name: "rotate/once", File: "rotate.go", Run: "TestRotate$", Protects: "an epoch is replaced once",
		Old: "case r.GetState() == rotationCompleted:", New: "case r.GetState() == rotationCompleted:\n\t\treturn nil, nil\n\tcase false:",
	},
}
