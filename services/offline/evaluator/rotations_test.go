package evaluator

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/multikey"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// With every check, gates whose rotations are computed at evaluators have the party's own words,
// and each evaluator receives the keys of an owner once.
func TestRotationsAreThePartysOwn(t *testing.T) {
	g := newGates(t, gatesSet, 3)
	a, b := g.start("e0", "site-a"), g.start("e1", "site-b")
	for check, own := range map[string]bool{config.Compare: false, config.Trust: false, config.Recompute: true} {
		before := g.value("lodge_evaluator_local_total", "recompute") + g.value("lodge_evaluator_local_total", "nobody")
		p := g.pool(check, 2, a, b)
		for _, n := range []int{1, 7, 50} {
			g.computes(p, n)
		}
		after := g.value("lodge_evaluator_local_total", "recompute") + g.value("lodge_evaluator_local_total", "nobody")
		if after > before != own {
			t.Errorf("%s: the party computed %v batches itself", check, after-before)
		}
	}
	if len(g.blamed()) > 0 || g.loads != 2*3 {
		t.Errorf("%v were excluded, and keys were sent %d times\n%s", g.blamed(), g.loads, g.log.String())
	}
	for _, name := range []string{"e0", "e1"} {
		if g.value("lodge_evaluator_requests_total", name, "ok") == 0 || g.value("lodge_evaluator_bytes_total", name, "received") == 0 {
			t.Errorf("%s received no request", name)
		}
	}
}

// If an evaluator has memory for only one owner's keys, keys are uploaded repeatedly, without other
// effects.
func TestRotationKeysMakeRoom(t *testing.T) {
	g := newGates(t, gatesSet, 3)
	f, e := g.configure("e0", "site-a")
	f.MaxKeysMemory, f.MaxConcurrent = config.Bytes(g.scheme.RotationKeyMemory()), 1
	g.serve(f)
	p := g.pool(config.Trust, 1, e)
	for range 3 {
		g.computes(p, 3)
	}
	if g.loads < 3 || g.value("lodge_evaluator_requests_total", "e0", "ok") == 0 || len(g.blamed()) > 0 {
		t.Errorf("keys were sent %d times, and %v were excluded\n%s", g.loads, g.blamed(), g.log.String())
	}
	small, _ := g.configure("e1", "site-a")
	small.MaxKeysMemory = config.Bytes(g.scheme.RotationKeyMemory() - 1)
	s := NewService(small, "test", nil)
	_, err := s.cache.reserve(place{}, int64(g.scheme.RotationKeyMemory()))
	refused(t, "keys above the memory limit", err, rpc.TooLarge)
}

// Without enough evaluators that have the parameter set, or that share a kind of arithmetic, the
// party computes itself.
func TestNobodyToRotate(t *testing.T) {
	g := newGates(t, gatesSet, 2)
	none := g.world.start("e0", "site-a") // only for products
	for _, check := range []string{config.Compare, config.Trust, config.Recompute} {
		if p := g.pool(check, 2, none, g.start("f"+check, "site-b")); p.Rotate(g.rotations()) != nil != (check != config.Compare) {
			t.Errorf("%s: an evaluator without the set counts, or an evaluator with the set does not", check)
		}
	}
	if (*Pool)(nil).Rotate(g.rotations()) != nil {
		t.Error("a pool without evaluators")
	}
	other := otherKind(0)
	for check, want := range map[string]bool{config.Compare: false, config.Recompute: false, config.Trust: true} {
		list := []config.Evaluator{g.start("o"+check, "site-b", other)}
		if check == config.Compare {
			list = append(list, g.start("own", "site-a"))
		}
		if p := g.pool(check, len(list), list...); p.Rotate(g.rotations()) != nil != want {
			t.Errorf("%s: an evaluator of another kind is wrongly asked, or wrongly not asked", check)
		}
	}
}

// Killing an evaluator during an evaluation only costs time.
func TestAnEvaluatorIsKilledAsItRotates(t *testing.T) {
	g := newGates(t, gatesSet, 2)
	f, e := g.configure("e0", "site-a")
	cmd := g.processOf(f)
	p := g.pool(config.Compare, 2, e, g.start("e1", "site-b"))
	rotate := p.Rotate(g.rotations())
	g.computesWith(rotate, 3)
	must(t, cmd.Process.Signal(syscall.SIGKILL))
	g.computesWith(rotate, 20)
	g.until("the evaluator counts as down", func() bool { return g.value("lodge_evaluator_up", "e0") == 0 && p.Rotate(g.rotations()) == nil })
	g.computesWith(rotate, 3)
	if len(g.blamed()) > 0 || g.value("lodge_evaluator_local_total", "nobody") == 0 {
		t.Errorf("%v were excluded\n%s", g.blamed(), g.log.String())
	}
}

