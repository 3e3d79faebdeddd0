package maccheck

import (
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Shapes are those of the messages of a run under this step.
func Shapes(step string, f *field.Field) map[string]round.Shape {
	digest, size, v := round.Bare(len(round.Digest{})), combinations*f.Size(), f.NewVec(combinations)
	sigma := step + "/sigma"
	return map[string]round.Shape{
		round.CommitName(step + "/coin"): digest,
		round.OpenName(step + "/coin"):   round.Bare(2 * round.NonceSize),
		step + "/open":                   round.Of(size, func(b []byte) error { return f.DecodeVec(v, b) }),
		round.CommitName(sigma):          digest,
		round.OpenName(sigma):            round.Of(round.NonceSize+size, func(b []byte) error { return f.DecodeVec(v, b[round.NonceSize:]) }),
	}
}
