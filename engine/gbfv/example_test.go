package gbfv_test

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/params"
)

// Two encrypted vectors are multiplied slot by slot. The key is made in one process, as only tests
// do.
func Example() {
	set, err := params.Lookup("insecure-6")
	check(err)
	spec, err := set.Field("p64")
	check(err)
	s, err := gbfv.New(set, spec)
	check(err)
	key := gbfvtest.New(s, 2, 1, make([]byte, 32))

	x, y := s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots())
	s.Field.SetUint64(x.At(0), 6)
	s.Field.SetUint64(y.At(0), 7)
	a, b := key.Encrypt(x, 0), key.Encrypt(y, 1)

	product := gbfv.NewEvaluator(s, key.Eval).Mul(s.Left(a), s.Right(b))
	fmt.Println(s.Field.Big(key.Decrypt(product).At(0)))
	// Output: 42
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
