package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	"github.com/lodge-mpc/lodge/services/pki"
)

// fetcher is a server whose Fetch is the test's; clients may call nothing else.
type fetcher struct {
	triplesv1.UnimplementedTriplesServiceServer
	fetch func(stream triplesv1.TriplesService_FetchServer) error
}

func (f fetcher) Fetch(_ *triplesv1.FetchRequest, stream triplesv1.TriplesService_FetchServer) error {
	return f.fetch(stream)
}

func (fetcher) Cancel(context.Context, *jobv1.CancelRequest) (*jobv1.CancelResponse, error) {
	return &jobv1.CancelResponse{}, nil
}

// serveFetch gives a client's connection and the coordinator's.
func serveFetch(t *testing.T, stall time.Duration, fetch func(stream triplesv1.TriplesService_FetchServer) error) (client, coordinator triplesv1.TriplesServiceClient) {
	t.Helper()
	w := newWorld(t)
	o := Options{Credentials: w.credentials(w.ca, pki.Leaf{Identity: alice}), Directory: NewDirectory(), Rules: Rules{}, StallTimeout: stall}
	for id, p := range map[string]Principal{
		"spiffe://lodge/client/mpc": {Role: Client, Name: "mpc", Party: -1},
		coord:                       {Role: Coordinator, Name: "coordinator", Party: -1},
	} {
		if err := o.Directory.Add(id, p); err != nil {
			t.Fatal(err)
		}
	}
	d := triplesv1.TriplesService_ServiceDesc
	for _, m := range d.Methods {
		o.Rules["/"+d.ServiceName+"/"+m.MethodName] = Allow(Coordinator)
	}
	for _, m := range d.Streams {
		o.Rules["/"+d.ServiceName+"/"+m.StreamName] = Allow(Client)
	}
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	triplesv1.RegisterTriplesServiceServer(s, fetcher{fetch: fetch})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	}()
	dial := func(identity string) triplesv1.TriplesServiceClient {
		conn, err := Dial(l.Addr().String(), alice, w.credentials(w.ca, pki.Leaf{Identity: identity}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return triplesv1.NewTriplesServiceClient(conn)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Stop(ctx)
	})
	return dial("spiffe://lodge/client/mpc"), dial(coord)
}

// Who may not call is refused before the request is read, and who may is held to small requests.
func TestRequestsAreAuthorisedBeforeTheyAreRead(t *testing.T) {
	client, coordinator := serveFetch(t, 0, func(triplesv1.TriplesService_FetchServer) error { return nil })
	large := grpc.MaxCallSendMsgSize(4 * MaxMessage)
	for _, size := range []int{0, MaxRequest, 2 * MaxMessage} {
		_, err := client.Cancel(t.Context(), &jobv1.CancelRequest{Reason: strings.Repeat("x", size)}, large)
		if err == nil || FromError(err).Code != Forbidden {
			t.Errorf("%d bytes from a client: %v", size, err)
		}
	}
	for size, want := range map[int]Code{MaxRequest - 100: "", MaxRequest: TooLarge, 2 * MaxMessage: TooLarge} {
		_, err := coordinator.Cancel(t.Context(), &jobv1.CancelRequest{Reason: strings.Repeat("x", size)}, large)
		if want == "" && err != nil || want != "" && (err == nil || FromError(err).Code != want) {
			t.Errorf("%d bytes from the coordinator: %v, want %q", size, err, want)
		}
	}
	stream, err := client.Fetch(t.Context(), &triplesv1.FetchRequest{BatchId: strings.Repeat("x", MaxRequest)})
	if err == nil {
		_, err = stream.Recv()
	}
	if err == nil || FromError(err).Code != TooLarge {
		t.Errorf("a large request for a stream: %v", err)
	}
}

func TestStreamsOfOneClientAreBounded(t *testing.T) {
	leave := make(chan struct{})
	client, _ := serveFetch(t, 0, func(stream triplesv1.TriplesService_FetchServer) error {
		if err := stream.Send(&triplesv1.FetchResponse{}); err != nil {
			return err
		}
		<-leave
		return nil
	})
	open := func() (triplesv1.TriplesService_FetchClient, error) {
		stream, err := client.Fetch(t.Context(), &triplesv1.FetchRequest{})
		if err != nil {
			return nil, err
		}
		_, err = stream.Recv()
		return stream, err
	}
	var held []triplesv1.TriplesService_FetchClient
	for range clientStreams {
		stream, err := open()
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, stream)
	}
	if _, err := open(); err == nil || FromError(err).Code != Busy {
		t.Errorf("one more: %v", err)
	}
	close(leave)
	for _, stream := range held {
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
	if _, err := open(); err != nil {
		t.Errorf("after all have ended: %v", err)
	}
}

func TestWhoReadsNothingIsLeft(t *testing.T) {
	ended := make(chan error, 1)
	client, _ := serveFetch(t, 50*time.Millisecond, func(stream triplesv1.TriplesService_FetchServer) error {
		for {
			if err := stream.Send(&triplesv1.FetchResponse{Chunk: make([]byte, 1<<20)}); err != nil {
				ended <- err
				return err
			}
		}
	})
	if _, err := client.Fetch(t.Context(), &triplesv1.FetchRequest{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if FromError(err).Code != TimedOut {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the stream goes on")
	}
}
