// Package linear serves two-party linear algebra at one party. It computes products of matrices
// that one client has encrypted, and products on shares of two clients: a matrix times a shared
// vector, or sums of products of shared matrices and vectors. One of the two clients owns the key,
// and the other owns the matrix or the second factors. The package adapts lodge.linear.v1 to
// engine/linear.
//
// As documented there, security requires that the evaluating party follows the protocol. A party
// computes only if its operator has explicitly allowed that. In a product on shares, the client
// that owns the key proves that its inputs are well formed, unless the operator accepts unproved
// inputs.
//
// Each product on shares spends a statistical distance on the matrix of the client that answers.
// The vault sums the distances for each pair of clients before the first answer is sent, and a
// product that exceeds the budget is rejected (budget.go). No other state is durable: a failed call
// leaves no trace, and the next call draws fresh randomness.
package linear

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/engine/linear"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

const prefix = "/lodge.linear.v1.LinearService/"

// Rules maps each method to the permission that a caller needs.
var Rules = rpc.Rules{
	prefix + "Multiply": rpc.Allow(rpc.Client).With(config.PermLinear),
	prefix + "Ask":      rpc.Allow(rpc.Client).With(config.PermLinear),
	prefix + "Answer":   rpc.Allow(rpc.Client).With(config.PermLinear),
}

// Security levels of products: all participants are assumed to follow the protocol or, if inputs
// are proved, only the evaluating participants.
const (
	passive          = "passive"
	passiveEvaluator = "passive_evaluator"
)

// Config configures a party's service.
type Config struct {
	Gate    *job.Gate
	Metrics *metrics.Metrics
	Audit   *audit.Log
	Vault   Vault
	Log     *slog.Logger
	Policy  config.Linear
	// AllowPassive tells that the operator accepts products that are secure only against
	// participants that follow the protocol.
	AllowPassive bool
	// AllowUnproved tells that the operator accepts products on shares whose inputs are not proved
	// to be well formed.
	AllowUnproved bool
	// AllowInsecure accepts parameter sets that are too small to hide anything. Only for tests.
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

// New returns the service.
func New(c Config) *Service {
	s := &Service{Config: c, schemes: map[string]*linear.Scheme{}}
	s.showBudgets()
	return s
}

// scheme returns the scheme of a parameter set, if this party allows it and the client has the same
// set.
func (s *Service) scheme(name string, hash []byte) (*linear.Scheme, error) {
	//lodge:check linearservice/passive [run=TestPassiveIsRefused] passively secure products are
	//  computed without the operator's permission
	if !s.AllowPassive {
		return nil, rpc.Errorf(rpc.PolicyRefused, "to accept that, the operator sets allow_passive_linear: true; docs/guides/linear.md explains the consequences",
			"linear algebra is secure only against parties that follow the protocol, and this party does not allow that")
	}
	set, err := linear.Lookup(name)
	if err != nil {
		return nil, rpc.Errorf(rpc.NotFound, fmt.Sprintf("use one of %q", linear.Names()), "there is no parameter set %.40q for linear algebra", name)
	}
	//lodge:check linearservice/set-hash [run=Refuse] the two sides compute with different parameter
	//  sets
	if want := set.Hash(); string(hash) != string(want[:]) {
		return nil, rpc.Errorf(rpc.PinMismatch, "use a client of the party's version",
			"parameter set %s has the hash %x at this party, but another at the client", set.Name, want)
	}
	//lodge:check linearservice/insecure [run=TestMultiplySecurely] insecure parameter sets are used
	//  without the operator's permission
	if set.Insecure && !s.AllowInsecure {
		return nil, rpc.Errorf(rpc.PolicyRefused, "use another set; allow_insecure_params: true is for tests", "parameter set %s is insecure", set.Name)
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

// rates counts the products of each client in the last hour.
type rates struct {
	mu    sync.Mutex
	begun map[string][]time.Time
}

// take counts another product of a client, or returns an error if the client has reached its limit.
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
		e := rpc.Errorf(rpc.RateLimited, "", "client %s has begun %d products within the last hour, which is its limit", client, len(list))
		e.Retry = list[0].Add(time.Hour).Sub(now)
		e.Next = fmt.Sprintf("try again in %s", e.Retry.Round(time.Second))
		return e
	}
	r.begun[client] = append(list, now)
	return nil
}
