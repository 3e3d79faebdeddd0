package job

import "github.com/lodge-mpc/lodge/services/rpc"

// Clients' computations have a budget of their own beside the sessions', so that neither starves the other: a quarter
// of the memory that the policy gives to sessions. One client has two calls at a time.
const (
	callShare      = 4
	callsPerClient = 2
)

// Call is a client's call from its header to its answer. It belongs to one goroutine.
type Call struct {
	gate   *Gate
	client string
	memory uint64 // estimated peak of its computation, bytes
	runs   bool
	over   bool
}

// AdmitCall takes one of a client's places; memory is the estimated peak of the computation in bytes. The memory is
// taken by Compute, when what the client sends is there. The caller calls Release when the call ends.
func (g *Gate) AdmitCall(client string, memory uint64) (*Call, error) {
	if most := g.callBudget(); memory > most {
		return nil, rpc.Errorf(rpc.PolicyRefused, "ask for less, or raise policy.max_memory; clients' calls have a quarter as much",
			"this would hold about %d bytes, above %d", memory, most)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[client] >= callsPerClient {
		return nil, rpc.Errorf(rpc.Busy, "try again when one has ended", "client %s has %d calls running", client, callsPerClient)
	}
	g.calls[client]++
	return &Call{gate: g, client: client, memory: memory}, nil
}

func (g *Gate) callBudget() uint64 { return uint64(g.terms.Policy.MaxMemory) / callShare }

// Compute takes the memory of the call's computation, once.
func (c *Call) Compute() error {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if most := g.callBudget(); g.callMemory+c.memory > most {
		return rpc.Errorf(rpc.Busy, "try again when another call has ended",
			"clients' calls hold about %d bytes; with this they would be above %d", g.callMemory, most)
	}
	g.callMemory += c.memory
	c.runs = true
	return nil
}

// Release gives back what the call holds, once; a nil call holds nothing.
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
	if c.runs {
		g.callMemory -= c.memory
	}
}
