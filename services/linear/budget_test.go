package linear_test

import (
	"math"
	"net"
	"net/http"
	"strings"
	"testing"

	client "github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/engine/linear"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// small runs a product with a matrix of 2 x 2 between two clients, under the test set with proofs.
func (w *world) small(asks, answers string) (askErr, answerErr error) {
	run := client.NewRun()
	shape := client.Vector{Rows: 2, Cols: 2}
	_, _, askErr, answerErr = both(func() (*client.Shares, error) {
		v := shape
		v.Ends = client.Ends{Run: run, With: answers, Set: proved}
		return w.as(asks).AskVector(w.Context(), &v, []uint64{1, 2})
	}, func() (*client.Shares, error) {
		v := shape
		v.Ends = client.Ends{Run: run, With: asks, Set: proved}
		return w.as(answers).AnswerVector(w.Context(), &v, nil, func(_ int, into []uint64) error { clear(into); return nil })
	})
	return askErr, answerErr
}

// Products between two clients stop when their distances have used up the budget. This also holds
// after a restart, under a different key each time, and under another name of the same certificate.
// Status and metrics show the spent distance.
func TestDistanceBudget(t *testing.T) {
	plan, err := set(t, proved).PlanVector(2, 2, linear.Cheapest, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	metricsAt := l.Addr().String()
	l.Close()
	var dir string
	limit := plan.Distance() + math.Log2(3.5) // enough for three products
	configure := func(f *config.PartyFile) {
		dir, f.MetricsListen, f.Linear.LogDistanceBudget = f.AuditDir, metricsAt, limit
	}
	w := &world{TB: t, net: cluster(t)}
	spent := func() {
		t.Helper()
		for end, err := range map[string]error{"ask": first(w.small(devnet.App, matrixClient)), "answer": second(w.small(devnet.App, matrixClient))} {
			if code(err) != "burnt" {
				t.Fatalf("%s: %v", end, err)
			}
			for _, part := range []string{"app", matrixClient, "have spent a statistical distance of 2^", "linear.log_distance_budget"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not say %q", end, err, part)
				}
			}
		}
	}
	works := func(asks, answers string) {
		t.Helper()
		if askErr, answerErr := w.small(asks, answers); askErr != nil || answerErr != nil {
			t.Fatal(askErr, answerErr)
		}
	}
	stop := w.start(configure)
	works(devnet.App, matrixClient)
	works(devnet.App, matrixClient)
	stop()
	stop = w.start(configure)
	works(devnet.App, matrixClient)
	spent()
	works(matrixClient, devnet.App) // the other client's matrix has a separate budget
	if list := w.status(); len(list) != 2 || list[0].GetProducts()+list[1].GetProducts() != 4 {
		t.Errorf("the status shows %v", list)
	}
	if text := w.metrics(metricsAt); !strings.Contains(text, `lodge_linear_distance_spent_ratio{client="app",with="`+matrixClient+`"} 0.85`) {
		t.Errorf("the metrics do not show the spent distance: %s", text)
	}
	stop()

	counted := 0
	for _, line := range logged(t, dir) {
		if strings.Contains(line, "2^") && strings.Contains(line, "spent of 2^") {
			counted++
		}
	}
	if counted != 4 {
		t.Errorf("%d products with the spent distance are in the log", counted)
	}

	stop = w.start(func(f *config.PartyFile) { // the same certificates under other names
		configure(f)
		for i := range f.Clients {
			if name := f.Clients[i].Name; name == devnet.App || name == matrixClient {
				f.Clients[i].Name = name + "-2"
			}
		}
	})
	run := client.NewRun()
	_, _, askErr, answerErr := both(func() (*client.Shares, error) {
		v := client.Vector{Ends: client.Ends{Run: run, With: matrixClient + "-2", Set: proved}, Rows: 2, Cols: 2}
		return w.as(devnet.App).AskVector(t.Context(), &v, []uint64{1, 2})
	}, func() (*client.Shares, error) {
		v := client.Vector{Ends: client.Ends{Run: run, With: devnet.App + "-2", Set: proved}, Rows: 2, Cols: 2}
		return w.as(matrixClient).AnswerVector(t.Context(), &v, nil, func(_ int, into []uint64) error { clear(into); return nil })
	})
	if code(askErr) != "burnt" || code(answerErr) != "burnt" {
		t.Errorf("under other names: %v, %v", askErr, answerErr)
	}
	stop()

	stop = w.start(func(f *config.PartyFile) { configure(f); f.Linear.LogDistanceBudget++ })
	works(devnet.App, matrixClient) // the operator raised the budget
	stop()
}

func first(a, _ error) error  { return a }
func second(_, b error) error { return b }

// status returns the spent distances in the party's status.
func (w *world) status() []*statusv1.LinearDistance {
	w.Helper()
	r, err := statusv1.NewStatusServiceClient(w.connect(devnet.Operator)).GetStatus(w.Context(), &statusv1.GetStatusRequest{})
	if err != nil {
		w.Fatal(err)
	}
	return r.GetLinear()
}

// metrics returns the metrics page of the party.
func (w *world) metrics(at string) string {
	w.Helper()
	r, err := http.Get("http://" + at + "/metrics")
	if err != nil {
		w.Fatal(err)
	}
	defer r.Body.Close()
	return string(readAll(w, r.Body))
}
