package threshold

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// short returns the error for too few masks proposed by the first party.
func (r *run) short(t decrypt.Terms) *rpc.Error {
	proposed := uint64(0)
	for _, x := range t.Records {
		proposed += x.Count
	}
	next := fmt.Sprintf("request at most %d at a time (`lodge decrypt --batch`), or use another quorum; `lodge keys masks` makes more", proposed)
	if proposed == 0 {
		next = "run `lodge keys masks` to make some, or use another quorum"
	}
	return rpc.Errorf(rpc.OutOfStock, next, "the request needs masks for %d messages, but party %d, which chooses them, has %d free %s masks of this quorum and epoch %d that no other request uses",
		t.Fresh, r.header.GetQuorum()[0], proposed, job.FormName(r.form()), r.epoch.ID)
}

// drop spends masks that this party has proposed and that another party reports as spent. Otherwise
// they would be proposed again.
func (r *run) drop(at []decrypt.Span, err error) {
	var f *runner.Failure
	if r.spent || !errors.As(err, &f) || f.Check != string(rpc.MaskSpent) {
		return
	}
	for _, span := range at {
		b, err := r.Vault.Batch(span.Batch)
		for _, x := range b.Free().Clip(stock.Span{First: span.First, Count: span.Count}) {
			if err == nil {
				var shares []byte
				shares, err = r.Vault.SpendMasks(span.Batch, x)
				clear(shares)
			}
		}
		if err != nil {
			r.Sessions.Log.Warn("masks that another party has spent stay in stock", "batch", span.Batch, "error", err)
		}
	}
}

// spend takes the masks that the first party proposes out of this party's stock permanently, if
// they belong to the quorum.
func (r *run) spend(at []decrypt.Span) (*masks.Batch, error) {
	wrong := func(format string, args ...any) error {
		return rpc.Errorf(rpc.WrongQuorum, "compare the stores of the parties", format, args...)
	}
	batches := make([]stock.Batch, len(at))
	for i, x := range at {
		b, err := r.Vault.Batch(x.Batch)
		if errors.Is(err, vaulterr.ErrNotFound) || err == nil && (b.Kind != stock.KindMasks || b.Epoch != r.epoch.ID || b.Params != r.epoch.Params || b.Form != job.FormName(r.form()) || b.TupleBytes != uint64(r.params.Kind.RecordSize()) || !sameQuorum(b.Quorum, r.quorum)) {
			return nil, wrong("the proposed masks are not of this quorum, epoch and form")
		}
		if err != nil {
			return nil, err
		}
		batches[i] = b
	}
	var list []*masks.Batch
	for i, x := range at {
		records, err := r.Vault.SpendMasks(x.Batch, stock.Span{First: x.First, Count: x.Count})
		switch {
		case errors.Is(err, vaulterr.ErrRange):
			err = wrong("the proposed masks are not in batch %s", x.Batch)
		case errors.Is(err, vaulterr.ErrTaken):
			err = rpc.Errorf(rpc.MaskSpent, "repeat the request: other masks are proposed then", "masks %d to %d of batch %s are spent at party %d", x.First, x.First+x.Count-1, x.Batch, r.Sessions.Self)
		case err != nil:
			err = vaulterr.RPC(err, "batch "+x.Batch)
		}
		var b *masks.Batch
		if err == nil {
			b, err = masks.Import(r.params.Kind, batches[i].Digest, x.First, records)
		}
		if err != nil {
			for _, b := range list {
				b.Wipe()
			}
			return nil, err
		}
		list = append(list, b)
	}
	return masks.Join(list...)
}
