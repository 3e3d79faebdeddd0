package rpc

import (
	"slices"
	"testing"
	"time"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
)

// Calls of unknown methods are observed under one name, which the caller does not choose.
func TestUnknownMethodsHaveOneName(t *testing.T) {
	w := newWorld(t)
	observed := make(chan string, 10)
	addr, _ := w.serve(Options{
		Observe: func(method string, _ Role, _ string, _ time.Duration) { observed <- method },
	}, nil)
	conn, err := Dial(addr, alice, w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/client/mpc"}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, method := range []string{"/a.B/C", "/lodge.status.v1.StatusService/D"} {
		if err := conn.Invoke(t.Context(), method, &statusv1.GetStatusRequest{}, &statusv1.GetStatusResponse{}); err == nil {
			t.Errorf("%s is served", method)
		}
	}
	close(observed)
	var names []string
	for name := range observed {
		names = append(names, name)
	}
	if !slices.Equal(names, []string{"unknown", "unknown"}) {
		t.Errorf("observed as %v", names)
	}
}
