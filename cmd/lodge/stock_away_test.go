package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/party"
)

// While a party is away the stock is the last that is known, and nothing where the coordinator started meanwhile. Once
// the party is back, so is the stock.
func TestStockWhileAPartyIsAway(t *testing.T) {
	l := startLive(t)
	l.ok(append([]string{"stock", "policies", "set", "--low", "1", "--high", "1", "--batch", "1"}, class()...)...)
	there := func() bool {
		list := read[stockList](l, "stock")
		return len(list.Away) == 0 && len(list.Stock) == 1 && list.Stock[0].Epoch == 1 && list.Stock[0].HeldBack == ""
	}
	l.eventually(there)
	before := read[stockList](l, "stock").Stock[0]
	away := func() bool { return len(read[stockList](l, "stock").Away) == 1 }

	l.stop[2]()
	l.eventually(away)
	list := read[stockList](l, "stock")
	x := list.Stock[0]
	if len(list.Stock) != 1 || *x.StockLevel != *before.StockLevel || x.Making != 0 || x.Epoch != 1 || list.AsOf == "" || list.Away[0].Name != "p1" || list.Away[0].Reason == "" {
		t.Errorf("with p1 away: %+v", list)
	}
	l.shows([]string{"stock"}, "nothing can be reserved while these are away: party 1 (p1); the numbers are of ", "p64    insecure-8  dev     1      ")
	l.refuses(rpc.Unavailable, "party 1 (p1)", append([]string{"reserve", "--count", "1"}, class()...)...)

	l.stop[0]()
	l.run(func(ctx context.Context) error {
		f, err := config.LoadCoordinator(l.net.Coordinator)
		if err != nil {
			return err
		}
		return coordinator.Run(ctx, f, "test", slog.New(slog.DiscardHandler))
	})
	l.eventually(func() bool {
		_, err := l.try("stock")
		return err == nil && away()
	})
	l.eventually(func() bool { return len(read[stockList](l, "stock").Stock) == 1 }) // the policy's
	list = read[stockList](l, "stock")
	if x := list.Stock[0]; x.StockLevel != nil || x.Making != 0 || x.Epoch != 0 || x.TimeToEmpty != nil || list.AsOf != "" {
		t.Errorf("with p1 away since the start: %+v", list)
	}
	l.shows([]string{"stock"}, "what there is is not known", "newest  ?          ?         ?         ?     0       ")
	if out := l.ok("stock", "--json"); strings.Contains(out, `"available"`) || strings.Contains(out, `"lost"`) {
		t.Errorf("numbers that nobody knows:\n%s", out)
	}

	l.run(func(ctx context.Context) error {
		f, err := config.LoadParty(l.net.Parties[1])
		if err != nil {
			return err
		}
		return party.Run(ctx, f, "test", slog.New(slog.DiscardHandler))
	})
	l.eventually(there)
	if x := read[stockList](l, "stock").Stock[0]; *x.StockLevel != *before.StockLevel {
		t.Errorf("with p1 back: %+v, before %+v", x, before)
	}
}
