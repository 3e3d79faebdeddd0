package config

import "time"

// Linear bounds the products of matrices and vectors that clients with the permission "linear" have computed.
type Linear struct {
	// ProductsPerHour bounds those that each client begins in any hour; default 1000.
	ProductsPerHour int `yaml:"products_per_hour,omitempty"`
	// Wait is how long one end of a product on shares waits for the other client to come; default 2 m.
	Wait Duration `yaml:"wait,omitempty"`
	// RequireProofs refuses products on shares whose inputs nobody proves to be well formed.
	RequireProofs bool `yaml:"require_proofs,omitempty"`
}

// WaitTime is Wait as time knows it.
func (l *Linear) WaitTime() time.Duration { return time.Duration(l.Wait) }

// fill completes the bounds and refuses those that mean nothing.
func (l *Linear) fill(c *check) {
	if l.ProductsPerHour == 0 {
		l.ProductsPerHour = 1000
	}
	if l.Wait == 0 {
		l.Wait = Duration(2 * time.Minute)
	}
	if l.ProductsPerHour < 0 {
		c.failf("linear.products_per_hour: %d is negative", l.ProductsPerHour)
	}
}
