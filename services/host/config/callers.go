package config

import "github.com/lodge-mpc/lodge/services/host/rpc"

// Callers bound what those who call this process can hold of it. Each limit that is missing has its default.
type Callers struct {
	// Connections of all clients together, and of one client; default 512 and 64. Parties, the coordinator and the
	// owner of an evaluator have 64 each, beside these.
	Connections          int `yaml:"connections,omitempty"`
	ConnectionsPerClient int `yaml:"connections_per_client,omitempty"`
	// Calls of all clients that run at the same time, and of one client; default 512 and 64, and 32 streams among
	// these.
	Calls          int `yaml:"calls,omitempty"`
	CallsPerClient int `yaml:"calls_per_client,omitempty"`
}

// Limits are the same for package rpc.
func (c Callers) Limits() rpc.Limits {
	return rpc.Limits{Connections: c.Connections, ConnectionsPerClient: c.ConnectionsPerClient, Calls: c.Calls, CallsPerClient: c.CallsPerClient}
}

func (c *check) callers(l Callers) {
	if err := l.Limits().Valid(); err != nil {
		c.failf("callers: %v", err)
	}
}
