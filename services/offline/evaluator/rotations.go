package evaluator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"sync/atomic"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/parallel"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Gates computes the rotations of gate evaluations under the keys of several parties at a pool of
// evaluators.
//
// The words of a rotation are equal on machines with the same kind of arithmetic. Therefore the
// pool compares responses only among evaluators of one kind, and can identify a wrong evaluator
// only if that kind is the party's own. Accumulators of another kind are equally usable: they
// encrypt the same values.
type Gates struct {
	Scheme *multikey.Scheme
	// Own computes rotations in this process on the given number of goroutines.
	Own func(ctx context.Context, workers int, list []multikey.Rotation) ([]multikey.Accumulator, error)
	// Keys returns an owner's keys, for an evaluator that does not have them.
	Keys func(context.Context, multikey.KeyID) (*multikey.Keys, error)

	pool  *Pool
	hash  [32]byte // hash of the parameter set
	kind  [32]byte // kind of arithmetic of this process
	alone atomic.Bool
}

// Rotate returns a function that computes the rotations of an evaluation, or nil if no evaluator
// can be asked: the party then computes as if there were no pool.
func (p *Pool) Rotate(g *Gates) multikey.Rotate {
	if p == nil {
		return nil
	}
	g.pool, g.hash, g.kind = p, g.Scheme.Hash(), g.Scheme.Kind()
	if _, ok := g.may(); !ok {
		p.o.Metrics.Count(metrics.EvaluatorLocal, 1, "nobody")
		return nil
	}
	return g.rotate
}

// may returns the kind of arithmetic of the evaluators that may be asked, and whether there are
// enough of them. All must have the parameter set. To recompute they must have the party's own
// kind. To compare they must have one common kind: the party's own if enough evaluators have it.
func (g *Gates) may() (kind *[32]byte, ok bool) {
	p := g.pool
	switch p.o.Check {
	case config.Trust:
		return nil, p.able(g.of(nil))
	case config.Recompute:
		//lodge:check evaluator/rotations/own-kind [as=return nil, p.able(g.of(nil))]
		//  [run=TestNobodyToRotate] an evaluator of another arithmetic is compared with the party's
		//  own result
		return &g.kind, p.able(g.of(&g.kind))
	}
	for _, k := range append([][32]byte{g.kind}, p.kinds(g.hash)...) {
		if p.able(g.of(&k)) {
			return &k, true
		}
	}
	return nil, false
}

// of returns a filter for the evaluators that compute with the parameter set in the given kind of
// arithmetic; nil accepts every kind. The pool's lock must be held when the filter is called.
func (g *Gates) of(kind *[32]byte) func(*instance) bool {
	return func(i *instance) bool {
		k, ok := i.kinds[g.hash]
		//lodge:check evaluator/rotations/one-kind [swap=*kind=>k] [run=TestNobodyToRotate]
		//  evaluators of different arithmetic are compared
		return ok && (kind == nil || k == *kind)
	}
}

// kinds returns the kinds of arithmetic that evaluators report for a set, in the order of the
// evaluators.
func (p *Pool) kinds(set [32]byte) (list [][32]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.processes {
		for _, i := range x.instances {
			if k, ok := i.kinds[set]; ok && !slices.Contains(list, k) {
				list = append(list, k)
			}
		}
	}
	return list
}

// places returns the number of requests that evaluators accept concurrently.
func (p *Pool) places(may func(*instance) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.processes {
		for _, i := range x.instances {
			if !x.excluded && i.up && may(i) {
				n += i.places
			}
		}
	}
	return n
}

// maxBatch is the maximum number of rotations in one request. A small number of rotations is spread
// over all places, since the caller waits for the slowest request.
const maxBatch = 8

// batch holds rotations with one owner's keys, and their indices in the result.
type batch struct {
	key  multikey.KeyID
	list []multikey.Rotation
	at   []int
}

// batches splits rotations into batches.
func (g *Gates) batches(list []multikey.Rotation, places int) (all []*batch) {
	size := min(max(1, len(list)/max(1, 2*places)), maxBatch)
	open := map[multikey.KeyID]*batch{}
	for i, r := range list {
		b := open[r.Key]
		if b == nil || len(b.list) == size {
			b = &batch{key: r.Key}
			open[r.Key], all = b, append(all, b)
		}
		b.list, b.at = append(b.list, r), append(b.at, i)
	}
	return all
}

// rotate computes rotations.
func (g *Gates) rotate(ctx context.Context, list []multikey.Rotation) ([]multikey.Accumulator, error) {
	out := make([]multikey.Accumulator, len(list))
	kind, _ := g.may()
	all := g.batches(list, g.pool.places(g.of(kind)))
	err := parallel.Try(ctx, len(all), len(all), func(n int) error {
		some, err := g.batch(ctx, all[n])
		for i, a := range some {
			out[all[n].at[i]] = a
		}
		return err
	})
	return out, err
}

