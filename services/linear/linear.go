// Package linear serves two-party linear algebra at one party: products of matrices that a client has encrypted, for that
// client, and products of a matrix and a shared vector, or of shared matrices and vectors, for two clients of which one has
// the key and the other what the party multiplies with. It is an adapter between lodge.linear.v1 and engine/linear.
//
// The evaluating party has to follow the protocol, as that package says, and a party computes only when its operator has
// allowed that by name. The client that owns the key of a product on shares proves that its inputs are well formed, unless
// the operator accepts unproved ones.
//
// Each product on shares spends a statistical distance on the matrix of the client that answers. The vault adds it up for
// each pair of clients, before the first answer leaves, and a product that exceeds the budget is refused (budget.go).
// Nothing else is durable: a call that fails leaves nothing behind, and the next one draws its own randomness.
package linear

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/engine/linear"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	"github.com/lodge-mpc/lodge/services/audit"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/metrics"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/vault"
)

const prefix = "/lodge.linear.v1.LinearService/"

// Rules say who may call what.
var Rules = rpc.Rules{
	prefix + "Multiply": rpc.Allow(rpc.Client).With(config.PermLinear),
	prefix + "Ask":      rpc.Allow(rpc.Client).With(config.PermLinear),
	prefix + "Answer":   rpc.Allow(rpc.Client).With(config.PermLinear),
}

// What is said of a product: whether all are taken to follow the protocol, or, where inputs are proved, those alone who
// evaluate.
const (
	passive          = "passive"
	passiveEvaluator = "passive_evaluator"
)

// Config of a party's service.
type Config struct {
	Gate    *job.Gate
	Metrics *metrics.Metrics
	Audit   *audit.Log
	Vault   *vault.Vault
	Log     *slog.Logger
	Policy  config.Linear
	// AllowPassive says that the operator accepts products that are secure against those who follow the protocol alone.
	AllowPassive bool
	// AllowUnproved says that the operator accepts products on shares whose inputs nobody proves to be well formed.
	AllowUnproved bool
	// AllowInsecure accepts sets that are too small to hide anything. For tests.
	AllowInsecure bool
	Workers       int
}

// Service implements lodge.linear.v1.
type Service struct {
	linearv1.UnimplementedLinearServiceServer
	Config
	rates rates
	runs  runs

	mu      sync.Mutex
	schemes map[string]*linear.Scheme
}

// New serves linear algebra.
func New(c Config) *Service {
	s := &Service{Config: c, schemes: map[string]*linear.Scheme{}}
	s.showBudgets()
	return s
}

// scheme gives the set of a name, if this party computes with it and it is the one that the client knows.
func (s *Service) scheme(name string, hash []byte) (*linear.Scheme, error) {
	//lodge:check linearservice/passive [run=TestPassiveIsRefused] passively secure products are
	//  computed without the operator's permission
	if !s.AllowPassive {
		return nil, rpc.Errorf(rpc.PolicyRefused, "allow_passive_linear: true accepts that; docs/linear.md says what it means",
			"linear algebra is secure against those who follow the protocol alone, and this party does not allow that")
	}
	set, err := linear.Lookup(name)
	if err != nil {
		return nil, rpc.Errorf(rpc.NotFound, fmt.Sprintf("name one of %q", linear.Names()), "there is no set %.40q for linear algebra", name)
	}
	//lodge:check linearservice/set-hash [run=Refuse] the two sides compute with different parameter
	//  sets
	if want := set.Hash(); string(hash) != string(want[:]) {
		return nil, rpc.Errorf(rpc.PinMismatch, "use a client of the party's version",
			"set %s has the hash %x here, and the client knows another", set.Name, want)
	}
	//lodge:check linearservice/insecure [run=TestMultiplySecurely] insecure parameter sets are used
	//  without the operator's permission
	if set.Insecure && !s.AllowInsecure {
		return nil, rpc.Errorf(rpc.PolicyRefused, "use another set; allow_insecure_params: true is for tests", "set %s is insecure", set.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.schemes[name] == nil {
		if s.schemes[name], err = linear.New(set); err != nil {
			return nil, err
		}
	}
	return s.schemes[name], nil
}

// rates count the products of each client in an hour.
type rates struct {
	mu    sync.Mutex
	begun map[string][]time.Time
}

// take counts one more product of a client, if it may have one.
func (r *rates) take(client string, most int, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.DeleteFunc(r.begun[client], func(t time.Time) bool { return now.Sub(t) >= time.Hour })
	if r.begun == nil {
		r.begun = map[string][]time.Time{}
	}
	r.begun[client] = list
	//lodge:check linearservice/rate [run=TestWhoMayMultiply] a client gets more products per hour
	//  than the policy allows
	if len(list) >= most {
		e := rpc.Errorf(rpc.RateLimited, "", "client %s has begun %d products within the hour, as many as it may", client, len(list))
		e.Retry = list[0].Add(time.Hour).Sub(now)
		e.Next = fmt.Sprintf("try again in %s", e.Retry.Round(time.Second))
		return e
	}
	r.begun[client] = append(list, now)
	return nil
}
