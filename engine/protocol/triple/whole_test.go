package triple

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/params"
)

// TestWholeRuns makes and checks the smallest batch of scalars from nothing: key generation, MAC
// key, triples. Every field of every set runs with 2 and 3 parties, and those of the default set
// with up to 16.
func TestWholeRuns(t *testing.T) {
	var cases []longtest.Case
	for _, set := range params.Sets() {
		for _, n := range []int{2, 3, 5, 8, 16} {
			for _, f := range set.Fields {
				everyday := set.LogN <= 8 && (f.Name == "p128" || f.Name == set.Fields[0].Name)
				if n > 3 && set.Name != params.Default && !everyday {
					continue
				}
				cases = append(cases, longtest.Case{
					Name: fmt.Sprintf("%s/%s/n=%d", set.Name, f.Name, n), Everyday: everyday,
					Run: func(t *testing.T) { wholeRun(t, set, f.Name, n) },
				})
			}
		}
	}
	longtest.Run(t, cases)
}

func wholeRun(t *testing.T, set *params.Set, field string, n int) {
	plan, err := NewPlan(set, field, n, Scalar, matrices(Shape{}), 0, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	w := newNetwork(t, set.Name, field, n, 1)
	out := w.run(plan)
	failOn(t, out.Errors)
	w.verify(t, plan, out.Results)
}
