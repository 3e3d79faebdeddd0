package session

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// watching is the server's side of Watch.
type watching struct {
	grpc.ServerStreamingServer[jobv1.WatchResponse]
	ctx context.Context
	end context.CancelFunc
	got []*jobv1.WatchResponse
}

func (w *watching) Context() context.Context { return w.ctx }

func (w *watching) Send(r *jobv1.WatchResponse) error {
	w.got = append(w.got, r)
	w.end()
	return nil
}

// A client sees the sessions of its tenants. For sessions of other tenants it gets the error of a
// missing session.
func TestSessionsOfATenant(t *testing.T) {
	r, spec := newRegistry(nil)
	if spec.GetTenant() == "" {
		t.Fatal("the session has no tenant")
	}
	if _, err := r.Start(jobv1.Protocol_PROTOCOL_TRIPLES, spec, newWork()); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := NewService(r, jobv1.Protocol_PROTOCOL_TRIPLES, nil)
	missing := proto.CloneOf(spec.GetRef())
	missing.Ordinal++
	for _, c := range []struct {
		name string
		p    rpc.Principal
		sees bool
	}{
		{"the tenant's", rpc.Principal{Role: rpc.Client, Name: "a", Tenants: []string{"x", spec.GetTenant()}}, true},
		{"another's", rpc.Principal{Role: rpc.Client, Name: "b", Tenants: []string{"x"}}, false},
		{"nobody's", rpc.Principal{Role: rpc.Client, Name: "c"}, false},
		{"the coordinator", rpc.Principal{Role: rpc.Coordinator, Name: "coordinator"}, true},
	} {
		ctx := rpc.WithCaller(t.Context(), c.p)
		st, err := s.GetStatus(ctx, &jobv1.GetStatusRequest{Ref: spec.GetRef()})
		if c.sees && (err != nil || st.GetStatus().GetState() == 0) || !c.sees && (err == nil || rpc.FromError(err).Code != rpc.NotFound) {
			t.Errorf("%s: %v, %v", c.name, st, err)
		}
		w := new(watching)
		w.ctx, w.end = context.WithCancel(ctx)
		err = s.Watch(&jobv1.WatchRequest{Ref: spec.GetRef()}, w)
		if c.sees != (len(w.got) > 0) || !c.sees && rpc.FromError(err).Code != rpc.NotFound {
			t.Errorf("%s: %d of Watch, %v", c.name, len(w.got), err)
		}
		_, other := s.GetStatus(ctx, &jobv1.GetStatusRequest{Ref: missing})
		if e := rpc.FromError(other); e == nil || e.Code != rpc.NotFound || !c.sees && e.Next != rpc.FromError(err).Next {
			t.Errorf("%s: a session that is not there: %v", c.name, other)
		}
	}
}
