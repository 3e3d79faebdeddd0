package multikey

import (
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
)

// silent is a party that accepts calls and sends nothing.
type silent struct {
	multikeyv1.UnimplementedRegistryServiceServer
	called chan struct{}
}

func (s silent) GetPublished(_ *multikeyv1.GetPublishedRequest, stream multikeyv1.RegistryService_GetPublishedServer) error {
	close(s.called)
	<-stream.Context().Done()
	return stream.Context().Err()
}

// A party that stalls is unavailable, so that the caller can use another one.
func TestKeysOfAPartyThatStalls(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, called := grpc.NewServer(), make(chan struct{})
	multikeyv1.RegisterRegistryServiceServer(server, silent{called: called})
	go server.Serve(l) //nolint:errcheck // ends with Stop
	defer server.Stop()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p := At(conn, scheme(t, [32]byte{1}, "insecure-M8-32"))
	p.stall = time.Second
	_, err = p.Keys(t.Context(), multikey.KeyID{}, nil)
	if e := new(lodge.Error); !errors.As(err, &e) || e.Code != lodge.Unavailable || e.What != "no data received for 1s" {
		t.Errorf("%v", err)
	}
	select {
	case <-called:
	default:
		t.Error("the party received no request")
	}
}
