package config

import (
	"math"
	"time"
)

// Linear limits the matrix and vector products of clients with the permission "linear".
type Linear struct {
	// ProductsPerHour limits the products that each client starts in any hour; default 100. An
	// attack on unproved inputs needs thousands of products with one matrix, and a lower rate gives
	// its owner time to see them in the audit log.
	ProductsPerHour int `yaml:"products_per_hour,omitempty" default:"100" range:"1.."`
	// Wait is how long one end of a product on shares waits for the other client; default 2m.
	Wait Duration `yaml:"wait,omitempty" default:"2m"`
	// LogDistanceBudget is log2 of the statistical distance that products on shares may spend
	// between two clients, over all keys and matrices, -40 to -10; default -30.
	LogDistanceBudget float64 `yaml:"log_distance_budget,omitempty" default:"-30"`
	// RequireProofs is obsolete: true is the default, and false is refused.
	RequireProofs *bool `yaml:"require_proofs,omitempty"`
}

// A budget must allow one product of the largest distance that a plan may have, and still give a
// guarantee.
const leastLogDistanceBudget, mostLogDistanceBudget = -40, -10

// WaitTime returns Wait as a time.Duration.
func (l *Linear) WaitTime() time.Duration { return time.Duration(l.Wait) }

// DistanceBudget returns the budget of statistical distance, 2^LogDistanceBudget.
func (l *Linear) DistanceBudget() float64 { return math.Exp2(l.LogDistanceBudget) }

// validate validates the budget of distance and the obsolete key.
func (l *Linear) validate(c *check) {
	//lodge:check config/distance-budget [run=TestLinear] a budget of statistical distance that means nothing is accepted
	if !(l.LogDistanceBudget >= leastLogDistanceBudget && l.LogDistanceBudget <= mostLogDistanceBudget) {
		c.failf("linear.log_distance_budget: %v; must be from %d to %d; -30 allows a distance of 2^-30", l.LogDistanceBudget, leastLogDistanceBudget, mostLogDistanceBudget)
	}
	//lodge:check config/require-proofs [run=TestLinear] a file that turned proofs off loads, and its clients are refused
	if l.RequireProofs != nil && !*l.RequireProofs {
		c.failf("linear.require_proofs: proofs are required unless the file says allow_unproved_linear: true; remove require_proofs")
	}
}
