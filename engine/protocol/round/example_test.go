package round_test

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Three parties commit to a byte each, and then all of them open their commitments.
func ExampleCommitOpen() {
	out := roundtest.Lockstep(3, func(s round.Session) (round.Transition[round.Opened], error) {
		random := sample.NewSource(make([]byte, 32)).Stream("nonce", uint64(s.Self))
		return round.CommitOpen(s, "example", random, []byte{byte(10 * s.Self)}, 1)
	})
	for party, r := range out.Results {
		fmt.Println(party, r.Payloads, r.Agreed == out.Results[0].Agreed)
	}
	// Output:
	// 0 [[0] [10] [20]] true
	// 1 [[0] [10] [20]] true
	// 2 [[0] [10] [20]] true
}
