package evaluator

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

const (
	lookEvery   = 2 * time.Second  // between capacity requests to an evaluator
	lookWait    = 5 * time.Second  // for the response
	lookupEvery = 10 * time.Second // between lookups of a name's addresses
)

// Run keeps connections to all addresses of all evaluators and polls whether they are up, until ctx
// is done.
func (p *Pool) Run(ctx context.Context) {
	if p == nil {
		return
	}
	var all sync.WaitGroup
	for _, x := range p.processes {
		all.Go(func() { p.tend(ctx, x) })
	}
	all.Wait()
}

// tend does this for one evaluator.
func (p *Pool) tend(ctx context.Context, x *process) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var looked time.Time
	said := ""
	for {
		if time.Since(looked) >= lookupEvery {
			if err := p.lookup(ctx, x); err != nil && err.Error() != said && ctx.Err() == nil {
				said = err.Error()
				p.o.Log.Warn("cannot resolve the address of an evaluator", "evaluator", x.Name, "address", x.Address, "error", err)
			} else if err == nil {
				looked, said = time.Now(), ""
			}
		}
		p.look(ctx, x)
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.set(x, nil)
			return
		}
	}
}

// maxAddresses bounds the number of addresses of one name, each with its own connection.
const maxAddresses = 256

// lookup resolves the name of an evaluator.
func (p *Pool) lookup(ctx context.Context, x *process) error {
	host, port, err := net.SplitHostPort(x.Address)
	if err != nil {
		return err
	}
	addresses := []string{x.Address}
	if net.ParseIP(host) == nil {
		ctx, cancel := context.WithTimeout(ctx, lookWait)
		defer cancel()
		hosts, err := p.o.Lookup(ctx, host)
		if err != nil {
			return err // the known addresses stay in use
		}
		if len(hosts) > maxAddresses {
			return fmt.Errorf("evaluator: %s has %d addresses; at most %d are supported", host, len(hosts), maxAddresses)
		}
		addresses = addresses[:0]
		for _, h := range hosts {
			addresses = append(addresses, net.JoinHostPort(h, port))
		}
	}
	slices.Sort(addresses)
	return p.set(x, slices.Compact(addresses))
}

// set replaces the addresses of an evaluator. Calls that run at other addresses finish there.
func (p *Pool) set(x *process, addresses []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.wake()
	x.instances = slices.DeleteFunc(x.instances, func(i *instance) bool {
		if i.gone = !slices.Contains(addresses, i.address); i.gone {
			i.leave()
		}
		return i.gone
	})
	for _, a := range addresses {
		if slices.ContainsFunc(x.instances, func(i *instance) bool { return i.address == a }) {
			continue
		}
		conn, err := rpc.Dial(a, x.Identity, p.o.Credentials)
		if err != nil {
			return err
		}
		x.instances = append(x.instances, &instance{
			of: x, address: a, conn: conn, client: evaluatorv1.NewEvaluatorServiceClient(conn), stall: p.o.Stall,
			count: func(direction string, n int) { p.o.Metrics.Count(metrics.EvaluatorBytes, n, x.Name, direction) },
		})
	}
	return nil
}

// leave closes the connection of a removed address when no call runs there. The caller must hold
// the lock.
func (i *instance) leave() {
	if i.gone && i.running == 0 {
		i.conn.Close()
	}
}

// look asks all addresses of an evaluator whether they are up, and for their capacity.
func (p *Pool) look(ctx context.Context, x *process) {
	p.mu.Lock()
	list := slices.Clone(x.instances)
	p.mu.Unlock()
	var all sync.WaitGroup
	for _, i := range list {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, lookWait)
			defer cancel()
			r, err := i.client.GetCapacity(ctx, &evaluatorv1.GetCapacityRequest{})
			p.mu.Lock()
			defer p.mu.Unlock()
			up := err == nil && r.GetConcurrent() > 0
			if i.silent++; up || err != nil && rpc.FromError(err).Code != rpc.TimedOut {
				i.silent = 0
			}
			if i.up && i.silent > 0 && i.silent < patience {
				return // a busy evaluator may respond slowly
			}
			if up != i.up {
				p.said(i, up, err)
				p.wake()
			}
			i.up = up
			if up {
				i.places = int(min(r.GetConcurrent(), maxPlaces))
				i.kinds = kindsOf(r.GetArithmetic())
			}
		})
	}
	all.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for _, i := range x.instances {
		if i.up {
			count++
		}
	}
	p.o.Metrics.Set(metrics.EvaluatorUp, float64(count), x.Name)
	p.wake() // a pause may have ended
}

// maxKinds bounds the number of parameter sets in an evaluator's report.
const maxKinds = 64

// kindsOf returns the kinds of arithmetic that an evaluator reports, by the hash of the parameter
// set.
func kindsOf(list []*evaluatorv1.Arithmetic) map[[32]byte][32]byte {
	kinds := map[[32]byte][32]byte{}
	for _, a := range list[:min(len(list), maxKinds)] {
		if len(a.GetParamsHash()) == 32 && len(a.GetKind()) == 32 {
			kinds[[32]byte(a.GetParamsHash())] = [32]byte(a.GetKind())
		}
	}
	return kinds
}

// patience is the number of consecutive capacity requests that an evaluator which was up may leave
// unanswered before it counts as down.
const patience = 4

// maxPlaces bounds the number of concurrent requests to an evaluator, whatever capacity it reports.
const maxPlaces = 256

// said logs that an evaluator came up or went down.
func (p *Pool) said(i *instance, up bool, err error) {
	if up {
		p.o.Log.Info("evaluator is up", "evaluator", i.of.Name, "address", i.address)
	} else {
		p.o.Log.Warn("evaluator is down", "evaluator", i.of.Name, "address", i.address, "error", err)
	}
}
