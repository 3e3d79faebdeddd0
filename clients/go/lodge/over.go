package lodge

import "google.golang.org/grpc"

// Over creates a client from the caller's own connections, for cases that Dial does not support. A
// nil connection means that the client does not call that server. Of the configuration only Party,
// the names in Parties, Tenant, Params and Patience are used. Close closes the connections.
func Over(c Config, coordinator, party *grpc.ClientConn) (*Client, error) {
	if coordinator == nil && party == nil {
		return nil, Errorf(Invalid, "connect to a coordinator, a party or both", "no connection")
	}
	if party != nil && c.own() < 0 {
		return nil, Errorf(Invalid, "name one of parties", "there is a connection to a party, but the configuration names no party %q", c.Party)
	}
	x := &Client{config: c, coordinator: coordinator, party: party, patience: c.Patience}
	if x.patience == 0 {
		x.patience = defaultPatience
	}
	return x, nil
}

// FetchOption changes what Fetch draws.
type FetchOption func(*Shares)

// From starts with this tuple of the reservation, counted from 0, to continue where an earlier
// program ended.
func From(tuple uint64) FetchOption { return func(s *Shares) { s.from = tuple } }
