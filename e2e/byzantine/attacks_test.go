package byzantine

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
)

// underAttack runs the attacks that of has a test for, with 2, 3 and 5 parties, on one cluster for
// each number. After each the parties still work. With three parties some run every day, by their
// place in the table.
func underAttack(t *testing.T, of func(name string) func(c *cluster), everyday func(i int) bool) {
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n, " parties"), func(t *testing.T) {
			var c *cluster
			var cases []longtest.Case
			for i, a := range attacks() {
				run := of(a.Name)
				if run == nil {
					continue
				}
				cases = append(cases, longtest.Case{Name: a.Name, Everyday: n == 3 && everyday(i), Run: func(st *testing.T) {
					if c == nil {
						c = newHonest(t, n)
					}
					c.t = st
					run(c)
					if !st.Failed() {
						c.complete(c.spec(cheattest.Scalars))
					}
				}})
			}
			longtest.Run(t, cases)
		})
	}
}
