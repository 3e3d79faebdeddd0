package evaluator

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// request returns a request that an evaluator accepts.
func (g *gates) request() *evaluatorv1.RotateRequest {
	hash := g.scheme.Hash()
	return &evaluatorv1.RotateRequest{
		Nonce: make([]byte, nonceSize), Params: g.scheme.Name, ParamsHash: hash[:], Key: slices.Clone(g.ids[0][:]),
		Exponents: [][]byte{make([]byte, g.scheme.ExponentsSize())},
	}
}

// rotateOnce sends a request and returns the first response.
func rotateOnce(ctx context.Context, c evaluatorv1.EvaluatorServiceClient, q *evaluatorv1.RotateRequest) (answer *evaluatorv1.Answer, err error) {
	stream, err := c.Rotate(ctx, q)
	if err != nil {
		return nil, err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return answer, nil
		}
		if err != nil {
			return answer, err
		}
		if m.GetAnswer() != nil {
			answer = m.GetAnswer()
		}
	}
}

// An evaluator rejects requests that it cannot compute, with the reason.
func TestRotationsAreRefused(t *testing.T) {
	g := newGates(t, gatesSet, 1)
	f, e := g.configure("e0", "site-a")
	f.MaxMemory = config.Bytes(g.scheme.RotationMemory() + g.scheme.AccumulatorSize()*2)
	g.serve(f)
	p := g.pool(config.Trust, 1, e)
	client := g.dial(e, g.credentials(partyID))
	high := make([]byte, g.scheme.ExponentsSize())
	high[1] = byte(2 * g.scheme.N() >> 8)
	products := g.world.under.Scheme.Set.Hash()
	for what, c := range map[string]struct {
		change func(q *evaluatorv1.RotateRequest)
		code   rpc.Code
	}{
		"no nonce":                      {func(q *evaluatorv1.RotateRequest) { q.Nonce = nil }, rpc.Invalid},
		"a long nonce":                  {func(q *evaluatorv1.RotateRequest) { q.Nonce = make([]byte, 17) }, rpc.Invalid},
		"no key":                        {func(q *evaluatorv1.RotateRequest) { q.Key = nil }, rpc.Invalid},
		"a short key identifier":        {func(q *evaluatorv1.RotateRequest) { q.Key = q.Key[1:] }, rpc.Invalid},
		"a short kind":                  {func(q *evaluatorv1.RotateRequest) { q.Kind = make([]byte, 31) }, rpc.Invalid},
		"another set":                   {func(q *evaluatorv1.RotateRequest) { q.Params = "M11-4" }, rpc.PolicyRefused},
		"another hash":                  {func(q *evaluatorv1.RotateRequest) { q.ParamsHash = make([]byte, 32) }, rpc.PinMismatch},
		"a set for products":            {func(q *evaluatorv1.RotateRequest) { q.Params, q.ParamsHash = testSet, products[:] }, rpc.Invalid},
		"no rotations":                  {func(q *evaluatorv1.RotateRequest) { q.Exponents = nil }, rpc.Invalid},
		"too many rotations":            {func(q *evaluatorv1.RotateRequest) { q.Exponents = slices.Repeat(q.Exponents, maxRotations+1) }, rpc.Invalid},
		"more than a request":           {func(q *evaluatorv1.RotateRequest) { q.Exponents = slices.Repeat(q.Exponents, 5000) }, rpc.TooLarge},
		"too few exponents":             {func(q *evaluatorv1.RotateRequest) { q.Exponents[0] = q.Exponents[0][2:] }, rpc.Invalid},
		"too many exponents":            {func(q *evaluatorv1.RotateRequest) { q.Exponents[0] = append(q.Exponents[0], 0, 0) }, rpc.Invalid},
		"half an exponent":              {func(q *evaluatorv1.RotateRequest) { q.Exponents[0] = q.Exponents[0][1:] }, rpc.Invalid},
		"an exponent above the maximum": {func(q *evaluatorv1.RotateRequest) { q.Exponents[0] = high }, rpc.Invalid},
	} {
		q := g.request()
		c.change(q)
		_, err := rotateOnce(g.context(), client, q)
		refused(t, what, err, c.code)
	}
	a, err := rotateOnce(g.context(), client, g.request())
	if err != nil || len(a.GetMissing()) != 1 {
		t.Errorf("keys that were not uploaded are not reported as missing: %v", err)
	}
	g.computes(p, 1)
	many := g.request()
	many.Exponents = slices.Repeat(many.Exponents, maxRotations)
	_, err = rotateOnce(g.context(), client, many)
	refused(t, "more than the memory limit", err, rpc.TooLarge)
	if a, err := rotateOnce(g.context(), client, g.request()); err != nil || len(a.GetMissing()) > 0 {
		t.Errorf("a valid request after the rejected ones: %v", err)
	}
}

