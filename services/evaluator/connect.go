package evaluator

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
)

const (
	lookEvery   = 2 * time.Second  // at whether an evaluator is up
	lookWait    = 5 * time.Second  // for its answer
	lookupEvery = 10 * time.Second // at what addresses a name has
)

// Run keeps connections to all addresses of all evaluators, and looks whether they are up, until ctx is done.
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

// tend does so for one of them.
func (p *Pool) tend(ctx context.Context, x *process) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var looked time.Time
	said := ""
	for {
		if time.Since(looked) >= lookupEvery {
			if err := p.lookup(ctx, x); err != nil && err.Error() != said && ctx.Err() == nil {
				said = err.Error()
				p.o.Log.Warn("the address of an evaluator is not known", "evaluator", x.Name, "address", x.Address, "error", err)
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

// maxAddresses bounds what a name may stand for, each with a connection of its own, whatever it is said to.
const maxAddresses = 256

// lookup finds the addresses that the name of an evaluator has now.
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
			return err // those that are known stay
		}
		if len(hosts) > maxAddresses {
			return fmt.Errorf("evaluator: %s has %d addresses; at most %d are asked", host, len(hosts), maxAddresses)
		}
		addresses = addresses[:0]
		for _, h := range hosts {
			addresses = append(addresses, net.JoinHostPort(h, port))
		}
	}
	slices.Sort(addresses)
	return p.set(x, slices.Compact(addresses))
}

// set has an evaluator at exactly these addresses. What runs at others ends there.
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
			count: func(direction string, n int) { p.o.Metrics.EvaluatorBytes(x.Name, direction, n) },
		})
	}
	return nil
}

// leave closes the connection of an address that is gone when nothing runs there. The caller holds the lock.
func (i *instance) leave() {
	if i.gone && i.running == 0 {
		i.conn.Close()
	}
}

// look asks all addresses of an evaluator whether they are up, and for how much.
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
				return // whoever computes may be slow to answer
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
	p.o.Metrics.EvaluatorUp(x.Name, count)
	p.wake() // a pause may be over
}

// maxKinds bounds of how many sets an evaluator is heard.
const maxKinds = 64

// kindsOf are the kinds of arithmetic that an evaluator tells, by the hash of the set.
func kindsOf(list []*evaluatorv1.Arithmetic) map[[32]byte][32]byte {
	kinds := map[[32]byte][32]byte{}
	for _, a := range list[:min(len(list), maxKinds)] {
		if len(a.GetParamsHash()) == 32 && len(a.GetKind()) == 32 {
			kinds[[32]byte(a.GetParamsHash())] = [32]byte(a.GetKind())
		}
	}
	return kinds
}

// patience is how many answers in a row an evaluator that was up may owe before it is down.
const patience = 4

// maxPlaces bounds what an evaluator is asked for at the same time, whatever it says.
const maxPlaces = 256

// said logs that an evaluator is up, or that it is not any more.
func (p *Pool) said(i *instance, up bool, err error) {
	if up {
		p.o.Log.Info("an evaluator is up", "evaluator", i.of.Name, "address", i.address)
	} else {
		p.o.Log.Warn("an evaluator is down", "evaluator", i.of.Name, "address", i.address, "error", err)
	}
}
