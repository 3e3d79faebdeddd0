package linear

import (
	"errors"

	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// refusal translates an error of the engine for the client.
func refusal(err error) error {
	for _, r := range []struct {
		of   error
		code rpc.Code
		next string
	}{
		{linear.ErrForeign, rpc.Foreign, "encrypt under the uploaded key and for the named parameter set"},
		{linear.ErrKeys, rpc.BadCiphertext, "send a public key of the parameter set; products of ciphertexts also require the evaluation keys"},
		{linear.ErrCiphertext, rpc.BadCiphertext, "encode ciphertexts as the engine does"},
		{linear.ErrProof, rpc.BadProof, "draw another key, and send the engine's inputs and proof unchanged"},
		{linear.ErrNoise, rpc.Invalid, "use another parameter set, or a smaller product"},
		{linear.ErrRange, rpc.Invalid, "use smaller entries, or another parameter set"},
		{linear.ErrShape, rpc.Invalid, ""},
	} {
		if errors.Is(err, r.of) {
			return rpc.Errorf(r.code, r.next, "%v", err)
		}
	}
	return err
}
