package lodge_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// counter answers GetReservation with its count: with an error if the count is 0, and never if the
// count is 1.
type counter struct {
	tuplesv1.UnimplementedTuplesServiceServer
	count uint64
}

func (c counter) GetReservation(ctx context.Context, _ *tuplesv1.GetReservationRequest) (*tuplesv1.GetReservationResponse, error) {
	switch c.count {
	case 0:
		return nil, status.Error(codes.PermissionDenied, "not you")
	case 1:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &tuplesv1.GetReservationResponse{Reservation: &tuplesv1.Reservation{Count: c.count}}, nil
}

func partiesOf(t *testing.T, counts ...uint64) *lodge.Parties {
	t.Helper()
	var names []string
	var conns []*grpc.ClientConn
	for i, count := range counts {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer()
		tuplesv1.RegisterTuplesServiceServer(s, counter{count: count})
		go s.Serve(l) //nolint:errcheck // ends with Stop
		t.Cleanup(s.Stop)
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		names, conns = append(names, string(rune('a'+i))), append(conns, conn)
	}
	p := lodge.PartiesOver(names, conns)
	t.Cleanup(func() { p.Close() })
	return p
}

func count(ctx context.Context, conn *grpc.ClientConn) (uint64, error) {
	r, err := tuplesv1.NewTuplesServiceClient(conn).GetReservation(ctx, &tuplesv1.GetReservationRequest{})
	return r.GetReservation().GetCount(), err
}

func TestFromAll(t *testing.T) {
	p := partiesOf(t, 5, 6, 7)
	if got, err := lodge.FromAll(t.Context(), p, count); err != nil || !slices.Equal(got, []uint64{5, 6, 7}) {
		t.Errorf("responses %v: %v", got, err)
	}
	if p.Len() != 3 || p.Name(1) != "b" || !slices.Equal(p.Names(), []string{"a", "b", "c"}) {
		t.Errorf("%d parties %v", p.Len(), p.Names())
	}
	for i, want := range map[int]bool{-1: false, 0: true, 2: true, 3: false} {
		if err := p.Check(i); (err == nil) != want {
			t.Errorf("party %d: %v", i, err)
		}
	}
}

// The failure of party b ends the call to party a, which never responds, and is the one reported.
func TestFromAllFailsFast(t *testing.T) {
	got, err := lodge.FromAll(t.Context(), partiesOf(t, 1, 0, 7), count)
	if !errors.Is(err, &lodge.Error{Code: lodge.Forbidden, What: "party b: not you"}) || got != nil {
		t.Errorf("responses %v: %v", got, err)
	}
}

func TestFromAllEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lodge.FromAll(ctx, partiesOf(t, 5, 6), count); err == nil || lodge.FromError(err).Code != lodge.Cancelled {
		t.Errorf("a cancelled call: %v", err)
	}
}

func TestEachNamesParties(t *testing.T) {
	errs := partiesOf(t, 5, 0).Each(func(_ int, conn *grpc.ClientConn) error {
		_, err := count(t.Context(), conn)
		return err
	})
	if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], &lodge.Error{Code: lodge.Forbidden, What: "party b: not you"}) {
		t.Errorf("errors %v", errs)
	}
}

func TestAgreed(t *testing.T) {
	equal := func(a, b uint64) bool { return a == b }
	if got, err := lodge.Agreed(t.Context(), partiesOf(t, 5, 5, 5), "the count", "", equal, count); err != nil || got != 5 {
		t.Errorf("%d: %v", got, err)
	}
	_, err := lodge.Agreed(t.Context(), partiesOf(t, 5, 5, 6), "the count", "ask", equal, count)
	if !errors.Is(err, &lodge.Error{Code: lodge.Conflict, What: "the count at party c differs from that at party a"}) {
		t.Errorf("different counts: %v", err)
	}
	if _, err := lodge.Agreed(t.Context(), partiesOf(t, 5, 0), "the count", "ask", equal, count); lodge.FromError(err).Code != lodge.Forbidden {
		t.Errorf("a failure: %v", err)
	}
}

func TestDialPartiesRefuses(t *testing.T) {
	if _, err := lodge.DialParties(lodge.Config{}); err == nil || lodge.FromError(err).Code != lodge.Invalid {
		t.Errorf("no parties: %v", err)
	}
}
