package maccheck

import (
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Shapes returns the shapes of the messages of a run under this step.
func Shapes(step string, f *field.Field) map[string]round.Shape {
	digest, v := round.Bare(len(round.Digest{})), f.NewVec(2*Combinations)
	size := Combinations * f.Size()
	z := step + "/z"
	return map[string]round.Shape{
		round.CommitName(step + "/coin"): digest,
		round.OpenName(step + "/coin"):   round.Bare(2 * round.NonceSize),
		step + "/open":                   round.Of(2*size, func(b []byte) error { return f.DecodeVec(v, b) }),
		round.CommitName(z):              digest,
		round.OpenName(z): round.Of(round.NonceSize+size, func(b []byte) error {
			return f.DecodeVec(v.Slice(0, Combinations), b[round.NonceSize:])
		}),
	}
}
