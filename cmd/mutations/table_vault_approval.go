package main

// vaultApprovalTable has what a vault checks of requests that others must approve.
var vaultApprovalTable = []mutation{
	{
		Name: "approval/client", File: "approval.go", Run: "TestApprovalRefuses", Protects: "a request is some client's, whose name is recorded as it is",
		Old: "case a.Client == \"\" || !validName(a.Client) || ", New: "case ",
	},
	{
		Name: "approval/note", File: "approval.go", Run: "TestApprovalRefuses", Protects: "a request takes no more than it may",
		Old: "len(a.Note) > maxNote || !utf8.ValidString(a.Note):", New: "utf8.ValidString(\"\") && false:",
	},
	{
		Name: "approval/needs", File: "approval.go", Run: "TestApprovalRefuses", Protects: "a request needs somebody's approval",
		Old: "case a.Needs < 1 || a.Needs > maxClients:", New: "case false:",
	},
	{
		Name: "approval/expires", File: "approval.go", Run: "TestApprovalRefuses", Protects: "a request does not wait for ever",
		Old: "case !now.Before(a.Expires) || a.Expires.After(now.Add(MaxApprovalTime)):", New: "case false:",
	},
	{
		Name: "approval/epoch", File: "approval.go", Run: "TestApprovalRefuses", Protects: "a request is for a threshold epoch that serves",
		Old: "if _, err := v.answers(tx, a.Epoch, PurposeThreshold); err != nil {", New: "if _, err := v.answers(tx, a.Epoch, PurposeThreshold); false {",
	},
	{
		Name: "approval/another", File: "approval.go", Run: "TestApproval$", Protects: "nobody takes another's request over",
		Old: "old.Client != a.Client || old.Epoch != a.Epoch {", New: "old.Epoch != a.Epoch {",
	},
	{
		Name: "approval/waits", File: "approval.go", Run: "TestApproval$", Protects: "who asks again does not lose approvals, nor change what was approved",
		Old: "case err == nil && old.waits(now):", New: "case false:",
	},
	{
		Name: "approval/many", File: "approval.go", Run: "TestApprovalRefuses", Protects: "a client's requests do not fill the store",
		Old: "if waiting >= MaxWaiting {", New: "if false {",
	},
	{
		Name: "approval/begins", File: "approval.go", Run: "TestApproval", Protects: "nobody asks with approvals already",
		Old: "a.When, a.Expires, a.By, a.Used = now, a.Expires.UTC(), nil, time.Time{}", New: "a.When, a.Expires, a.Used = now, a.Expires.UTC(), time.Time{}",
	},
	{
		Name: "approval/nobody", File: "approval.go", Run: "TestApproval", Protects: "who approves has a name, which is recorded as it is",
		Old: "if by == \"\" || !validName(by) {", New: "if false {",
	},
	{
		Name: "approval/own", File: "approval.go", Run: "TestApproval$", Protects: "nobody approves a request of one's own",
		Old: "case a.Client == by:", New: "case false:",
	},
	{
		Name: "approval/twice", File: "approval.go", Run: "TestApproval$", Protects: "one is not two",
		Old: "case slices.Contains(a.By, by) || ", New: "case ",
	},
	{
		Name: "approval/used-closed", File: "approval.go", Run: "TestApproval$", Protects: "what was used is not approved again",
		Old: "case !a.Used.IsZero():", New: "case false:",
	},
	{
		Name: "approval/late", File: "approval.go", Run: "TestApprovalExpires", Protects: "what has expired is not approved",
		Old: "case !a.waits(v.now()):", New: "case false:",
	},
	{
		Name: "approval/quarantine", File: "approval.go", Run: "TestApprovalsAndBackups", Protects: "nothing is approved in quarantine",
		Old: "if err := v.trusted(tx); err != nil {", New: "if err := v.trusted(tx); false {",
	},
	{
		Name: "approval/enough", File: "approval.go", Run: "TestApproval$", Protects: "a request has as many approvals as it needs",
		Old: "return a.Needs > 0 && len(a.By) >= a.Needs", New: "return len(a.By) > 0",
	},
	{
		Name: "approval/use-client", File: "approval.go", Run: "TestApproval$", Protects: "an approval is for who asked",
		Old: "case a.Client != client || !a.approved()", New: "case !a.approved()",
	},
	{
		Name: "approval/use-waits", File: "approval.go", Run: "TestApproval", Protects: "an approval is used once, before it expires",
		Old: " || !a.waits(v.now()):", New: ":",
	},
	{
		Name: "approval/use-durable", File: "approval.go", Run: "TestApproval", Protects: "what was used stays so",
		Old: "a.Used = v.now().UTC()", New: "_ = a",
	},
	{
		Name: "approval/use-runs", File: "runs.go", Run: "TestApproval$", Protects: "nothing is answered that is not approved",
		Old: "err = v.alsoDo(tx, also)", New: "_ = also",
	},
	{
		Name: "approval/use-masks", File: "masks.go", Run: "TestApprovalInOneStep", Protects: "no masks are spent on what is not approved",
		Old: "err = v.alsoDo(tx, also)", New: "_ = also",
	},
	{
		Name: "approval/use-flooding", File: "flooding.go", Run: "TestApprovalInOneStep", Protects: "nothing is answered that is not approved",
		Old: "err = v.alsoDo(tx, also)", New: "_ = also",
	},
	{
		Name: "approval/restored", File: "identity.go", Run: "TestApprovalsAndBackups", Protects: "no approval that was used comes back",
		Old: "if err := v.dropApprovals(tx, func(*Approval) bool { return true }); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "approval/backup", File: "backup.go", Run: "TestApprovalsAndBackups", Protects: "no approval that was used comes back",
		Old: " ||\n\t\t\tstrings.HasPrefix(key, approvalPrefix) {", New: " {",
		Redundant: "a restore begins in quarantine, which drops them",
	},
	{
		Name: "approval/retired", File: "ledger.go", Run: "TestApprovalRefuses", Protects: "approvals go with their epoch",
		Old: "if err := v.dropApprovals(tx, func(a *Approval) bool { return a.Epoch == epoch }); err != nil {", New: "if err := error(nil); err != nil {",
	},
	{
		Name: "approval/swept", File: "approval.go", Run: "TestApprovalExpires", Protects: "what has expired is forgotten",
		Old: "case !now.Before(a.Expires):\n\t\t\t\texpired", New: "case a == nil:\n\t\t\t\texpired",
	},
}
