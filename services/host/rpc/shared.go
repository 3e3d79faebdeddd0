package rpc

// CheckShared returns an error unless the client acts for every one of the tenants. It guards operations on things that
// tenants share, such as an epoch of keys: a permission says what a client may do, its tenants say to whose data, and
// retiring an epoch does it to everybody's. The error counts the other tenants and does not name them, because a client
// may not know of them. Callers that are not clients pass.
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
