package evaluator

import (
	"context"
	"encoding/hex"
	"net"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

const gatesSet = "insecure-M8-32"

// gates holds the multi-key keys of some owners, and ciphertexts under them, at the party of a
// world.
type gates struct {
	*world
	scheme *multikey.Scheme
	own    *multikey.Evaluator
	ids    []multikey.KeyID
	keys   map[multikey.KeyID]*multikey.Keys
	inputs []*multikey.Ciphertext

	mu    sync.Mutex
	loads int
}

func newGates(t testing.TB, set string, owners int) *gates {
	t.Helper()
	s, err := multikey.Lookup(set)
	must(t, err)
	scheme, err := multikey.New(s, multikey.StandardSeed())
	must(t, err)
	g := &gates{world: newWorld(t), scheme: scheme, own: multikey.NewEvaluator(scheme), keys: map[multikey.KeyID]*multikey.Keys{}}
	source := sample.NewSource(make([]byte, sample.SeedSize)).Sub("gates")
	for i := range owners {
		secret, keys := scheme.Generate(uint32(i), source.Sub("owner", uint64(i)), 2)
		id, err := g.own.Add(keys, 2)
		must(t, err)
		g.ids, g.keys[id] = append(g.ids, id), keys
		g.inputs = append(g.inputs, secret.Encrypt([]bool{i%2 == 0}, source.Sub("bit", uint64(i))).Ciphertext(0))
	}
	return g
}

// configure returns the configuration of an evaluator that also has the multi-key parameter set.
func (g *gates) configure(name, domain string) (*config.EvaluatorFile, config.Evaluator) {
	f, e := g.world.configure(name, domain)
	f.MaxConcurrent = 2
	hash := g.scheme.Hash()
	f.Params = append(f.Params, config.ParamsPin{Name: g.scheme.Name, Hash: hex.EncodeToString(hash[:])})
	return f, e
}

func (g *gates) start(name, domain string, cheats ...rpc.Inner) config.Evaluator {
	f, e := g.configure(name, domain)
	g.serve(f, cheats...)
	return e
}

// serve runs an evaluator and waits until it listens. Pools discover it at their next poll.
func (g *gates) serve(f *config.EvaluatorFile, cheats ...rpc.Inner) {
	g.run(f, cheats...)
	g.until("it listens", func() bool {
		c, err := net.Dial("tcp", f.Listen)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// rotations returns the Gates that an evaluation passes to a pool.
func (g *gates) rotations() *Gates {
	return &Gates{Scheme: g.scheme, Own: g.own.Rotate, Keys: func(_ context.Context, id multikey.KeyID) (*multikey.Keys, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.loads++
		return g.keys[id], nil
	}}
}

// tasks returns gates of all owners, and gates of each owner with the next.
func (g *gates) tasks(n int) (list []multikey.Task) {
	for i := range n {
		a, b := g.inputs[i%len(g.inputs)], g.inputs[(i+1)%len(g.inputs)]
		list = append(list, multikey.Task{Gate: multikey.Gates()[i%10], Dst: new(multikey.Ciphertext), A: a, B: b})
	}
	return list
}

// computes checks gates whose rotations a pool computes. The words must equal the party's own
// words, unless they may differ with the kind of arithmetic; the decrypted bits must be the same in
// any case.
func (g *gates) computes(p *Pool, n int) {
	g.t.Helper()
	rotate := p.Rotate(g.rotations())
	if rotate == nil {
		g.t.Fatalf("no evaluator is available\n%s", g.log.String())
	}
	g.computesWith(rotate, n)
}

func (g *gates) computesWith(rotate multikey.Rotate, n int) {
	g.t.Helper()
	want, got := g.tasks(n), g.tasks(n)
	must(g.t, g.own.Run(context.Background(), 2, want))
	must(g.t, g.own.RunWith(context.Background(), 2, got, rotate))
	for i := range want {
		if !got[i].Dst.Equal(want[i].Dst) {
			g.t.Fatalf("the words of gate %d differ from the party's own\n%s", i, g.log.String())
		}
	}
}