// When an evaluation ends, its waiting requests end.
func TestAnEndOfTheEvaluationEndsTheWaiting(t *testing.T) {
	g := newGates(t, gatesSet, 2)
	asked := make(chan struct{}, 100)
	p := g.pool(config.Trust, 1, g.start("e0", "site-a", rotating(func(ctx context.Context, m *rotated) []*rotated {
		if m.GetAccumulator() != nil {
			asked <- struct{}{}
			<-ctx.Done()
		}
		return []*rotated{m}
	})))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if err := g.own.RunWith(ctx, 1, g.tasks(2), p.Rotate(g.rotations())); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(g.blamed()) > 0 {
		t.Errorf("%v were excluded", g.blamed())
	}
}

type rotated = evaluatorv1.RotateResponse

// rotating changes the responses of an evaluator to rotation requests, message by message.
func rotating(cheat func(ctx context.Context, m *rotated) []*rotated) rpc.Inner {
	return rpc.Inner{
		Unary: func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			return h(ctx, q)
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			return h(srv, &rotatingStream{ServerStream: ss, cheat: cheat})
		},
	}
}

type rotatingStream struct {
	grpc.ServerStream
	cheat func(ctx context.Context, m *rotated) []*rotated
}

func (r *rotatingStream) SendMsg(m any) error {
	one, ok := m.(*rotated)
	if !ok {
		return r.ServerStream.SendMsg(m)
	}
	for _, x := range r.cheat(r.Context(), proto.CloneOf(one)) {
		if err := r.ServerStream.SendMsg(x); err != nil {
			return err
		}
	}
	return nil
}

// otherKind simulates an evaluator of another kind of arithmetic, whose words differ in these low
// bits.
func otherKind(bits byte) rpc.Inner {
	in := rotating(nil)
	kind := make([]byte, 32)
	in.Unary = func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		m, err := h(ctx, q)
		if c, ok := m.(*evaluatorv1.GetCapacityResponse); ok {
			for _, a := range c.Arithmetic {
				a.Kind = kind
			}
		}
		return m, err
	}
	in.Stream = func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		return h(srv, &ofOtherKind{ss, bits, nil})
	}
	return in
}

type ofOtherKind struct {
	grpc.ServerStream
	bits   byte
	digest []byte
}

func (o *ofOtherKind) RecvMsg(m any) error {
	err := o.ServerStream.RecvMsg(m)
	if q, ok := m.(*evaluatorv1.RotateRequest); ok && err == nil {
		d := rotateDigest(q)
		o.digest, q.Kind = d[:], nil
	}
	return err
}

func (o *ofOtherKind) SendMsg(m any) error {
	if r, ok := m.(*rotated); ok {
		if a := r.GetAnswer(); a != nil {
			a.RequestDigest = o.digest
		}
		if a := r.GetAccumulator(); a != nil {
			a.Words[0] ^= o.bits
		}
	}
	return o.ServerStream.SendMsg(m)
}

// Evaluators of another kind are compared with each other, and results on which they agree are
// used. If they differ, no evaluator is excluded and the party computes the rest itself.
func TestRotationsOfAnotherKind(t *testing.T) {
	g := newGates(t, gatesSet, 2)
	agree := g.pool(config.Compare, 2, g.start("e0", "site-a", otherKind(1)), g.start("e1", "site-b", otherKind(1)))
	tasks := g.tasks(20)
	must(t, g.own.RunWith(context.Background(), 2, tasks, agree.Rotate(g.rotations())))
	if g.value("lodge_evaluator_local_total", "nobody")+g.value("lodge_evaluator_local_total", "mismatch") > 0 {
		t.Error("the party computed results on which two evaluators agreed")
	}
	differ := g.pool(config.Compare, 2, g.start("f0", "site-a", otherKind(1)), g.start("f1", "site-b", otherKind(2)))
	rotations := g.rotations()
	rotate := differ.Rotate(rotations)
	g.computesWith(rotate, 5)
	asked := g.value("lodge_evaluator_requests_total", "f0", "ok")
	g.computesWith(rotate, 5)
	if g.value("lodge_evaluator_requests_total", "f0", "ok") != asked || !rotations.alone.Load() {
		t.Error("evaluators that cannot be judged are asked again in the same evaluation")
	}
	if g.value("lodge_evaluator_local_total", "mismatch") == 0 || len(g.blamed()) > 0 {
		t.Errorf("%v were excluded\n%s", g.blamed(), g.log.String())
	}
	// An evaluator whose kind differs from the kind that it reported is not asked as one of that
	// kind.
	f, e := g.configure("e9", "site-a")
	g.serve(f)
	g.pool(config.Trust, 1, e)
	q := g.request()
	q.Kind = make([]byte, 32)
	_, err := rotateOnce(g.context(), g.dial(e, g.credentials(partyID)), q)
	refused(t, "another kind", err, rpc.PinMismatch)
}

