package triple

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// TestEveryEndErases looks at the vectors of secrets that pass from one protocol to the next, after
// batches that succeed and batches whose MAC check fails: all are zero, but for the results.
func TestEveryEndErases(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 16)
	for _, c := range []struct {
		name string
		plan *Plan
		fail bool
	}{
		{"scalars", w.plan(t, Scalar, Shape{}, 0, 1), false},
		{"scalars that fail", w.plan(t, Scalar, Shape{}, 0, 1), true},
		{"input masks", w.plan(t, Input, Shape{}, 0, 1), false},
		{"input masks that fail", w.plan(t, Input, Shape{}, 0, 1), true},
		{"matrices", w.plan(t, Matrix, Shape{8, 5, 3}, 4, 1), false},
		{"matrices that fail", w.plan(t, Matrix, Shape{8, 5, 3}, 4, 1), true},
		{"convolutions", w.convolution(t, convolutions[1]), false},
		{"convolutions that fail", w.convolution(t, convolutions[1]), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var held []field.Vec
			var values []field.Vec
			watch := byzantine.On(byzantine.New(), "popk.Result", func(r *popk.Result) { held = append(held, r.Shares...) })
			byzantine.On(watch, "ddec.Shares", func(s ddec.Shares) { held = append(held, s...) })
			byzantine.On(watch, "triple/images", func(v field.Vec) { held = append(held, v) })
			options := []roundtest.Option{roundtest.Watch(0, watch)}
			if c.fail {
				options = append(options, roundtest.Cheat(1, byzantine.On(byzantine.New(), "ddec.Shares", func(s ddec.Shares) {
					w.scheme.Field.Add(s[0].At(0), s[0].At(0), w.scheme.Field.One())
				})))
			}
			out := w.run(c.plan, options...)
			if c.fail {
				out.Aborted(t, 1, maccheck.CheckMAC)
			} else {
				out.OK(t)
				r := out.Results[0]
				values = []field.Vec{r.A, r.B, r.C, r.MACA, r.MACB, r.MACC}
				if c.plan.Kind == Input {
					values = []field.Vec{r.A, r.MACA, r.Clear}
				}
			}
			if len(held) == 0 {
				t.Fatal("the hooks are gone")
			}
			for i, v := range held {
				if !zero(v) {
					t.Errorf("vector %d of %d outlives the run", i, len(held))
				}
			}
			for i, v := range values {
				if zero(v) {
					t.Errorf("vector %d of the result is zero", i)
				}
			}
			out.Results[0].Wipe()
			for i, v := range values {
				if !zero(v) {
					t.Errorf("vector %d of the result survives Wipe", i)
				}
			}
		})
	}
}

func zero(v field.Vec) bool {
	for _, w := range v.W {
		if w != 0 {
			return false
		}
	}
	return true
}

// TestSecretsAreNotPrinted prints all types that hold secrets in every format, and searches for the
// secrets' words.
func TestSecretsAreNotPrinted(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 1)
	out := w.run(w.plan(t, Scalar, Shape{}, 0, 1)).OK(t)
	lifted := ring.NTT{C: [][]uint64{{7310279201173}}}
	secrets := map[string]any{
		"result": out.Results[0], "mac key": w.macs[0], "secret key": w.keys[0].Secret, "lifted": lifted,
		"config": Config{Secret: lifted, MAC: w.macs[0], Source: seed("x", 0)},
		"shares": ddec.Shares{out.Results[0].A}, "proof": popk.Result{Shares: []field.Vec{out.Results[0].B}},
		"check": maccheck.Config{Material: &maccheck.Material{Mask: maccheck.Pair{Value: out.Results[0].A, MAC: out.Results[0].MACA}}},
	}
	var words []string
	for _, v := range []uint64{out.Results[0].A.W[0], out.Results[0].B.W[0], w.macs[0].Share.W[0], w.macs[0].Share.W[1], lifted.C[0][0]} {
		words = append(words, fmt.Sprintf("%d", v), fmt.Sprintf("%x", v), fmt.Sprintf("%X", v))
	}
	key := strings.Trim(fmt.Sprint([]int64(w.keys[0].Secret[:12])), "[]")
	for name, v := range secrets {
		text := fmt.Sprintf("%v %+v %#v %d %x %X %s", v, v, v, v, v, v, v)
		b, err := json.Marshal(v)
		if err == nil {
			text += string(b) + strings.ReplaceAll(string(b), ",", " ")
		}
		for _, word := range append(words, key) {
			if strings.Contains(text, word) {
				t.Errorf("%s shows %s", name, word)
			}
		}
	}
}
