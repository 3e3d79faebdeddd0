package maccheck

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// weighed is the number of weights of each kind in the tests: more than one block of combine, in
// two pairs.
const weighed = 300

// weights returns the weights of values, zeros and sacrificed values, which it reads off the
// combinations of unit vectors. With mac it reads them off the combinations of the MACs instead.
func weights(t *testing.T, f *field.Field, session round.Session, step string, coin round.Digest, mac bool) (chi [Combinations]field.Vec) {
	t.Helper()
	for i := range chi {
		chi[i] = f.NewVec(weighed)
	}
	one := func(k int) []Pair {
		v := f.NewVec(weighed)
		copy(v.At(k), f.One())
		none := f.NewVec(weighed)
		pairs := []Pair{{v.Slice(0, 7), none.Slice(0, 7)}, {v.Slice(7, weighed), none.Slice(7, weighed)}}
		if mac {
			for i := range pairs {
				pairs[i].Value, pairs[i].MAC = pairs[i].MAC, pairs[i].Value
			}
		}
		return pairs
	}
	for k := range weighed {
		c := Config{
			Session: session, Step: step, Field: f, Values: one(k), Zeros: one(k), Sacrificed: one(k),
			Material: &Material{Mask: Pair{f.NewVec(1), f.NewVec(1)}},
		}
		opened, macs, err := c.combined(coin)
		if err != nil {
			t.Fatal(err)
		}
		if mac {
			opened = macs
		}
		for i := range chi {
			copy(chi[i].At(k), opened.At(i))
		}
	}
	return chi
}

// Every weight is used once: weights differ between entries, between values, zeros and products,
// and between steps, sessions and coins.
func TestWeightsDependOnEverything(t *testing.T) {
	f := testField(t, "p128")
	base := round.Session{ID: round.Hash("a session"), Parties: 2}
	other := base
	other.ID[31] ^= 1
	coin := round.Hash("a coin")
	another := coin
	another[31] ^= 1
	seen := map[string]string{}
	for _, c := range []struct {
		name    string
		session round.Session
		step    string
		coin    round.Digest
	}{
		{"the check", base, step, coin},
		{"another coin", base, step, another},
		{"another session", other, step, coin},
		{"another step", base, step + "2", coin},
	} {
		chi := weights(t, f, c.session, c.step, c.coin, false)
		for k := range weighed {
			for i, what := range [Combinations]string{"value", "zero", "product"} {
				x := chi[i].At(k)
				where := fmt.Sprintf("%s %d of %s", what, k, c.name)
				if f.IsZero(x) {
					t.Errorf("%s has weight 0", where)
				}
				if same, ok := seen[fmt.Sprint(x)]; ok {
					t.Errorf("%s has the weight of %s", where, same)
				}
				seen[fmt.Sprint(x)] = where
			}
		}
		// MACs have the weights of their values.
		for i, ofMACs := range weights(t, f, c.session, c.step, c.coin, true) {
			if !f.EqualVec(chi[i], ofMACs) {
				t.Errorf("%s: MACs of combination %d have other weights than their values", c.name, i)
			}
		}
	}
}

// Errors e0 and e1 with e0 chi_0 + e1 chi_1 = 0 pass. A party that knows the weights before the
// coin can plant such errors. The parties' coin must therefore make the weights unpredictable.
func TestErrorsForForeseenWeightsAreFound(t *testing.T) {
	f := testField(t, "p128")
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		var coin round.Digest
		session := round.Session{ID: round.Hash("roundtest session"), Parties: n}
		foreseen := weights(t, f, session, step, coin, false)
		for i, check := range [Combinations]string{CheckMAC, CheckZero, CheckMAC} {
			d := deal(t, f, n, 5)
			plant(f, d.inputs[culprit].list(i), foreseen[i])
			aborts(t, d.run(roundtest.Cheat(culprit, byzantine.New())).Errors, culprit, check)
		}
	}
}

// list returns the shares of the values of combination i.
func (c *Config) list(i int) field.Vec {
	return [Combinations][]Pair{c.Values, c.Zeros, c.Sacrificed}[i][0].Value
}

// plant adds errors that cancel under the weights chi.
func plant(f *field.Field, v, chi field.Vec) {
	f.Add(v.At(0), v.At(0), chi.At(1))
	f.Sub(v.At(1), v.At(1), chi.At(0))
}

// With the true weights the same errors pass: the experiment above plants them in the right place.
func TestErrorsForTheTrueWeightsPass(t *testing.T) {
	f := testField(t, "p128")
	session := round.Session{ID: round.Hash("roundtest session"), Parties: 2}
	// The coin is tossed first. The same randomness tosses the same coin again.
	tossed := roundtest.Lockstep(2, func(s round.Session) (round.Transition[round.Digest], error) {
		return round.CoinToss(s, step+"/coin", source("run", s.Self).Stream("coin"))
	}).OK(t).Results[0]
	chi := weights(t, f, session, step, tossed, false)
	d := deal(t, f, 2, 5)
	for i := range chi {
		plant(f, d.inputs[1].list(i), chi[i])
	}
	d.run().OK(t)
}
