package bench

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"

	"github.com/lodge-mpc/lodge/engine/params"
)

// rival is Lattigo's scale-invariant BGV (BFV) with the degree and primes of a set, one special
// prime of 60 bits for key switching, and plaintexts modulo 65537. Its plaintexts are smaller than
// ours, its operations of the same kind.
type rival struct {
	params    bgv.Parameters
	encryptor *rlwe.Encryptor
	evaluator *bgv.Evaluator
	plain     *rlwe.Plaintext
	x, y      *rlwe.Ciphertext
}

func newRival(set *params.Set) (*rival, error) {
	special := prime(60)
	for special%uint64(2*set.N()) != 1 { // a larger degree than that of prime
		special -= 2 * degree
	}
	p, err := bgv.NewParametersFromLiteral(bgv.ParametersLiteral{LogN: set.LogN, Q: set.Q, P: []uint64{special}, PlaintextModulus: 65537})
	if err != nil {
		return nil, err
	}
	keys := rlwe.NewKeyGenerator(p)
	secret, public := keys.GenKeyPairNew()
	rotate := keys.GenGaloisKeyNew(p.GaloisElement(1), secret)
	r := &rival{
		params: p, encryptor: rlwe.NewEncryptor(p, public), plain: bgv.NewPlaintext(p, p.MaxLevel()),
		evaluator: bgv.NewEvaluator(p, rlwe.NewMemEvaluationKeySet(keys.GenRelinearizationKeyNew(secret), rotate), true),
	}
	if r.x, err = r.encryptor.EncryptNew(r.plain); err != nil {
		return nil, err
	}
	r.y, err = r.encryptor.EncryptNew(r.plain)
	return r, err
}

func (r *rival) encrypt() error { return r.encryptor.Encrypt(r.plain, r.x) }

func (r *rival) mul() error {
	_, err := r.evaluator.MulRelinScaleInvariantNew(r.x, r.y)
	return err
}

func (r *rival) rotate() error {
	_, err := r.evaluator.RotateColumnsNew(r.x, 1)
	return err
}
