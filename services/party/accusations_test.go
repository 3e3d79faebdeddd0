package party

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/accusations/accusationstest"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/store/storetest"
)

func book(conn *grpc.ClientConn) accusationsv1.AccusationsServiceClient {
	return accusationsv1.NewAccusationsServiceClient(conn)
}

// standing of the roster at a party.
func (n *network) standing(i int) *accusationsv1.Standing {
	n.t.Helper()
	r, err := book(n.nodes[i].client).ListAccusations(n.context(), &accusationsv1.ListAccusationsRequest{})
	if err != nil {
		n.t.Fatal(err)
	}
	return r.GetStanding()
}

// fails runs a session that fails in the MAC check, because one party's share of the key is
// another. Every party names suspects.
func (n *network) fails(number int) {
	n.t.Helper()
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)) // makes the MAC key
	for i, x := range n.nodes {
		x.plant(n.t, number, i == 2)
	}
	s, checks := n.spec(jobv1.Kind_KIND_SCALAR, 1), ""
	n.beginAll(s)
	for i, st := range n.endAll(s) {
		f := st.GetFailure()
		if st.GetState() != jobv1.JobState_JOB_STATE_FAILED || len(f.GetSuspects()) == 0 || slices.Contains(f.GetSuspects(), uint32(i)) {
			n.t.Errorf("party %d: %v", i, st)
		}
		checks += f.GetCheck() + " "
	}
	if !strings.Contains(checks, "mac") {
		n.t.Errorf("no check failed: %s", checks)
	}
	for _, x := range n.nodes { // a failed check leaves the key as it is
		if err := x.party.vault.RetireMACKey(fmt.Sprintf("mac-planted-%d", number), "test"); err != nil {
			n.t.Fatal(err)
		}
	}
}

// As many failures with nobody named as are allowed stop generation at every party, across
// restarts, until its operator clears them. Success in between clears nothing. In both stores.
func TestUnnamedFailuresStopGeneration(t *testing.T) {
	for name, place := range map[string]func(t *testing.T) func(i int, f *config.PartyFile){
		"directory": func(*testing.T) func(i int, f *config.PartyFile) { return nil },
		"postgres": func(t *testing.T) func(i int, f *config.PartyFile) {
			server := storetest.NewPostgres(t)
			return func(i int, f *config.PartyFile) {
				path := filepath.Join(t.TempDir(), "dsn")
				if err := os.WriteFile(path, []byte(server.DSN()), 0o600); err != nil {
					t.Fatal(err)
				}
				f.Vault.Dir, f.Vault.PostgresDSNFile = "", path
			}
		},
	} {
		t.Run(name, func(t *testing.T) { stopAndGoOn(t, newNetwork(t, place(t))) })
	}
}

