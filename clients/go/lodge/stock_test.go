package lodge_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
)

func (s fakeStock) GetStock(_ context.Context, q *stockv1.GetStockRequest) (*stockv1.GetStockResponse, error) {
	if err := s.fake.failure(); err != nil {
		return nil, err
	}
	r := &stockv1.GetStockResponse{Stock: []*stockv1.Stock{{Epoch: q.GetEpoch(), Available: 5}}, AsOf: s.fake.asOf}
	if s.fake.away {
		r.Away = []*stockv1.AwayParty{{Party: 1, Name: "p1", Reason: "gone"}}
	}
	return r, nil
}

func TestStock(t *testing.T) {
	when := time.Unix(1700000000, 0).UTC()
	for name, c := range map[string]struct {
		asOf  *timestamppb.Timestamp
		away  bool
		known bool
	}{
		"all are there":              {timestamppb.New(when), false, true},
		"one is away":                {timestamppb.New(when), true, true},
		"one is away from the start": {nil, true, false},
	} {
		f := &fake{asOf: c.asOf, away: c.away, failures: []error{detailed(codes.Unavailable, lodge.Unavailable)}}
		s, err := dial(t, f, nil).Stock(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		if s.Known() != c.known || c.known && !s.AsOf.Equal(when) || len(s.Levels) != 1 || s.Levels[0].GetEpoch() != 7 ||
			s.Levels[0].GetAvailable() != 5 {
			t.Errorf("%s: %+v", name, s)
		}
		if (len(s.Away) == 1) != c.away || c.away && (s.Away[0].GetName() != "p1" || s.Away[0].GetReason() != "gone") {
			t.Errorf("%s: the unreachable parties are %v", name, s.Away)
		}
	}
	f := &fake{failures: []error{detailed(codes.PermissionDenied, lodge.Forbidden)}}
	if s, err := dial(t, f, nil).Stock(t.Context(), 0); s != nil || !errors.Is(err, &lodge.Error{Code: lodge.Forbidden}) {
		t.Errorf("forbidden: %v, %v", s, err)
	}
}
