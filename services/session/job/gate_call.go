package job

import "github.com/lodge-mpc/lodge/services/host/rpc"

// Clients' computations have a memory budget separate from that of sessions, so that neither
// starves the other: a quarter of the policy's memory for sessions. Each client may have two calls
// at a time.
const (
	callShare      = 4
	callsPerClient = 2
)

// Call is a client's call from its header to its answer. It belongs to one goroutine.
type Call struct {
	gate   *Gate
	client string
	memory uint64 // estimated peak of its computation, bytes
	taken  uint64 // of that
	over   bool
}

// AdmitCall takes one of a client's call slots; memory is the estimated peak of the computation in
// bytes. Take charges the memory as the client's data arrives, and Compute charges the rest. The
// caller must call Release when the call ends.
func (g *Gate) AdmitCall(client string, memory uint64) (*Call, error) {
	if most := g.callBudget(); memory > most {
		return nil, rpc.Errorf(rpc.PolicyRefused, "ask for less, or raise policy.max_memory; clients' calls have a quarter as much",
			"this would hold about %d bytes, above %d", memory, most)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	//lodge:check job/gate/calls [run=TestCalls] one client has any number of concurrent calls
	if g.calls[client] >= callsPerClient {
		return nil, rpc.Errorf(rpc.Busy, "try again when one has ended", "client %s has %d calls running", client, callsPerClient)
	}
	g.calls[client]++
	return &Call{gate: g, client: client, memory: memory}, nil
}

func (g *Gate) callBudget() uint64 { return uint64(g.terms.Policy.MaxMemory) / callShare }

// Compute charges the rest of the call's memory.
func (c *Call) Compute() error { return c.Take(c.memory) }

// Take charges part of the call's memory, at most the rest.
func (c *Call) Take(bytes uint64) error {
	g := c.gate
	bytes = min(bytes, c.memory-c.taken)
	g.mu.Lock()
	defer g.mu.Unlock()
	//lodge:check job/gate/call-memory [run=TestCalls] calls use more memory than is set aside for
	//  them
	if most := g.callBudget(); g.callMemory+bytes > most {
		return rpc.Errorf(rpc.Busy, "try again when another call has ended",
			"clients' calls hold about %d bytes; with this they would be above %d", g.callMemory, most)
	}
	g.callMemory += bytes
	c.taken += bytes
	return nil
}

// Release returns the call's slot and memory, once; it does nothing on a nil call.
func (c *Call) Release() {
	if c == nil || c.over {
		return
	}
	c.over = true
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[c.client]--; g.calls[c.client] == 0 {
		delete(g.calls, c.client)
	}
	g.callMemory -= c.taken
}
