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

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
)

// fetcher is a server with the test's Fetch, the only method that clients may call.
type fetcher struct {
	tuplesv1.UnimplementedTuplesServiceServer
	fetch func(stream tuplesv1.TuplesService_FetchServer) error
}

func (f fetcher) Fetch(_ *tuplesv1.FetchRequest, stream tuplesv1.TuplesService_FetchServer) error {
	return f.fetch(stream)
}

func (fetcher) ReportFailedCheck(context.Context, *tuplesv1.ReportFailedCheckRequest) (*tuplesv1.ReportFailedCheckResponse, error) {
	return &tuplesv1.ReportFailedCheckResponse{}, nil
}

// serveFetch returns the connections of a client and of the coordinator.
func serveFetch(t *testing.T, stall time.Duration, fetch func(stream tuplesv1.TuplesService_FetchServer) error) (client, coordinator tuplesv1.TuplesServiceClient) {
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
	d := tuplesv1.TuplesService_ServiceDesc
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
	tuplesv1.RegisterTuplesServiceServer(s, fetcher{fetch: fetch})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	}()
	dial := func(identity string) tuplesv1.TuplesServiceClient {
		conn, err := Dial(l.Addr().String(), alice, w.credentials(w.ca, pki.Leaf{Identity: identity}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return tuplesv1.NewTuplesServiceClient(conn)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Stop(ctx)
	})
	return dial("spiffe://lodge/client/mpc"), dial(coord)
}

// An unauthorised caller is rejected before the request is read, and an authorised one may send
// only small requests.
func TestRequestsAreAuthorisedBeforeTheyAreRead(t *testing.T) {
	client, coordinator := serveFetch(t, 0, func(tuplesv1.TuplesService_FetchServer) error { return nil })
	large := grpc.MaxCallSendMsgSize(4 * MaxMessage)
	for _, size := range []int{0, MaxRequest, 2 * MaxMessage} {
		_, err := client.ReportFailedCheck(t.Context(), &tuplesv1.ReportFailedCheckRequest{Reason: strings.Repeat("x", size)}, large)
		if err == nil || FromError(err).Code != Forbidden {
			t.Errorf("%d bytes from a client: %v", size, err)
		}
	}
	for size, want := range map[int]Code{MaxRequest - 100: "", MaxRequest: TooLarge, 2 * MaxMessage: TooLarge} {
		_, err := coordinator.ReportFailedCheck(t.Context(), &tuplesv1.ReportFailedCheckRequest{Reason: strings.Repeat("x", size)}, large)
		if want == "" && err != nil || want != "" && (err == nil || FromError(err).Code != want) {
			t.Errorf("%d bytes from the coordinator: %v, want %q", size, err, want)
		}
	}
	stream, err := client.Fetch(t.Context(), &tuplesv1.FetchRequest{ReservationId: strings.Repeat("x", MaxRequest)})
	if err == nil {
		_, err = stream.Recv()
	}
	if err == nil || FromError(err).Code != TooLarge {
		t.Errorf("a large request for a stream: %v", err)
	}
}

func TestStreamsOfOneClientAreBounded(t *testing.T) {
	leave := make(chan struct{})
	client, _ := serveFetch(t, 0, func(stream tuplesv1.TuplesService_FetchServer) error {
		if err := stream.Send(&tuplesv1.FetchResponse{}); err != nil {
			return err
		}
		<-leave
		return nil
	})
	open := func() (tuplesv1.TuplesService_FetchClient, error) {
		stream, err := client.Fetch(t.Context(), &tuplesv1.FetchRequest{})
		if err != nil {
			return nil, err
		}
		_, err = stream.Recv()
		return stream, err
	}
	var held []tuplesv1.TuplesService_FetchClient
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
	client, _ := serveFetch(t, 50*time.Millisecond, func(stream tuplesv1.TuplesService_FetchServer) error {
		for {
			if err := stream.Send(&tuplesv1.FetchResponse{Chunk: make([]byte, 1<<20)}); err != nil {
				ended <- err
				return err
			}
		}
	})
	if _, err := client.Fetch(t.Context(), &tuplesv1.FetchRequest{}); err != nil {
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