// accumulators is an evaluator's result for a batch.
type accumulators = answerOf[[]multikey.Accumulator]

// batch computes one batch.
func (g *Gates) batch(ctx context.Context, b *batch) ([]multikey.Accumulator, error) {
	p := g.pool
	kind, ok := g.may()
	if !ok || g.alone.Load() {
		return g.compute(ctx, b, "nobody")
	}
	limited, cancel := context.WithTimeout(ctx, p.o.Limit)
	defer cancel()
	what := question[[]multikey.Accumulator]{g.of(kind), func(ctx context.Context, i *instance) ([]multikey.Accumulator, error) {
		return i.rotate(ctx, g, b, kind)
	}}
	switch p.o.Check {
	case config.Trust:
		if answers := gather(limited, p, what, 1); len(answers) == 1 {
			return answers[0].results, nil
		}
		return g.compute(ctx, b, "nobody")
	case config.Recompute:
		asked := make(chan []accumulators, 1)
		go func() { asked <- gather(limited, p, what, 1) }()
		own, err := g.compute(ctx, b, "recompute")
		if err != nil {
			cancel()
		}
		g.judge(<-asked, own, err)
		return own, err
	}
	answers := gather(limited, p, what, 2)
	switch {
	case len(answers) < 2:
		own, err := g.compute(ctx, b, "nobody")
		if *kind == g.kind {
			g.judge(answers, own, err)
		}
		return own, err
	//lodge:check evaluator/rotations/compare [swap=answers[1].results=>answers[0].results]
	//  [run=TestCheatsOfRotations] wrong rotations of one evaluator are used
	case answers[0].from.Domain != answers[1].from.Domain && same(answers[0].results, answers[1].results):
		return answers[0].results, nil
	}
	own, err := g.compute(ctx, b, "mismatch")
	//lodge:check evaluator/rotations/unnamed [swap=*kind == g.kind=>true]
	//  [run=TestRotationsOfAnotherKind] an evaluator is blamed although it computes with another
	//  kind of arithmetic
	if *kind == g.kind {
		g.judge(answers, own, err)
	} else if !g.alone.Swap(true) {
		p.o.Log.Error("two evaluators differ, and this party cannot tell which is wrong because its kind of arithmetic differs: it computes the rest itself",
			"evaluators", []string{answers[0].from.Name, answers[1].from.Name})
	}
	return own, err
}

func same(a, b []multikey.Accumulator) bool {
	return slices.EqualFunc(a, b, func(x, y multikey.Accumulator) bool { return slices.Equal(x, y) })
}

// judge excludes the evaluators whose results differ from the party's own, if the party has
// computed the batch.
func (g *Gates) judge(answers []accumulators, own []multikey.Accumulator, err error) {
	for _, a := range answers {
		//lodge:check evaluator/rotations/named [run=TestCheatsOfRotations] an evaluator with wrong
		//  rotations is not named
		if err == nil && !same(a.results, own) {
			g.pool.mismatch(a.from)
		}
	}
}

// compute computes a batch in this process.
func (g *Gates) compute(ctx context.Context, b *batch, reason string) ([]multikey.Accumulator, error) {
	n, leave, err := g.pool.own.take(ctx, len(b.list))
	if err != nil {
		return nil, err
	}
	defer leave()
	g.pool.o.Metrics.Count(metrics.EvaluatorLocal, 1, reason)
	return g.Own(ctx, n, b.list)
}

// rotate computes a batch at this evaluator.
func (i *instance) rotate(ctx context.Context, g *Gates, b *batch, kind *[32]byte) ([]multikey.Accumulator, error) {
	for range 3 { // the evaluator may evict the keys between their upload and the rotations
		before := i.uploaded.Load()
		results, missing, err := i.tryRotate(ctx, g, b, kind)
		if err != nil || !missing {
			return results, err
		}
		if err := i.putKeys(ctx, g, b.key, before); err != nil {
			return nil, err
		}
	}
	return nil, rpc.Errorf(rpc.Busy, "raise max_keys_memory of this evaluator", "the evaluator evicts the keys that were uploaded before it can use them")
}

