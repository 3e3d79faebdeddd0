package config

import "github.com/lodge-mpc/lodge/services/host/rpc"

// Callers limits the connections and calls that callers may hold open at this process. A missing
// limit has its default.
type Callers struct {
	// Connections limits the connections of all clients together; default 512. Parties, the
	// coordinator and the owner of an evaluator have 64 each in addition.
	Connections int `yaml:"connections,omitempty"`
	// ConnectionsPerClient limits the connections of one client; default 64.
	ConnectionsPerClient int `yaml:"connections_per_client,omitempty"`
	// Calls limits the running calls of all clients together; default 512.
	Calls int `yaml:"calls,omitempty"`
	// CallsPerClient limits the running calls of one client, at most 32 of them streams; default
	// 64.
	CallsPerClient int `yaml:"calls_per_client,omitempty"`
}

// Limits converts the limits for package rpc.
func (c Callers) Limits() rpc.Limits { return rpc.Limits(c) }

func (c *check) callers(l Callers) {
	if err := l.Limits().Valid(); err != nil {
		c.failf("callers: %v", err)
	}
}