func stopAndGoOn(t *testing.T, n *network) {
	n.keys(1, forKeys)
	for number := 1; number <= 3; number++ {
		n.fails(number)
		for i := range n.nodes {
			if s := n.standing(i); s.GetFailures() != uint32(number) || (s.GetStop() != nil) != (number == 3) || (s.GetRefusal() != "") != (number == 3) {
				t.Errorf("party %d after %d failures: %v", i, number, s)
			}
		}
	}
	n.nodes[0].stop()
	n.start(0)
	ctx := n.context()
	for i, x := range n.nodes {
		for _, kind := range []jobv1.Kind{jobv1.Kind_KIND_SCALAR, jobv1.Kind_KIND_KEYS} {
			_, err := x.begin(ctx, n.spec(kind, 1))
			refused(t, err, rpc.Stopped)
			if e := rpc.FromError(err); !strings.Contains(e.What, "3 unnamed failures (checks mac") || !strings.Contains(e.Next, "lodge accusations clear --party "+x.file.Name) {
				t.Errorf("party %d: %v", i, e)
			}
		}
		st, err := statusv1.NewStatusServiceClient(x.client).GetStatus(ctx, &statusv1.GetStatusRequest{})
		if err != nil || !strings.Contains(st.GetConduct().GetRefusal(), "suspects") || st.GetConduct().GetFailures() != 3 {
			t.Errorf("party %d: %v, %v", i, st.GetConduct(), err)
		}
	}
	n.clear(ctx)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	list, err := n.nodes[0].party.audit.Entries(1, 100)
	if err != nil {
		t.Fatal(err)
	}
	var events []audit.Event
	for _, e := range list {
		if e.Event == audit.Cleared && (e.Actor != n.nodes[0].file.Clients[0].Name || e.Note != "found and mended" || e.Count != 3) {
			t.Errorf("%+v", e)
		}
		events = append(events, e.Event)
	}
	if got, want := join(events), join([]audit.Event{
		audit.MACCheckFailed, audit.Unnamed, audit.MACCheckFailed, audit.Unnamed, audit.MACCheckFailed, audit.Unnamed, audit.Stopped, audit.Cleared,
	}); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

// clear clears the failures at all parties, after attempts without permission or with wrong
// arguments were rejected.
func (n *network) clear(ctx context.Context) {
	n.t.Helper()
	x := n.nodes[0]
	for want, c := range map[rpc.Code]struct {
		conn *grpc.ClientConn
		req  *accusationsv1.ClearFailuresRequest
	}{
		rpc.Forbidden: {x.app, &accusationsv1.ClearFailuresRequest{Reason: "please"}},
		rpc.Invalid:   {x.client, &accusationsv1.ClearFailuresRequest{}},
		rpc.Conflict:  {x.client, &accusationsv1.ClearFailuresRequest{Reason: "please", Last: 2}},
		rpc.TooLarge:  {x.client, &accusationsv1.ClearFailuresRequest{Reason: strings.Repeat("x", 1001)}},
	} {
		_, err := book(c.conn).ClearFailures(ctx, c.req)
		refused(n.t, err, want)
	}
	_, err := x.begin(ctx, n.spec(jobv1.Kind_KIND_SCALAR, 1))
	refused(n.t, err, rpc.Stopped)
	for _, x := range n.nodes {
		list, err := book(x.client).ListFailures(ctx, &accusationsv1.ListFailuresRequest{Limit: 2})
		if err != nil || len(list.GetFailures()) != 2 || list.GetNext() != 2 {
			n.t.Fatalf("%v, %v", list, err)
		}
		if list, err = book(x.client).ListFailures(ctx, &accusationsv1.ListFailuresRequest{After: 2}); err != nil || len(list.GetFailures()) != 1 {
			n.t.Fatalf("%v, %v", list, err)
		}
		r, err := book(x.client).ClearFailures(ctx, &accusationsv1.ClearFailuresRequest{Reason: "found and mended", Last: list.GetFailures()[0].GetSequence()})
		if err != nil || r.GetCleared() != 3 || r.GetStanding().GetRefusal() != "" || r.GetStanding().GetCleared().GetReason() != "found and mended" {
			n.t.Errorf("%v, %v", r, err)
		}
	}
}

// equivocation is evidence that a party has signed two versions of a broadcast.
func (n *network) equivocation(culprit, accuser int) []byte {
	n.t.Helper()
	bad, err := accusationstest.Member(n.cluster, culprit)
	if err != nil {
		n.t.Fatal(err)
	}
	good, err := accusationstest.Member(n.cluster, accuser)
	if err != nil {
		n.t.Fatal(err)
	}
	file, err := accusationstest.Equivocation(n.cluster.Roster, n.spec(jobv1.Kind_KIND_SCALAR, 1).GetRef(), bad, good)
	if err != nil {
		n.t.Fatal(err)
	}
	return file
}

// asPeer is a connection to a party as another of the roster.
func (n *network) asPeer(of, to int) *grpc.ClientConn {
	name := n.cluster.Roster.Parties[of].Name
	return n.dial(n.cluster.Roster.Parties[to], rpc.Files{
		Certificate: filepath.Join(n.cluster.Dir, name, "tls.pem"), Key: filepath.Join(n.cluster.Dir, name, "tls.key"), CA: filepath.Join(n.cluster.Dir, "ca.pem"),
	})
}

// offer shows a file to a party.
func offer(ctx context.Context, conn *grpc.ClientConn, file []byte) (known bool, err error) {
	stream, err := book(conn).Offer(ctx)
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(file)
	if err := stream.Send(&accusationsv1.OfferRequest{Digest: sum[:], Size: uint64(len(file)), Chunk: file}); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	r, err := stream.CloseAndRecv()
	return r.GetKnown(), err
}

// accuse has a party find evidence.
func (x *node) accuse(t *testing.T, file []byte) (id string) {
	t.Helper()
	a, fresh, err := x.party.book.Accuse(t.Context(), bytes.NewReader(file))
	if err != nil || !fresh {
		t.Fatalf("new: %v, %v", fresh, err)
	}
	return a.ID
}

// excluded waits until a party refuses sessions because another is excluded.
func (n *network) excluded(i int, culprit string) {
	n.t.Helper()
	for ctx := n.context(); ; {
		s := n.standing(i)
		if slices.Equal(s.GetExcluded(), []string{culprit}) {
			break
		}
		if ctx.Err() != nil {
			n.t.Fatalf("party %d: %v", i, s)
		}
		time.Sleep(10 * time.Millisecond)
	}
	_, err := n.nodes[i].begin(n.context(), n.spec(jobv1.Kind_KIND_SCALAR, 1))
	refused(n.t, err, rpc.Excluded)
}

// A party that evidence convicts is excluded by every other party, including those that receive the
// evidence from a peer, and across restarts, until operators pardon it.
func TestProvenCheatIsExcluded(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	culprit, file := n.cluster.Roster.Parties[2].Name, n.equivocation(2, 0)
	running := n.spec(jobv1.Kind_KIND_SCALAR, 1)
	if _, err := n.nodes[0].begin(n.context(), running); err != nil { // its peers do not start it
		t.Fatal(err)
	}
	id := n.nodes[0].accuse(t, file)
	if st, err := n.nodes[0].await(n.context(), running.GetRef()); err != nil || st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED {
		t.Errorf("a session goes on: %v, %v", st, err)
	}
	n.excluded(0, culprit)
	n.excluded(1, culprit)
	n.nodes[1].stop()
	n.start(1)
	n.excluded(1, culprit)

	ctx := n.context()
	list, err := book(n.nodes[1].client).ListAccusations(ctx, &accusationsv1.ListAccusationsRequest{})
	if err != nil || len(list.GetAccusations()) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	a := list.GetAccusations()[0]
	if a.GetId() != id || a.GetCulprit() != culprit || a.GetFrom() != n.cluster.Roster.Parties[0].Name || a.GetKind() != "equivocation" || !a.GetExcludes() {
		t.Errorf("%v", a)
	}
	got := n.evidence(ctx, 1, id)
	if !bytes.Equal(got, file) {
		t.Error("the evidence is another file")
	}
	if f, err := evidence.Verify(ctx, bytes.NewReader(got), n.cluster.Roster); err != nil || f.Culprit.Name != culprit {
		t.Errorf("%v, %v", f, err)
	}

	bad := n.asPeer(2, 0)
	_, err = tuplesv1.NewTuplesServiceClient(bad).Confirm(ctx, &tuplesv1.ConfirmRequest{})
	refused(t, err, rpc.Excluded)
	stream, err := n.asPeer(2, 1).NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, exchange.Method)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, stream.RecvMsg(new(jobv1.SessionRef)), rpc.Excluded)
	known, err := offer(ctx, bad, file)
	if err != nil || !known {
		t.Errorf("evidence from whom is excluded: known %v, %v", known, err)
	}

	_, err = book(n.nodes[0].app).Pardon(ctx, &accusationsv1.PardonRequest{Id: id, Reason: "please"})
	refused(t, err, rpc.Forbidden)
	_, err = book(n.nodes[0].client).Pardon(ctx, &accusationsv1.PardonRequest{Id: "unknown", Reason: "please"})
	refused(t, err, rpc.NotFound)
	for i := range 2 {
		n.excluded(i, culprit) // a pardon is of one party
		r, err := book(n.nodes[i].client).Pardon(ctx, &accusationsv1.PardonRequest{Id: id, Reason: "new machine"})
		if err != nil || r.GetAccusation().GetPardon().GetReason() != "new machine" || r.GetStanding().GetRefusal() != "" {
			t.Errorf("%v, %v", r, err)
		}
	}
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	if text := n.nodes[1].log.String(); !strings.Contains(text, "a party has cheated, and that is proved") {
		t.Errorf("log:\n%s", text)
	}
}