// An evaluator does not keep rotation keys that do not match their identifier.
func TestPutRotationKeys(t *testing.T) {
	g := newGates(t, gatesSet, 2)
	e := g.start("e0", "site-a")
	g.pool(config.Trust, 1, e)
	client, k := g.dial(e, g.credentials(partyID)), g.keys[g.ids[0]]
	hash, first := g.scheme.Hash(), k.ChunkDigests()[0]
	for what, c := range map[string]struct {
		change func(h *evaluatorv1.PutHeader)
		chunk  []byte
		code   rpc.Code
	}{
		"another owner's name":    {func(h *evaluatorv1.PutHeader) { h.Digest = g.ids[1][:] }, nil, rpc.Invalid},
		"another owner's header":  {func(h *evaluatorv1.PutHeader) { h.KeysHeader = g.keys[g.ids[1]].Header() }, nil, rpc.Invalid},
		"no header":               {func(h *evaluatorv1.PutHeader) { h.KeysHeader = nil }, nil, rpc.Invalid},
		"no first digest":         {func(h *evaluatorv1.PutHeader) { h.FirstChunkDigest = nil }, nil, rpc.Invalid},
		"another first digest":    {func(h *evaluatorv1.PutHeader) { h.FirstChunkDigest = make([]byte, 32) }, nil, rpc.Invalid},
		"a field":                 {func(h *evaluatorv1.PutHeader) { h.Field = testField }, nil, rpc.Invalid},
		"a dimension":             {func(h *evaluatorv1.PutHeader) { h.Dim = 1 }, nil, rpc.Invalid},
		"as the keys of an epoch": {func(h *evaluatorv1.PutHeader) { h.Material = evaluatorv1.Material_MATERIAL_KEYS }, nil, rpc.Invalid},
		"another set":             {func(h *evaluatorv1.PutHeader) { h.Params = "M11-4" }, nil, rpc.PolicyRefused},
		"another hash":            {func(h *evaluatorv1.PutHeader) { h.ParamsHash = make([]byte, 32) }, nil, rpc.PinMismatch},
		"a set for products": {func(h *evaluatorv1.PutHeader) {
			products := g.world.under.Scheme.Set.Hash()
			h.Params, h.ParamsHash = testSet, products[:]
		}, nil, rpc.Invalid},
		"a short chunk":         {nil, k.AppendChunk(nil, 1)[1:], rpc.Invalid},
		"a long chunk":          {nil, append(k.AppendChunk(nil, 1), 0), rpc.Invalid},
		"another owner's chunk": {nil, g.keys[g.ids[1]].AppendChunk(nil, 1), rpc.Invalid},
		"the first chunk":       {nil, k.AppendChunk(nil, 0), rpc.Invalid},
	} {
		h := &evaluatorv1.PutHeader{
			Material: evaluatorv1.Material_MATERIAL_ROTATION_KEY, Digest: g.ids[0][:], Params: g.scheme.Name, ParamsHash: hash[:],
			KeysHeader: k.Header(), FirstChunkDigest: first[:],
		}
		if c.change != nil {
			c.change(h)
		}
		if c.chunk == nil {
			c.chunk = k.AppendChunk(nil, 1)
		}
		stream, err := client.Put(g.context())
		must(t, err)
		if stream.Send(&evaluatorv1.PutRequest{Header: h}) == nil {
			stream.Send(&evaluatorv1.PutRequest{Frame: c.chunk})
		}
		_, err = stream.CloseAndRecv()
		refused(t, what, err, c.code)
	}
	if a, err := rotateOnce(g.context(), client, g.request()); err != nil || len(a.GetMissing()) != 1 {
		t.Errorf("rejected keys were kept: %v", err)
	}
}
