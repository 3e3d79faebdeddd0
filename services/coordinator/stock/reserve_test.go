package stock

import (
	"testing"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A client whose configuration lists kinds can reserve only these kinds.
func TestKindsOfAClient(t *testing.T) {
	some := rpc.Principal{Role: rpc.Client, Name: "mpc", Tenants: []string{"demo"}, Kinds: []string{"scalar", "bit"}}
	all := some
	all.Kinds = nil
	for kind, want := range map[jobv1.Kind]bool{jobv1.Kind_KIND_SCALAR: true, jobv1.Kind_KIND_BIT: true, jobv1.Kind_KIND_MATRIX: false, jobv1.Kind_KIND_INPUT: false} {
		q := &stockv1.ReserveRequest{Class: &tuplesv1.Class{Tenant: "demo", Kind: kind, Field: "p128"}, Count: 1}
		if err := new(Service).check(all, q); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		err := new(Service).check(some, q)
		if want != (err == nil) || err != nil && rpc.FromError(err).Code != rpc.Forbidden {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
