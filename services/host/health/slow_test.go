package health

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lodge-mpc/lodge/services/host/rpc/rpctest"
)

// A call without a message ends, and so does a call that announces a large message.
func TestCallsWithoutMessages(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(l, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Stop)
	conn, err := rpctest.Dial(t.Context(), l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, c := range []struct {
		name string
		send []byte
		want codes.Code
	}{
		{"headers only", nil, codes.DeadlineExceeded},
		{"part of a message", append(rpctest.Prefix(100), 1), codes.DeadlineExceeded},
		{"a large message", rpctest.Prefix(maxMessage + 1), codes.ResourceExhausted},
	} {
		call, err := conn.Open(healthpb.Health_Check_FullMethodName)
		if err != nil {
			t.Fatal(err)
		}
		if c.send != nil {
			if err := call.Send(c.send, 1<<14, false); err != nil {
				t.Fatal(err)
			}
		}
		if st := call.Status(sendTime + 3*time.Second); st == nil || st.Code() != c.want {
			t.Errorf("%s: %v, want %s", c.name, st, c.want)
		}
	}
}
