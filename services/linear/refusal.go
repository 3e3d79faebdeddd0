package linear

import (
	"errors"

	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// refusal says to a client what the engine has refused.
func refusal(err error) error {
	for _, r := range []struct {
		of   error
		code rpc.Code
		next string
	}{
		{linear.ErrForeign, rpc.Foreign, "encrypt under the key that is sent, and for the set that is named"},
		{linear.ErrKeys, rpc.BadCiphertext, "send a public key of the set, with what products of ciphertexts take for those"},
		{linear.ErrCiphertext, rpc.BadCiphertext, "encode ciphertexts as the engine does"},
		{linear.ErrProof, rpc.BadProof, "draw another key, and send what the engine makes of it"},
		{linear.ErrNoise, rpc.Invalid, "take another set, or a smaller product"},
		{linear.ErrRange, rpc.Invalid, "take smaller entries, or another set"},
		{linear.ErrShape, rpc.Invalid, ""},
	} {
		if errors.Is(err, r.of) {
			return rpc.Errorf(r.code, r.next, "%v", err)
		}
	}
	return err
}