// Whatever one evaluator does, the party uses its own result, names the evaluator, and continues.
func TestCheatsOfRotations(t *testing.T) {
	accumulators := func(f func(a *evaluatorv1.Accumulator)) func(context.Context, *rotated) []*rotated {
		return func(_ context.Context, m *rotated) []*rotated {
			if a := m.GetAccumulator(); a != nil {
				f(a)
			}
			return []*rotated{m}
		}
	}
	for name, c := range map[string]struct {
		cheat   func(context.Context, *rotated) []*rotated
		outcome string
	}{
		"the first bit is wrong":            {accumulators(func(a *evaluatorv1.Accumulator) { a.Words[0] ^= 1 }), "ok"},
		"the last bit is wrong":             {accumulators(func(a *evaluatorv1.Accumulator) { a.Words[len(a.Words)-1] ^= 128 }), "ok"},
		"all words are zero":                {accumulators(func(a *evaluatorv1.Accumulator) { clear(a.Words) }), "ok"},
		"a byte is missing":                 {accumulators(func(a *evaluatorv1.Accumulator) { a.Words = a.Words[1:] }), "faulty"},
		"a byte is added":                   {accumulators(func(a *evaluatorv1.Accumulator) { a.Words = append(a.Words, 0) }), "faulty"},
		"no words":                          {accumulators(func(a *evaluatorv1.Accumulator) { a.Words = nil }), "faulty"},
		"more words than expected":          {accumulators(func(a *evaluatorv1.Accumulator) { a.Words = make([]byte, 1<<20) }), "faulty"},
		"more than fits in a message":       {accumulators(func(a *evaluatorv1.Accumulator) { a.Words = make([]byte, 1<<23) }), ""},
		"a rotation that was not requested": {accumulators(func(a *evaluatorv1.Accumulator) { a.Index += 40 }), "faulty"},
		"a rotation with a high index":      {accumulators(func(a *evaluatorv1.Accumulator) { a.Index = 1<<32 - 1 }), "faulty"},
		"every rotation has index 0":        {accumulators(func(a *evaluatorv1.Accumulator) { a.Index = 0 }), "faulty"},
		"every rotation twice":              {func(_ context.Context, m *rotated) []*rotated { return []*rotated{m, m} }, "faulty"},
		"no rotation": {func(_ context.Context, m *rotated) []*rotated {
			if m.GetAccumulator() != nil {
				return nil
			}
			return []*rotated{m}
		}, "faulty"},
		"no answer": {func(_ context.Context, m *rotated) []*rotated {
			if m.GetAnswer() != nil {
				return nil
			}
			return []*rotated{m}
		}, "faulty"},
		"an empty message": {func(context.Context, *rotated) []*rotated { return []*rotated{{}} }, "faulty"},
		"a response to another request": {func(_ context.Context, m *rotated) []*rotated {
			if m.GetAnswer() != nil {
				m.GetAnswer().RequestDigest[0]++
			}
			return []*rotated{m}
		}, "faulty"},
		"it lacks a MAC key": {func(_ context.Context, m *rotated) []*rotated {
			if m.GetAnswer() != nil {
				m.GetAnswer().Missing = []evaluatorv1.Material{evaluatorv1.Material_MATERIAL_MAC_KEY}
			}
			return []*rotated{m}
		}, "faulty"},
	} {
		checks := []string{config.Compare}
		if c.outcome == "ok" {
			checks = append(checks, config.Recompute)
		}
		for _, check := range checks {
			t.Run(name+", "+check, func(t *testing.T) {
				t.Parallel()
				g := newGates(t, gatesSet, 2)
				list := []config.Evaluator{g.start("e1", "site-b", rotating(c.cheat))}
				if check == config.Compare {
					list = append(list, g.start("e0", "site-a"))
				}
				p := g.poolWith(Options{Check: check, Processes: list, Stall: longStall, Limit: longLimit}, len(list))
				rotate := p.Rotate(g.rotations())
				g.computesWith(rotate, 16) // in batches of several
				if c.outcome == "" {       // the evaluator's own library may refuse to send it
					return
				}
				if got := g.blamed(); !slices.Equal(got, []string{"e1"}) {
					t.Errorf("%v were excluded\n%s", got, g.log.String())
				}
				if g.value("lodge_evaluator_requests_total", "e1", c.outcome) == 0 || p.Rotate(g.rotations()) != nil {
					t.Errorf("no request ended with %q, or the evaluator was asked again\n%s", c.outcome, g.log.String())
				}
				g.computesWith(rotate, 2)
			})
		}
	}
}

