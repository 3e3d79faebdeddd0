package rpc

import (
	"testing"
	"time"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
)

// A call whose response the caller does not receive keeps its place until its stream is reset or
// its connection is closed. A call whose response was received holds no place.
func TestUntakenResponses(t *testing.T) {
	const most = 8
	a := attack(t, Options{Limits: Limits{CallsPerClient: most}}, nil)
	good := message(&statusv1.GetStatusRequest{})
	taken := a.dial(lone)
	for range 3 * most {
		call := a.open(taken, statusMethod)
		if err := call.Send(good, 1<<14, true); err != nil {
			t.Fatal(err)
		}
		a.ends("a call whose response is taken", call, "")
	}
	conn, other := a.dial(lone), a.dial(lone)
	if err := conn.Window(0); err != nil {
		t.Fatal(err)
	}
	var reset func() error
	for range most {
		call := a.open(conn, statusMethod)
		if err := call.Send(good, 1<<14, true); err != nil {
			t.Fatal(err)
		}
		if st := call.Status(20 * time.Millisecond); st != nil {
			t.Fatalf("a call without a window: %v", st)
		}
		reset = call.Reset
	}
	again := func(name string, want Code) {
		t.Helper()
		var got Code
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			call := a.open(other, statusMethod)
			if err := call.Send(good, 1<<14, true); err != nil {
				t.Fatal(err)
			}
			st := call.Status(5 * time.Second)
			if st == nil {
				t.Fatalf("%s: the call goes on", name)
			}
			if got = ""; st.Err() != nil {
				got = FromError(st.Err()).Code
			}
			if got == want {
				return
			}
		}
		t.Errorf("%s: %q, want %q", name, got, want)
	}
	again("while responses are not received", Busy)
	if err := reset(); err != nil {
		t.Fatal(err)
	}
	again("after one of them was reset", "")
	conn.Close()
	again("after their connection was closed", "")
	// All places are free again, so that as many calls can wait as before.
	conn = a.dial(lone)
	if err := conn.Window(0); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(5 * time.Second)
	for waiting := 0; waiting < most; {
		call := a.open(conn, statusMethod)
		if err := call.Send(good, 1<<14, true); err != nil {
			t.Fatal(err)
		}
		if st := call.Status(100 * time.Millisecond); st == nil {
			waiting++
		} else if time.Now().After(end) {
			t.Fatalf("%d calls wait, want %d: %v", waiting, most, st)
		}
	}
}
