package party

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
)

// A delivery is in the party's log before its first byte is sent; so are replays, MAC keys and the
// end of epochs. A party with a truncated log does not start.
func TestAuditLog(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	made := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	id, x := n.reserve(made.GetBatchId()), n.nodes[0]
	for _, withKey := range []bool{true, false} {
		if _, _, err := fetch(n.context(), x.client, id, withKey); err != nil {
			t.Fatal(err)
		}
	}
	_, err := keygenv1.NewKeygenServiceClient(x.client).RetireEpoch(n.context(), &keygenv1.RetireEpochRequest{Epoch: 1, Reason: "test"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := x.party.audit.Entries(1, 100)
	if err != nil {
		t.Fatal(err)
	}
	var events []audit.Event
	for _, e := range list {
		events = append(events, e.Event)
		if e.Actor != x.file.Clients[0].Name || e.Auth != audit.Certificate || e.Party != x.file.Name {
			t.Errorf("%+v", e)
		}
		if e.Event == audit.Delivered && (e.Objects[0] != "reservation/"+id || e.Count != made.GetCount() || e.Ranges[0].Count != e.Count) {
			t.Errorf("%+v", e)
		}
	}
	want := []audit.Event{audit.Delivered, audit.MACKeyDrawn, audit.Replayed, audit.EpochRetired}
	if got, want := join(events), join(want); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) { // remembered in the vault
		if head, err := x.party.vault.AuditHead(); err == nil && head == x.party.audit.Head().Hash.String() {
			break
		} else if time.Now().After(until) {
			t.Fatalf("the vault remembers %q, %v", head, err)
		}
	}
	x.stop()
	if err := os.RemoveAll(x.file.AuditDir); err != nil {
		t.Fatal(err)
	}
	p, err := newParty(x.file, "test", slog.New(slog.DiscardHandler))
	if err == nil {
		p.close()
	}
	if err == nil || !strings.Contains(err.Error(), "lodge audit verify") {
		t.Errorf("a party starts without its log: %v", err)
	}
}

func join(events []audit.Event) string {
	words := make([]string, len(events))
	for i, e := range events {
		words[i] = string(e)
	}
	return strings.Join(words, " ")
}
