package jobs_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/jobs"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/party"
)

// While a party is unavailable, the last known stock is shown, or none if the coordinator was
// restarted meanwhile. Afterwards the stock is complete again.
func TestStockWhileAPartyIsAway(t *testing.T) {
	l := lodgetest.Start(t)
	l.OK(append([]string{"stock", "policies", "set", "--low", "1", "--high", "1", "--batch", "1"}, lodgetest.Class()...)...)
	there := func() bool {
		list := lodgetest.Read[jobs.StockList](l, "stock")
		return len(list.Away) == 0 && len(list.Stock) == 1 && list.Stock[0].Epoch == 1 && list.Stock[0].HeldBack == ""
	}
	l.Eventually(there)
	before := lodgetest.Read[jobs.StockList](l, "stock").Stock[0]
	away := func() bool { return len(lodgetest.Read[jobs.StockList](l, "stock").Away) == 1 }

	l.Stop[2]()
	l.Eventually(away)
	list := lodgetest.Read[jobs.StockList](l, "stock")
	x := list.Stock[0]
	if len(list.Stock) != 1 || *x.StockLevel != *before.StockLevel || x.Making != 0 || x.Epoch != 1 || list.AsOf == "" || list.Away[0].Name != "p1" || list.Away[0].Reason == "" {
		t.Errorf("with p1 away: %+v", list)
	}
	l.Shows([]string{"stock"}, "nothing can be reserved while these are unavailable: party 1 (p1); the numbers are ", "p64    insecure-8  dev     1      ")
	l.Refuses(rpc.Unavailable, "party 1 (p1)", append([]string{"reserve", "--count", "1"}, lodgetest.Class()...)...)

	l.Stop[0]()
	l.Run(func(ctx context.Context) error {
		f, err := config.LoadCoordinator(l.Net.Coordinator)
		if err != nil {
			return err
		}
		return coordinator.Run(ctx, f, "test", slog.New(slog.DiscardHandler))
	})
	l.Eventually(func() bool {
		_, err := l.Try("stock")
		return err == nil && away()
	})
	l.Eventually(func() bool { return len(lodgetest.Read[jobs.StockList](l, "stock").Stock) == 1 }) // of the policy
	list = lodgetest.Read[jobs.StockList](l, "stock")
	if x := list.Stock[0]; x.StockLevel != nil || x.Making != 0 || x.Epoch != 0 || x.TimeToEmpty != nil || list.AsOf != "" {
		t.Errorf("with p1 away since the start: %+v", list)
	}
	l.Shows([]string{"stock"}, "the stock is unknown", "newest  ?          ?         ?         ?     0       ")
	if out := l.OK("stock", "--json"); strings.Contains(out, `"available"`) || strings.Contains(out, `"lost"`) {
		t.Errorf("numbers that nobody knows:\n%s", out)
	}

	l.Run(func(ctx context.Context) error {
		f, err := config.LoadParty(l.Net.Parties[1])
		if err != nil {
			return err
		}
		return party.Run(ctx, f, "test", slog.New(slog.DiscardHandler))
	})
	l.Eventually(there)
	if x := lodgetest.Read[jobs.StockList](l, "stock").Stock[0]; *x.StockLevel != *before.StockLevel {
		t.Errorf("with p1 back: %+v, before %+v", x, before)
	}
}
