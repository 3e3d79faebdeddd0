package rpc

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
)

func limited(t *testing.T, rates map[string]Rate) *Directory {
	t.Helper()
	d := NewDirectory()
	for name, r := range rates {
		if err := d.Add("spiffe://lodge/client/"+name, Principal{Role: Client, Name: name, Rate: r, Permissions: []string{"status"}}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// For any pattern of calls, a client gets its burst and then its rate. If it waits for the time in
// the error, its next call is not refused.
func TestBuckets(t *testing.T) {
	b := newBuckets(limited(t, map[string]Rate{"mpc": {PerSecond: 10, Burst: 5}, "free": {}}))
	mpc := Principal{Role: Client, Name: "mpc", Rate: Rate{10, 5}}
	rng := rand.New(rand.NewPCG(1, 2))
	start := time.Unix(1000, 0)
	now, taken := start, 0
	for range 10_000 {
		refused := b.take(mpc, now)
		if refused == nil {
			taken++
		} else {
			if refused.Code != RateLimited || refused.Retry <= 0 || refused.Retry > 102*time.Millisecond || !strings.Contains(refused.Next, refused.Retry.String()) {
				t.Fatalf("got %+v", refused)
			}
			if rng.IntN(3) == 0 {
				if now = now.Add(refused.Retry); b.take(mpc, now) != nil {
					t.Fatal("refused again")
				}
				taken++
			}
		}
		now = now.Add(time.Duration(rng.IntN(60)) * time.Millisecond)
	}
	if most := 5 + int(now.Sub(start).Seconds()*10) + 1; taken > most || taken < most*9/10 {
		t.Errorf("%d calls in %s, at most %d", taken, now.Sub(start), most)
	}
	for range 1000 {
		for _, p := range []Principal{{Role: Client, Name: "free"}, {Role: Peer, Name: "mpc"}, {Role: Client, Name: "unknown"}} {
			if refused := b.take(p, now); refused != nil {
				t.Fatalf("%v: %v", p, refused)
			}
		}
	}
	if len(b) != 1 {
		t.Errorf("%d buckets", len(b))
	}
}

// One bucket limits all connections of a client together, and no other client.
func TestRateOfAClient(t *testing.T) {
	w := newWorld(t)
	addr, _ := w.serve(Options{Directory: limited(t, map[string]Rate{"mpc": {PerSecond: 0.01, Burst: 3}, "other": {PerSecond: 0.01, Burst: 3}})}, whoami)
	for _, name := range []string{"mpc", "other"} {
		c := w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/client/" + name})
		var mu sync.Mutex
		var all sync.WaitGroup
		served := 0
		for range 8 {
			all.Go(func() {
				_, err := w.call(addr, alice, c)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					served++
					return
				}
				e := FromError(err)
				if e.Code != RateLimited || e.Retry < 50*time.Second || e.Retry > 100*time.Second+time.Millisecond {
					t.Errorf("got %+v", e)
				}
				s, _ := status.FromError(err)
				delay := time.Duration(0)
				for _, d := range s.Details() {
					if d, ok := d.(*errdetails.RetryInfo); ok {
						delay = d.GetRetryDelay().AsDuration()
					}
				}
				if s.Code() != codes.ResourceExhausted || delay != e.Retry {
					t.Errorf("status %v, delay %s", s.Code(), delay)
				}
			})
		}
		all.Wait()
		if served != 3 {
			t.Errorf("%s: %d calls were served", name, served)
		}
	}
}

// Refused calls count towards the rate, so that a caller without permission is limited too.
func TestRefusedCallsCount(t *testing.T) {
	w := newWorld(t)
	addr, _ := w.serve(Options{
		Directory: limited(t, map[string]Rate{"mpc": {PerSecond: 0.01, Burst: 2}}), Rules: Rules{statusMethod: Allow(Peer)},
	}, whoami)
	c := w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/client/mpc"})
	conn, err := Dial(addr, alice, c)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i, want := range []Code{Forbidden, Forbidden, RateLimited, RateLimited} {
		_, err := statusv1.NewStatusServiceClient(conn).GetStatus(t.Context(), &statusv1.GetStatusRequest{})
		if e := FromError(err); e == nil || e.Code != want {
			t.Errorf("call %d: %v", i, e)
		}
	}
}

func TestKindsOfAClient(t *testing.T) {
	all, some := Principal{}, Principal{Kinds: []string{"scalar", "bit"}}
	if !all.MayDraw("scalar") || !all.MayDraw("matrix") || !some.MayDraw("bit") || some.MayDraw("matrix") || some.MayDraw("") {
		t.Error("kinds")
	}
}
