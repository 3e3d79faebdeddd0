package main

// vaultApprovalTable has what a vault checks of requests that others must approve.
var vaultApprovalTable = []mutation{
	{
		Name: "approval/restored", File: "identity.go", Run: "TestApprovalsAndBackups", Protects: "no approval that was used comes back",
		Old: "if err := v.dropApprovals(tx, func(*Approval) bool { return true }); err != nil {", New: "if err := error(nil); err != nil {",
	},
}