func (n *network) evidence(ctx context.Context, i int, id string) (file []byte) {
	n.t.Helper()
	stream, err := book(n.nodes[i].client).GetEvidence(ctx, &accusationsv1.GetEvidenceRequest{Id: id})
	for err == nil {
		var r *accusationsv1.GetEvidenceResponse
		if r, err = stream.Recv(); err == nil {
			file = append(file, r.GetChunk()...)
		}
	}
	if !errors.Is(err, io.EOF) {
		n.t.Fatal(err)
	}
	return file
}

// A file counts only if this party can verify it; a peer that offers other files is rate-limited,
// and no other peer is.
func TestBogusEvidence(t *testing.T) {
	n := newNetwork(t, nil)
	ctx, file := n.context(), n.equivocation(2, 1)
	changed := bytes.Clone(file)
	changed[len(changed)/2]++
	liar := n.asPeer(1, 0)
	_, err := offer(ctx, liar, changed)
	refused(t, err, rpc.Invalid)
	_, err = offer(ctx, liar, file) // even if it is true
	refused(t, err, rpc.RateLimited)
	if e := rpc.FromError(err); e.Retry <= 0 || e.Retry > time.Minute {
		t.Errorf("again in %s", e.Retry)
	}
	if s := n.standing(0); len(s.GetExcluded()) != 0 {
		t.Errorf("%v", s)
	}
	if text := n.nodes[0].log.String(); !strings.Contains(text, "a peer offered a file that proves nothing") {
		t.Errorf("log:\n%s", text)
	}
	other := n.asPeer(2, 1)
	short, err := book(other).Offer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(file)
	if err := short.Send(&accusationsv1.OfferRequest{Digest: sum[:], Size: uint64(len(file)), Chunk: file[:10]}); err != nil {
		t.Fatal(err)
	}
	_, err = short.CloseAndRecv()
	refused(t, err, rpc.Invalid)
	large, err := book(other).Offer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := large.Send(&accusationsv1.OfferRequest{Digest: sum[:], Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	_, err = large.CloseAndRecv()
	refused(t, err, rpc.TooLarge)
	if known, err := offer(ctx, n.asPeer(2, 0), file); err != nil || known { // against itself
		t.Errorf("known %v, %v", known, err)
	}
	n.excluded(0, n.cluster.Roster.Parties[2].Name)
}

// With the policy "report" a proven cheat has no consequences but the report.
func TestProvenCheatIsReported(t *testing.T) {
	n := newNetwork(t, func(_ int, f *config.PartyFile) { f.Accusations.OnProvenCheat = config.Report })
	n.keys(1, forKeys)
	n.nodes[0].accuse(t, n.equivocation(2, 0))
	for i := range 2 {
		for ctx := n.context(); ; {
			r, err := book(n.nodes[i].client).ListAccusations(ctx, &accusationsv1.ListAccusationsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.GetAccusations()) == 1 {
				if r.GetAccusations()[0].GetExcludes() || r.GetStanding().GetRefusal() != "" {
					t.Errorf("%v", r)
				}
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
}
