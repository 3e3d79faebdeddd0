package lodge

import "google.golang.org/grpc"

// Over makes a client of connections that the caller has made, where Dial does not serve: with a bearer token, say. A
// connection that is nil is of a process that the client does not call. Of the configuration Party, the names in Parties,
// Tenant, Params and Patience matter. Close ends the connections.
func Over(c Config, coordinator, party *grpc.ClientConn) (*Client, error) {
	if coordinator == nil && party == nil {
		return nil, errorf(Invalid, "connect to a coordinator, a party or both", "no connection")
	}
	if party != nil && c.own() < 0 {
		return nil, errorf(Invalid, "name one of parties", "a connection to a party, and there is no party %q", c.Party)
	}
	x := &Client{config: c, coordinator: coordinator, party: party, patience: c.Patience}
	if x.patience == 0 {
		x.patience = defaultPatience
	}
	return x, nil
}

// FetchOption changes what Fetch draws.
type FetchOption func(*Shares)

// From begins with this tuple of the reservation, counted from 0, to go on where an earlier program ended.
func From(tuple uint64) FetchOption { return func(s *Shares) { s.from = tuple } }
