package tuples

import (
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// Lists name the quorum of masks by the places that its parties have now, and without a member that
// has left nothing of them is free. They are nobody's, so everybody who may list batches sees them.
func TestMasksAreListed(t *testing.T) {
	in, err := store.OpenDir(t.TempDir())
	must(t, err)
	v, err := vault.OpenAt(in, &seal.Key{}, time.Now)
	must(t, err)
	defer v.Close()
	key := func(name string) []byte { sum := sha256.Sum256([]byte(name)); return sum[:] }
	pin := func(self int, names ...string) {
		t.Helper()
		r := keys.Roster{Hash: sha256.Sum256([]byte(names[0] + names[1])), Self: self}
		for _, n := range names {
			r.Keys = append(r.Keys, key(n))
		}
		must(t, v.Pin(r))
	}
	pin(2, "a", "b", "c", "d")
	e, err := v.NewEpoch(keys.Epoch{ID: 1, Purpose: keys.PurposeThreshold, Threshold: 1, Members: [][]byte{key("a"), key("d"), key("c")}})
	must(t, err)
	must(t, e.Commit())
	must(t, v.ActivateEpoch(1))
	w, err := v.NewBatch(stock.Batch{ID: "m", Epoch: 1, Params: "params", Kind: stock.KindMasks, Form: stock.MasksPaper, Quorum: []uint32{1, 2}, Count: 4, TupleBytes: 2})
	must(t, err)
	_, err = w.Write(make([]byte, 8))
	must(t, err)
	must(t, w.Commit(nil))
	must(t, v.ActivateBatch("m"))
	_, err = v.SpendMasks("m", stock.Span{First: 1, Count: 1})
	must(t, err)

	s := &Service{Config: Config{Vault: v}}
	for _, c := range []struct {
		self     int
		roster   []string
		quorum   []uint32
		stranded bool
	}{
		{2, []string{"a", "b", "c", "d"}, []uint32{2, 3}, false},
		{1, []string{"d", "c", "a", "b"}, []uint32{0, 1}, false},
		{2, []string{"a", "x", "c", "b"}, []uint32{2}, true},
	} {
		pin(c.self, c.roster...)
		for _, p := range []rpc.Principal{alice, {Role: rpc.Client}, {Role: rpc.Coordinator}} {
			rest := page{records: 10, bytes: 1 << 20, looks: 10}
			r, err := s.batches(t.Context(), p, &tuplesv1.ListBatchesRequest{}, &rest)
			must(t, err)
			if len(r.GetBatches()) != 1 {
				t.Fatalf("%+v sees %v", p, r)
			}
			b := r.GetBatches()[0]
			x := b.GetClass()
			if x.GetKind() != jobv1.Kind_KIND_MASKS || x.GetForm() != jobv1.MaskForm_MASK_FORM_PAPER || !slices.Equal(x.GetQuorum(), c.quorum) ||
				b.GetStranded() != c.stranded || len(b.GetFree()) != map[bool]int{false: 2}[c.stranded] || b.GetErased() != 1 {
				t.Errorf("under %q: %v", c.roster, b)
			}
		}
	}
}
