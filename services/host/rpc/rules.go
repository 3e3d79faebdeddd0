package rpc

import (
	"slices"
)

// Rule lists the callers that may call a method.
type Rule struct {
	Roles []Role
	// Permission that a Client needs in addition to its role; empty means none.
	Permission string
	// Most limits a message of the caller in bytes. 0 means MaxRequest for a method with one
	// request message, and MaxMessage for a method whose caller streams.
	Most int
}

// Rules maps a full method name ("/lodge.triples.v1.TriplesService/Fetch") to its rule. A method
// without a rule is rejected for every caller.
type Rules map[string]Rule

// Allow returns a rule for roles.
func Allow(roles ...Role) Rule { return Rule{Roles: roles} }

// With returns the rule with a permission that clients need.
func (r Rule) With(permission string) Rule {
	r.Permission = permission
	return r
}

// Bounded returns the rule with a largest message in bytes.
func (r Rule) Bounded(most int) Rule {
	r.Most = most
	return r
}

func (r Rule) most(standard int) int {
	if r.Most > 0 {
		return r.Most
	}
	return standard
}

// Anyone allows every authenticated principal.
var Anyone = Allow(Peer, Coordinator, Client, Self, Owner)

func (rs Rules) check(method string, p Principal) *Error {
	r, ok := rs[method]
	//lodge:check rpc/rules [swap=!ok || !slices.Contains(r.Roles, p.Role)=>!ok &&
	//  !slices.Contains(r.Roles, p.Role)]
	//  [run=TestWhoMayCall|TestEveryMethod|TestClientAuthority|TestKindsOf|TestNoTLS|TestClientPins]
	//  a method without a rule, or a caller without a role for it, is served
	if !ok || !slices.Contains(r.Roles, p.Role) {
		return Errorf(Forbidden, "", "%s %s may not call %s", p.Role, p.Name, method)
	}
	//lodge:check rpc/permission
	//  [run=TestWhoMayCall|TestEveryMethod|TestClientAuthority|TestKindsOf|TestNoTLS|TestClientPins]
	//  a client calls a method without its permission
	if p.Role == Client && r.Permission != "" && !p.May(r.Permission) {
		return Errorf(Forbidden, "add the permission to this client in the configuration of the process that was called",
			"client %s lacks the permission %q for %s", p.Name, r.Permission, method)
	}
	return nil
}
