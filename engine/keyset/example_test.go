package keyset_test

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/keyset"
)

func ExampleRegistry() {
	type set struct {
		name string
		size int
	}
	sets := keyset.Registry[set]{
		Scheme: "demo",
		Sets:   func() []*set { return []*set{{"small", 10}, {"large", 20}, {"insecure-tiny", 1}} },
		Label:  func(s *set) (string, bool) { return s.name, s.name != "insecure-tiny" },
	}
	s, err := sets.Lookup("large")
	fmt.Println(s.size, err)
	_, err = sets.Lookup("huge")
	var unknown *keyset.UnknownError
	fmt.Println(errors.As(err, &unknown), err)
	// Output:
	// 20 <nil>
	// true demo: unknown set "huge" (known: small, large)
}