// tryRotate sends one request.
func (i *instance) tryRotate(ctx context.Context, g *Gates, b *batch, kind *[32]byte) (_ []multikey.Accumulator, missing bool, err error) {
	w := newWatch(ctx, i.stall)
	defer w.end()
	defer func() { err = w.cause(err) }()
	q := &evaluatorv1.RotateRequest{Nonce: make([]byte, nonceSize), Params: g.Scheme.Name, ParamsHash: g.hash[:], Key: b.key[:]}
	rand.Read(q.Nonce)
	if kind != nil {
		q.Kind = kind[:]
	}
	size := 0
	for _, r := range b.list {
		q.Exponents = append(q.Exponents, g.Scheme.AppendExponents(nil, r.Exponents))
		size += g.Scheme.ExponentsSize()
	}
	stream, err := i.client.Rotate(w, q)
	if err != nil {
		return nil, false, err
	}
	i.count("sent", size)
	m, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	w.progress()
	answer, digest := m.GetAnswer(), rotateDigest(q)
	switch {
	case answer == nil:
		return nil, false, faultf("the stream ended without a response to the header")
	//lodge:check evaluator/rotations/answer [run=TestCheatsOfRotations] the answer to another
	//  request for rotations is accepted
	case string(answer.GetRequestDigest()) != string(digest[:]):
		return nil, false, faultf("the response has the digest of another request")
	case len(answer.GetMissing()) == 1 && answer.GetMissing()[0] == evaluatorv1.Material_MATERIAL_ROTATION_KEY:
		return nil, true, nil
	case len(answer.GetMissing()) > 0:
		return nil, false, faultf("the evaluator reports an unknown material as missing: %v", answer.GetMissing())
	}
	results, err := i.accumulators(w, stream, g, len(b.list))
	return results, false, err
}

// accumulators reads the results of the given number of rotations to the end of the stream. It
// returns exactly the requested results, or a fault.
func (i *instance) accumulators(w *watch, stream evaluatorv1.EvaluatorService_RotateClient, g *Gates, want int) ([]multikey.Accumulator, error) {
	list, have := make([]multikey.Accumulator, want), 0
	for {
		m, err := stream.Recv()
		switch {
		//lodge:check evaluator/rotations/complete [drop=have == want] [run=TestCheatsOfRotations]
		//  rotations can be missing
		case errors.Is(err, io.EOF) && have == want:
			return list, nil
		case errors.Is(err, io.EOF):
			return nil, faultf("the stream ended after %d of %d rotations", have, want)
		case err != nil && rpc.FromError(err).Code == rpc.TooLarge && w.Err() == nil:
			return nil, faultf("the evaluator sent a message that is too large")
		case err != nil:
			return nil, err
		}
		a := m.GetAccumulator()
		switch {
		case a == nil:
			return nil, faultf("unexpected message")
		//lodge:check evaluator/rotations/index [run=TestCheatsOfRotations] a rotation outside the
		//  request is accepted
		case int64(a.GetIndex()) >= int64(want):
			return nil, faultf("the evaluator sent rotation %d of %d", a.GetIndex(), want)
		//lodge:check evaluator/rotations/once [run=TestCheatsOfRotations] a rotation is accepted
		//  twice
		case list[a.GetIndex()] != nil:
			return nil, faultf("the evaluator sent rotation %d twice", a.GetIndex())
		}
		if list[a.GetIndex()], err = g.Scheme.DecodeAccumulator(a.GetWords()); err != nil {
			return nil, faultf("rotation %d: %v", a.GetIndex(), err)
		}
		have++
		i.count("received", len(a.GetWords()))
		w.progress()
	}
}

// putKeys uploads an owner's keys for rotations, unless another request has uploaded them since the
// given upload number.
func (i *instance) putKeys(ctx context.Context, g *Gates, id multikey.KeyID, before uint64) error {
	i.uploads.Lock()
	defer i.uploads.Unlock()
	if i.sent[id] > before {
		return nil
	}
	select {
	case g.pool.sending <- struct{}{}:
		defer func() { <-g.pool.sending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	keys, err := g.Keys(ctx, id)
	if err != nil {
		return err
	}
	first := sha256.Sum256(keys.AppendChunk(nil, 0))
	h := &evaluatorv1.PutHeader{
		Material: evaluatorv1.Material_MATERIAL_ROTATION_KEY, Digest: id[:], Params: g.Scheme.Name, ParamsHash: g.hash[:],
		KeysHeader: keys.Header(), FirstChunkDigest: first[:],
	}
	err = i.upload(ctx, h, g.Scheme.Chunks()-1, func(n int) []byte { return keys.AppendChunk(nil, n+1) })
	if err != nil {
		return err
	}
	if i.sent == nil || len(i.sent) >= maxSent {
		i.sent = map[multikey.KeyID]uint64{}
	}
	i.sent[id] = i.uploaded.Add(1)
	return nil
}

// maxSent limits the owners whose uploads an instance remembers. If an owner is forgotten, its keys
// are uploaded at most once more.
const maxSent = 1024
