package config

import "github.com/lodge-mpc/lodge/services/host/rpc"

// Callers limits the connections and calls that callers may hold open at this process. A missing limit has its default.
type Callers struct {
	// Connections limits the connections of all clients together (default 512), ConnectionsPerClient those of one client
	// (default 64). Each party, the coordinator and an evaluator's owner may have 64 more.
	Connections          int `yaml:"connections,omitempty"`
	ConnectionsPerClient int `yaml:"connections_per_client,omitempty"`
	// Calls limits the concurrent calls of all clients together (default 512), CallsPerClient those of one client
	// (default 64, of which 32 streams).
	Calls          int `yaml:"calls,omitempty"`
	CallsPerClient int `yaml:"calls_per_client,omitempty"`
}

// Limits converts the limits for package rpc.
func (c Callers) Limits() rpc.Limits {
	return rpc.Limits{Connections: c.Connections, ConnectionsPerClient: c.ConnectionsPerClient, Calls: c.Calls, CallsPerClient: c.CallsPerClient}
}

func (c *check) callers(l Callers) {
	if err := l.Limits().Valid(); err != nil {
		c.failf("callers: %v", err)
	}
}
