package evaluator

import (
	"time"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// maxRotations limits the rotations of one request.
const maxRotations = 32

// rotatorsOf prepares the pinned parameter sets for multi-key ciphertexts. Each rotator determines
// its kind of arithmetic.
func rotatorsOf(pins []config.ParamsPin) map[string]*multikey.Rotator {
	all := map[string]*multikey.Rotator{}
	for _, pin := range pins {
		if set, err := multikey.Lookup(pin.Name); err == nil {
			if r, err := multikey.NewRotator(set); err == nil {
				all[pin.Name] = r
			}
		}
	}
	return all
}

// arithmetic returns the kind of arithmetic of each parameter set.
func (s *Service) arithmetic() (list []*evaluatorv1.Arithmetic) {
	for _, pin := range s.params {
		if r := s.rotators[pin.Name]; r != nil {
			hash, kind := pin.Sum(), r.Kind()
			list = append(list, &evaluatorv1.Arithmetic{ParamsHash: hash[:], Kind: kind[:]})
		}
	}
	return list
}

// rotator returns the rotator of a pinned set.
func (s *Service) rotator(name string, hash []byte) (*multikey.Rotator, error) {
	if err := s.pinned(name, hash); err != nil {
		return nil, err
	}
	r := s.rotators[name]
	if r == nil {
		return nil, rpc.Errorf(rpc.Invalid, "`lodge params list` lists the parameter sets for multi-key ciphertexts", "parameter set %s is not for multi-key ciphertexts", name)
	}
	return r, nil
}

// rotationKey returns the memory that the evaluator keeps for an owner's keys, and a function that
// reads them.
func (s *Service) rotationKey(h *evaluatorv1.PutHeader, frames func() ([]byte, error)) (int64, func() (any, round.Digest, error), error) {
	r, err := s.rotator(h.GetParams(), h.GetParamsHash())
	if err != nil {
		return 0, nil, err
	}
	if h.GetField() != "" || h.GetDim() != 0 {
		return 0, nil, rpc.Errorf(rpc.Invalid, "", "multi-key keys with a field or a dimension")
	}
	if err := checkDigest("digest of the first chunk", h.GetFirstChunkDigest()); err != nil {
		return 0, nil, err
	}
	return int64(r.Set().RotationKeyMemory()), func() (any, round.Digest, error) {
		k, err := r.Receive(multikey.KeyID(h.GetDigest()), h.GetKeysHeader(), [32]byte(h.GetFirstChunkDigest()), s.workers, frames)
		return k, round.Digest(h.GetDigest()), err // Receive has checked the digest
	}, nil
}

// rotations validates a request.
func (s *Service) rotations(q *evaluatorv1.RotateRequest) (r *multikey.Rotator, list [][]uint16, err error) {
	if len(q.GetNonce()) != nonceSize {
		return nil, nil, rpc.Errorf(rpc.Invalid, "", "a nonce of %d bytes, not %d", len(q.GetNonce()), nonceSize)
	}
	if err := checkDigest("name of keys", q.GetKey()); err != nil {
		return nil, nil, err
	}
	if r, err = s.rotator(q.GetParams(), q.GetParamsHash()); err != nil {
		return nil, nil, err
	}
	kind := r.Kind()
	if n := len(q.GetKind()); n != 0 && n != len(kind) {
		return nil, nil, rpc.Errorf(rpc.Invalid, "", "a kind of arithmetic of %d bytes, not %d", n, len(kind))
		//lodge:check evaluator/rotations/kind [run=TestRotationsOfAnotherKind] an evaluator computes in
		//  another arithmetic than requested
	} else if n > 0 && string(q.GetKind()) != string(kind[:]) {
		return nil, nil, rpc.Errorf(rpc.PinMismatch, "request the capacity again", "this evaluator has another kind of arithmetic")
	}
	//lodge:check evaluator/rotations/number [drop=n > maxRotations] [run=TestRotationsAreRefused] a
	//  request has any number of rotations
	if n := len(q.GetExponents()); n < 1 || n > maxRotations {
		return nil, nil, rpc.Errorf(rpc.Invalid, "", "%d rotations (supported: 1 to %d)", n, maxRotations)
	}
	for i, b := range q.GetExponents() {
		x, err := r.Set().DecodeExponents(b)
		if err != nil {
			return nil, nil, rpc.Errorf(rpc.Invalid, "", "rotation %d: %v", i, err)
		}
		list = append(list, x)
	}
	return r, list, nil
}

// Rotate implements the service.
func (s *Service) Rotate(q *evaluatorv1.RotateRequest, stream evaluatorv1.EvaluatorService_RotateServer) (err error) {
	began := time.Now()
	defer func() { s.metrics.Observe(metrics.EvaluatorServed, time.Since(began), outcomeOf(err)) }()
	r, list, err := s.rotations(q)
	if err != nil {
		return err
	}
	digest := rotateDigest(q)
	answer := &evaluatorv1.Answer{RequestDigest: digest[:]}
	say := func() error {
		return stream.Send(&evaluatorv1.RotateResponse{Kind: &evaluatorv1.RotateResponse_Answer{Answer: answer}})
	}
	key, leaveKey, ok := s.cache.take(place{evaluatorv1.Material_MATERIAL_ROTATION_KEY, q.GetParams(), "", round.Digest(q.GetKey())})
	if !ok {
		answer.Missing = []evaluatorv1.Material{evaluatorv1.Material_MATERIAL_ROTATION_KEY}
		return say()
	}
	defer leaveKey()
	leave, err := s.budget.take(int64(len(list)*r.Set().AccumulatorSize() + min(s.workers, len(list))*r.Set().RotationMemory()))
	if err != nil {
		return err
	}
	defer leave()
	if err := say(); err != nil {
		return err
	}
	return r.Rotate(stream.Context(), s.workers, key.(*multikey.RotationKey), list, func(i int, a multikey.Accumulator) error {
		return stream.Send(&evaluatorv1.RotateResponse{Kind: &evaluatorv1.RotateResponse_Accumulator{Accumulator: &evaluatorv1.Accumulator{
			Index: uint32(i), Words: multikey.AppendAccumulator(make([]byte, 0, r.Set().AccumulatorSize()), a),
		}}})
	})
}
