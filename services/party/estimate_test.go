package party

import (
	"testing"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
)

// Every party's estimates match the session's results and traffic.
func TestEstimates(t *testing.T) {
	n := newNetwork(t, func(_ int, f *config.PartyFile) { f.Policy.AllowNoSacrifice = true })
	n.keys(1, forKeys)
	estimate := func(x *node, s *jobv1.SessionSpec) *triplesv1.EstimateResponse {
		t.Helper()
		e, err := triplesv1.NewTriplesServiceClient(x.coordinator).Estimate(n.context(), &triplesv1.EstimateRequest{Spec: s})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)) // makes the MAC key, of which estimates say nothing
	for _, kind := range []jobv1.Kind{
		jobv1.Kind_KIND_SCALAR, jobv1.Kind_KIND_MATRIX, jobv1.Kind_KIND_SQUARE, jobv1.Kind_KIND_RANDOM, jobv1.Kind_KIND_BIT,
		jobv1.Kind_KIND_INVERSE, jobv1.Kind_KIND_INPUT, jobv1.Kind_KIND_CONVOLUTION,
	} {
		s := n.spec(jobv1.Kind_KIND_SCALAR, 1)
		if kind == jobv1.Kind_KIND_MATRIX || kind == jobv1.Kind_KIND_CONVOLUTION {
			s = n.spec(kind, 1)
		}
		s.Kind = kind
		s.NoSacrifice = kind == jobv1.Kind_KIND_SQUARE
		all := n.run(s)
		most, bytes := uint64(0), uint64(0)
		for i, st := range all {
			e := estimate(n.nodes[i], s)
			if dropped := e.GetTuples() - st.GetCount(); dropped > 3 { // of bits and inverses those with a product of 0
				t.Errorf("%s at party %d: %d tuples, %d estimated", kind, i, st.GetCount(), e.GetTuples())
			}
			if e.GetMemoryBytes() == 0 || e.GetComputeSeconds() <= 0 || e.GetDim() != s.GetDim() {
				t.Errorf("%s at party %d: %v", kind, i, e)
			}
			most = max(most, st.GetProgress().GetSentBytes())
			if b, err := n.nodes[i].party.vault.Batch(st.GetBatchId()); err != nil {
				t.Error(err)
			} else {
				bytes = max(bytes, b.TupleBytes)
			}
		}
		e := estimate(n.nodes[0], s)
		if e.GetTupleBytes() != bytes {
			t.Errorf("%s: %d bytes of a tuple, %d estimated", kind, bytes, e.GetTupleBytes())
		}
		// Estimates leave out a few kilobytes per peer, which are visible with test sets.
		if least, slack := e.GetSentBytes(), e.GetSentBytes()/50+9000*uint64(len(n.nodes)-1); most+slack < least || most > least+slack {
			t.Errorf("%s: a party sent %d bytes, %d estimated", kind, most, e.GetSentBytes())
		}
	}
	s := n.spec(jobv1.Kind_KIND_MATRIX, 1)
	s.Dim = 0
	for shape, want := range map[*jobv1.Shape]uint32{
		{Rows: 5, Inner: 5, Columns: 5}: 4, // what there are keys for
		{Rows: 5, Inner: 6, Columns: 3}: 1,
	} {
		s.Shape = shape
		for i := range n.nodes {
			if e := estimate(n.nodes[i], s); e.GetDim() != want {
				t.Errorf("%v at party %d: a block of %d, want %d", shape, i, e.GetDim(), want)
			}
		}
	}
}
