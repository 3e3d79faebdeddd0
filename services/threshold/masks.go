package threshold

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	protocol "github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// sacrificed is the number of additional records that are made, opened and checked.
const sacrificed = 128

// masksRun is a session that makes masks for a quorum.
type masksRun struct {
	*Service
	spec   *jobv1.SessionSpec
	epoch  keys.Epoch
	scheme scheme
	quorum []uint32 // numbers of holders
	params decrypt.Params
}

// Memory implements session.Protocol.
func (r *masksRun) Memory() (uint64, error) {
	var err error
	if r.epoch, err = r.held(r.spec.GetEpoch(), true); err != nil {
		return 0, err
	}
	if r.epoch.Params != r.spec.GetParams() {
		return 0, rpc.Errorf(rpc.Invalid, "", "epoch %d was made with %s, not %s", r.epoch.ID, r.epoch.Params, r.spec.GetParams())
	}
	if r.scheme, err = r.schemeOf(r.epoch.Params); err != nil {
		return 0, err
	}
	if r.quorum, err = r.numbers(&r.epoch, r.spec.GetGroup()); err != nil {
		return 0, err
	}
	if r.params, err = r.scheme.params(len(r.quorum), r.spec.GetForm()); err != nil {
		return 0, err
	}
	kind := r.params.Kind
	if most := protocol.MaxCount(kind) - sacrificed; r.spec.GetCount() > uint64(most) {
		return 0, rpc.Errorf(rpc.Invalid, "submit several jobs", "%d masks; one job makes at most %d of this form", r.spec.GetCount(), most)
	}
	return uint64(protocol.MemoryBytes(kind, r.params.Parties, int(r.spec.GetCount())+sacrificed)), nil
}

// Run implements session.Protocol.
func (r *masksRun) Run(ctx context.Context, s *session.Entry) (*session.Stored, error) {
	var id round.Digest
	batch, err := session.Drive(ctx, s, plan.Threshold, terms("masks", r.scheme, r.epoch.Digest),
		func(rs round.Session, source *sample.Source) (round.Transition[*protocol.Batch], error) {
			id = rs.ID
			return protocol.Start(protocol.Config{
				Session: rs, Step: "masks", Kind: r.params.Kind, Count: int(r.spec.GetCount()), Sacrifice: sacrificed,
				Source: source, Workers: r.Workers,
			})
		})
	if err != nil {
		return nil, err
	}
	defer batch.Wipe()
	s.Enter(jobv1.JobState_JOB_STATE_STORING)
	b := stock.Batch{
		ID: session.Name(r.spec.GetRef()), Epoch: r.epoch.ID, Params: r.epoch.Params, Kind: stock.KindMasks, Form: job.FormName(r.spec.GetForm()),
		Quorum: r.quorum, Count: uint64(batch.Count()), TupleBytes: uint64(r.params.Kind.RecordSize()), Digest: batch.ID(), SessionID: id,
		Created: session.Now(),
	}
	w, err := r.Vault.NewBatch(b)
	if err != nil {
		return nil, vaulterr.RPC(err, "this batch")
	}
	defer w.Abort()
	records, err := batch.Export()
	if err != nil {
		return nil, err
	}
	defer clear(records)
	if _, err := w.Write(records); err != nil {
		return nil, err
	}
	if err := w.Commit(nil); err != nil {
		return nil, vaulterr.RPC(err, "this batch")
	}
	return LockedMasks(r.Vault, b, r.Sessions), nil
}

// LockedMasks returns a stored batch that waits for activation.
func LockedMasks(v Vault, b stock.Batch, of *session.Registry) *session.Stored {
	return &session.Stored{
		Digest: b.Digest, Epoch: b.Epoch, BatchID: b.ID, Count: b.Count, Security: Security,
		Activate:   func() error { return vaulterr.RPC(v.ActivateBatch(b.ID), "batch "+b.ID) },
		Discard:    func(reason string) error { return v.RevokeBatch(b.ID, reason) },
		OnActivate: func() { of.Metrics.Count(metrics.TuplesStored, int(b.Count), b.Kind, b.Form) },
	}
}

// offers holds masks that this party has proposed to quorums and that are not spent. Concurrent
// requests get different masks.
type offers struct {
	mu   sync.Mutex
	open map[string][]stock.Span // by batch
}

// offer finds n free masks of a class that are not offered to another request, oldest first. It
// returns fewer if there are fewer, or if the limit on spans does not allow n. The caller must call
// release when they are spent or not needed.
func (s *Service) offer(e *keys.Epoch, quorum []uint32, form jobv1.MaskForm, n int) (at []decrypt.Span, release func(), err error) {
	s.offers.mu.Lock()
	defer s.offers.mu.Unlock()
	free, err := s.Vault.FreeMasks(e.ID, quorum, job.FormName(form))
	if err != nil {
		return at, nil, err
	}
	var spans []decrypt.Span
	for _, b := range free {
		left := b.Free()
		for _, taken := range s.offers.open[b.ID] {
			left = left.AndNot(stock.Spans{taken})
		}
		for _, x := range left {
			spans = append(spans, decrypt.Span{Batch: b.ID, First: x.First, Count: x.Count})
		}
	}
	at = first(spans, uint64(n))
	var all []func()
	for _, x := range at {
		all = append(all, s.offers.take(x.Batch, stock.Span{First: x.First, Count: x.Count}))
	}
	return at, func() {
		for _, f := range all {
			f()
		}
	}, nil
}

// first returns the first n masks of spans, or as many as there are. If that needs too many spans,
// it uses the largest spans.
func first(spans []decrypt.Span, n uint64) []decrypt.Span {
	take := func() (out []decrypt.Span, rest uint64) {
		rest = n
		for _, x := range spans[:min(len(spans), decrypt.MaxSpans)] {
			if rest == 0 {
				break
			}
			x.Count = min(x.Count, rest)
			rest -= x.Count
			out = append(out, x)
		}
		return out, rest
	}
	out, rest := take()
	if rest > 0 && len(spans) > decrypt.MaxSpans {
		slices.SortStableFunc(spans, func(a, b decrypt.Span) int { return cmp.Compare(b.Count, a.Count) })
		out, _ = take()
	}
	return out
}

// take records an offer. The caller must hold o.mu.
func (o *offers) take(batch string, span stock.Span) (release func()) {
	if o.open == nil {
		o.open = map[string][]stock.Span{}
	}
	o.open[batch] = append(o.open[batch], span)
	return sync.OnceFunc(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for i, x := range o.open[batch] {
			if x == span {
				o.open[batch] = append(o.open[batch][:i], o.open[batch][i+1:]...)
				break
			}
		}
		if len(o.open[batch]) == 0 {
			delete(o.open, batch)
		}
	})
}
