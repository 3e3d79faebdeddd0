package stock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A page continues exactly where the previous page ended.
func TestListBefore(t *testing.T) {
	s := testService(t)
	now := time.Now()
	for i := range 5 {
		x := &tuplesv1.Reservation{Id: fmt.Sprint("r", i), Lease: timestamppb.New(now.Add(time.Hour)), Class: &tuplesv1.Class{Tenant: "t"}}
		if err := s.records.add(x, fmt.Sprint("alice/k", i), now.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	ctx := rpc.WithCaller(t.Context(), rpc.Principal{Role: rpc.Client, Name: "alice", Tenants: []string{"t"}})
	var seen []string
	next := ""
	for {
		page, err := s.ListReservations(ctx, &stockv1.ListReservationsRequest{Limit: 2, Before: next})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.GetReservations() {
			seen = append(seen, r.GetId())
		}
		if next = page.GetNext(); next == "" {
			break
		}
	}
	if fmt.Sprint(seen) != "[r4 r3 r2 r1 r0]" {
		t.Errorf("pages list %v", seen)
	}
	digits := strings.Repeat("0", 20)
	for _, before := range []string{"x", "/", digits, digits + "/", digits + "/R", digits + "/a/b", "0/r1", digits + "0/r1", "-" + digits[1:] + "/r1",
		digits + "/\x00", strings.Repeat("9", 60000)} {
		r, err := s.ListReservations(ctx, &stockv1.ListReservationsRequest{Before: before})
		if e := rpc.FromError(err); e == nil || e.Code != rpc.Invalid || e.Next == "" || len(e.What) > 100 {
			t.Errorf("before %.40q: %v, %v", before, r, err)
		}
	}
}
