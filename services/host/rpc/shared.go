package rpc

// CheckShared returns an error unless the client acts for all of the tenants. It guards operations
// on objects that tenants share, such as an epoch of keys: permissions select the operations and
// tenants the data, and retiring an epoch affects all tenants. The error only counts the other
// tenants, because the client may not be allowed to know their names. Callers that are not clients
// pass.
func (p Principal) CheckShared(what string, tenants []string) error {
	if p.Role != Client {
		return nil
	}
	others := map[string]bool{}
	for _, t := range tenants {
		if !p.Serves(t) {
			others[t] = true
		}
	}
	//lodge:check rpc/shared-tenants tests=./services/party run=TestRetireNeedsEveryTenant one tenant's client erases the tuples of another
	if len(others) > 0 {
		return Errorf(Forbidden, "use a client whose tenants in this process's configuration are all those that it serves",
			"%s also serves %d tenants that client %s does not act for", what, len(others), p.Name)
	}
	return nil
}