// The party uses the results of trusted evaluators, but rejects responses that no correct evaluator
// sends.
func TestTrustInRotations(t *testing.T) {
	g := newGates(t, gatesSet, 2)
	wrong := func(change func(*evaluatorv1.Accumulator)) rpc.Inner {
		return rotating(func(_ context.Context, m *rotated) []*rotated {
			if m.GetAccumulator() != nil {
				change(m.GetAccumulator())
			}
			return []*rotated{m}
		})
	}
	p := g.pool(config.Trust, 1, g.start("e0", "site-a", wrong(func(a *evaluatorv1.Accumulator) { clear(a.Words) })))
	tasks, want := g.tasks(1), g.tasks(1)
	must(t, g.own.Run(context.Background(), 1, want))
	must(t, g.own.RunWith(context.Background(), 1, tasks, p.Rotate(g.rotations())))
	if tasks[0].Dst.Equal(want[0].Dst) || len(g.blamed()) > 0 {
		t.Error("the results of a trusted evaluator were not used")
	}
	p = g.pool(config.Trust, 1, g.start("e1", "site-a", wrong(func(a *evaluatorv1.Accumulator) { a.Words = nil })))
	g.computes(p, 1)
	if !slices.Equal(g.blamed(), []string{"e1"}) {
		t.Errorf("%v were excluded", g.blamed())
	}
}

// Batches contain every rotation exactly once and only rotations of one owner, and are small enough
// to use all places.
func TestBatches(t *testing.T) {
	g := new(Gates)
	for _, c := range []struct{ rotations, places, most int }{{1, 3, 1}, {6, 3, 1}, {12, 3, 2}, {64, 3, 8}, {64, 100, 1}, {64, 0, 8}} {
		list := make([]multikey.Rotation, c.rotations)
		for i := range list {
			list[i].Key[0] = byte(i % 3)
		}
		seen := map[int]bool{}
		for _, b := range g.batches(list, c.places) {
			if len(b.list) > c.most || len(b.list) != len(b.at) {
				t.Errorf("%v: a batch of %d", c, len(b.list))
			}
			for _, i := range b.at {
				if seen[i] || list[i].Key != b.key {
					t.Errorf("%v: rotation %d appears twice, or in a batch of another owner", c, i)
				}
				seen[i] = true
			}
		}
		if len(seen) != c.rotations {
			t.Errorf("%v: %d rotations", c, len(seen))
		}
	}
	if n := len(kindsOf(slices.Repeat([]*evaluatorv1.Arithmetic{{ParamsHash: make([]byte, 32), Kind: make([]byte, 31)}, nil}, 100))); n != 0 {
		t.Errorf("%d kinds from invalid reports", n)
	}
	q := (&gates{scheme: newGates(t, gatesSet, 1).scheme, ids: make([]multikey.KeyID, 1)}).request()
	if n := q.ProtoReflect().Descriptor().Fields().Len(); n != 6 {
		t.Errorf("a request has %d fields, but the digest binds 6", n)
	}
	seen := map[[32]byte]bool{rotateDigest(q): true}
	for _, change := range []func(){
		func() { q.Nonce[0]++ }, func() { q.Params += "x" }, func() { q.ParamsHash[0]++ }, func() { q.Key[0]++ },
		func() { q.Kind = make([]byte, 32) }, func() { q.Exponents[0][0]++ }, func() { q.Exponents = append(q.Exponents, nil) },
	} {
		change()
		if d := rotateDigest(q); seen[d] {
			t.Error("the digest does not bind a field")
		} else {
			seen[d] = true
		}
	}
}
