package popk

import (
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
)

// What the hooks of tests in other packages get; see Start.
type (
	Prover   = prover
	Response = response
)

// Sizes are the numbers of the proof.
func (p *prover) Sizes() params.Proof { return p.sizes }

// Witness is the message polynomial of witness i.
func (p *prover) Witness(i int) intpoly.Poly { return p.secret[i].z }

// Z is mu_z.
func (r response) Z() intpoly.Poly { return r.z }

// T is t.
func (r response) T() [3]intpoly.Poly { return r.t }
