package popk

import (
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
)

// Accessors for hooks of tests in other packages; see Start.
type (
	Prover   = prover
	Response = response
)

// Sizes returns the sizes of the proof.
func (p *prover) Sizes() params.Proof { return p.sizes }

// Witness returns the message polynomial of witness i.
func (p *prover) Witness(i int) intpoly.Poly { return p.secret[i].z }

// Z returns mu_z.
func (r response) Z() intpoly.Poly { return r.z }

// T returns t.
func (r response) T() [3]intpoly.Poly { return r.t }
