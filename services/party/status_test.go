package party

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// as connects to a party with the certificate of a process.
func (n *network) as(member int, process string) *grpc.ClientConn {
	base := filepath.Join(n.cluster.Dir, process, "tls")
	return n.dial(n.cluster.Roster.Parties[member], rpc.Files{Certificate: base + ".pem", Key: base + ".key", CA: filepath.Join(n.cluster.Dir, "ca.pem")})
}

func getStatus(ctx context.Context, t *testing.T, conn *grpc.ClientConn) *statusv1.GetStatusResponse {
	t.Helper()
	s, err := statusv1.NewStatusServiceClient(conn).GetStatus(ctx, &statusv1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A caller with permission sees a party's state: its store, links, log and certificate. Other
// callers see only its pins.
func TestStatusDetails(t *testing.T) {
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		if i == 0 { // app has no permissions here
			for k := range f.Clients {
				if f.Clients[k].Name == "app" {
					f.Clients[k].Permissions = []string{config.PermProve}
				}
			}
		}
	})
	for name, conn := range map[string]*grpc.ClientConn{"client": n.nodes[0].client, "self": n.as(0, "p0"), "peer": n.as(0, "p1"), "coordinator": n.nodes[0].coordinator} {
		var s *statusv1.GetStatusResponse
		connected := 0
		for until := time.Now().Add(10 * time.Second); connected < 2 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			s, connected = getStatus(n.context(), t, conn), 0
			for _, l := range s.GetLinks() {
				if l.GetState() == statusv1.LinkState_LINK_STATE_CONNECTED {
					connected++
				}
			}
		}
		v, err := n.nodes[0].party.vault.Version(0)
		if err != nil {
			t.Fatal(err)
		}
		store := s.GetStore()
		if connected != 2 || s.GetLinks()[0].GetName() != "p1" || s.GetLinks()[1].GetParty() != 2 {
			t.Errorf("%s: links %v", name, s.GetLinks())
		}
		if !bytes.Equal(store.GetId(), v.ID) || store.GetGeneration() == 0 || store.GetQuarantine() != "" || store.GetFault() != "" || store.GetPostgres() ||
			store.GetDiskFreeBytes() == 0 || store.GetDiskTotalBytes() < store.GetDiskFreeBytes() {
			t.Errorf("%s: store %v", name, store)
		}
		if off := time.Since(s.GetNow().AsTime()); off < 0 || off > time.Minute {
			t.Errorf("%s: its clock is off by %s", name, off)
		}
		if left := time.Until(s.GetCertificateNotAfter().AsTime()); left < 24*time.Hour || left > 366*24*time.Hour {
			t.Errorf("%s: the certificate is valid for %s", name, left)
		}
		if len(s.GetAudit().GetHash()) != 32 || s.GetMaxMemoryBytes() != uint64(n.nodes[0].file.Policy.MaxMemory) {
			t.Errorf("%s: %v", name, s)
		}
	}
	if s := getStatus(n.context(), t, n.nodes[0].app); s.GetStore() != nil || s.GetAudit() != nil || s.GetLinks() != nil || s.GetMaxMemoryBytes() != 0 || s.GetNow() == nil {
		t.Errorf("a client without the permission sees %v", s)
	}
	if err := n.nodes[0].party.vault.Quarantine("a test", 0); err != nil {
		t.Fatal(err)
	}
	if s := getStatus(n.context(), t, n.nodes[0].client); s.GetStore().GetQuarantine() != "a test" {
		t.Errorf("quarantine: %v", s.GetStore())
	}
}

// probe returns a party's reports about its peers.
func probe(ctx context.Context, conn *grpc.ClientConn, size uint64) (list []*statusv1.ProbePeersResponse, err error) {
	stream, err := statusv1.NewProbeServiceClient(conn).ProbePeers(ctx, &statusv1.ProbePeersRequest{Bytes: size})
	for err == nil {
		var r *statusv1.ProbePeersResponse
		if r, err = stream.Recv(); err == nil {
			list = append(list, r)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return list, err
}

func TestProbePeers(t *testing.T) {
	n := newNetwork(t, nil)
	for name, conn := range map[string]*grpc.ClientConn{"client": n.nodes[0].client, "self": n.as(0, "p0")} {
		list, err := probe(n.context(), conn, 1<<20)
		if err != nil || len(list) != 2 {
			t.Fatalf("%s: %v: %v", name, err, list)
		}
		for i, r := range list {
			if r.GetParty() != uint32(i+1) || r.GetError() != "" || r.GetSentBytes() != 1<<20 || r.GetBytesPerSecond() < 1e5 ||
				r.GetRoundTrip().AsDuration() <= 0 || r.GetRoundTrip().AsDuration() > time.Second {
				t.Errorf("%s: %v", name, r)
			}
			if off, by := r.GetClockAhead().AsDuration().Abs(), r.GetClockError().AsDuration(); off > by || by <= 0 { // the clock is the same
				t.Errorf("%s: off by %s, with an error of %s", name, off, by)
			}
		}
	}
	n.nodes[2].stop()
	list, err := probe(n.context(), n.nodes[0].client, 0)
	if err != nil || len(list) != 2 || list[0].GetError() != "" || list[0].GetSentBytes() != 0 || list[1].GetError() == "" {
		t.Errorf("with a party away: %v: %v", err, list)
	}
	_, err = probe(n.context(), n.nodes[0].client, 16<<20+1)
	refused(t, err, rpc.Invalid)
	_, err = probe(n.context(), n.as(0, "p1"), 0)
	refused(t, err, rpc.Forbidden)
	_, err = probe(n.context(), n.nodes[0].coordinator, 0)
	refused(t, err, rpc.Forbidden)
	for range 5 {
		if _, err = probe(n.context(), n.nodes[1].client, 0); err != nil {
			break
		}
	}
	refused(t, err, rpc.RateLimited)
}

// A peer's probe is bounded, and others send none.
func TestProbeIsBounded(t *testing.T) {
	n := newNetwork(t, nil)
	send := func(conn *grpc.ClientConn, messages, size int) error {
		stream, err := statusv1.NewProbeServiceClient(conn).Probe(n.context())
		if err != nil {
			return err
		}
		for range messages {
			if stream.Send(&statusv1.ProbeRequest{Padding: make([]byte, size)}) != nil {
				break
			}
		}
		_, err = stream.CloseAndRecv()
		return err
	}
	refused(t, send(n.nodes[0].client, 1, 1), rpc.Forbidden)
	refused(t, send(n.as(0, "p0"), 1, 1), rpc.Forbidden)
	peer := n.as(0, "p1")
	refused(t, send(peer, 1, 64<<10+1), rpc.TooLarge)
	refused(t, send(peer, 257, 64<<10), rpc.TooLarge)
	var err error
	for range 12 {
		if err = send(peer, 256, 64<<10); err != nil {
			break
		}
	}
	refused(t, err, rpc.RateLimited)
	if err := send(n.as(0, "p2"), 1, 100); err != nil {
		t.Errorf("another peer: %v", err)
	}
}
