package keys_test

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
)

// Keys of a set that has become legacy stay, are served and encrypt. New ones are refused, and the
// refusal names the successor.
func TestLegacyKeys(t *testing.T) {
	const legacy, successor = "insecure-M8-legacy", "insecure-M8-32-128"
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{legacy}, Dev: true, Insecure: true, Multikey: legacy})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, net: net, stop: map[int]func(){}}
	f, err := config.LoadParty(net.Parties[0])
	if err != nil {
		t.Fatal(err)
	}
	f.StopAfter = config.Duration(100 * time.Millisecond)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- party.RunWith(ctx, f, "test", slog.New(slog.NewTextHandler(io.Discard, nil)), party.Seam{LegacyKeys: true})
	}()
	made := w.owner(0).make(first) // before the set was legacy
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	w.start(0, nil)
	c := w.owner(0)
	if list := c.list(); len(list) != 1 || list[0].GetState() != "active" || string(list[0].GetKey()) != string(made.GetKey()) {
		t.Fatalf("after a restart: %v", list)
	}
	again, err := c.MakeKeys(t.Context(), &multikeyv1.MakeKeysRequest{RequestId: []byte(first)}, grpc.WaitForReady(true))
	if err != nil || string(again.GetKeys().GetKey()) != string(made.GetKey()) {
		t.Errorf("the request that made them: %v", err)
	}
	_, err = c.MakeKeys(t.Context(), &multikeyv1.MakeKeysRequest{RequestId: []byte(second)})
	refused(t, err, lodge.PolicyRefused, "new keys are made with "+successor)
	if e := lodge.FromError(err); !strings.Contains(e.Next, successor) {
		t.Errorf("the next step is %q", e.Next)
	}
}
