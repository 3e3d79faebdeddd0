package multikey

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
)

// owner lists its keys, or does not respond if they are nil.
type owner struct {
	multikeyv1.UnimplementedKeysServiceServer
	keys []multikey.KeyID
}

func (o *owner) ListKeys(ctx context.Context, _ *multikeyv1.ListKeysRequest) (*multikeyv1.ListKeysResponse, error) {
	if o.keys == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	out := &multikeyv1.ListKeysResponse{}
	for i, id := range o.keys {
		out.Keys = append(out.Keys, &multikeyv1.MultikeyKeys{Version: uint64(i + 1), Key: id[:]})
	}
	return out, nil
}

func clientOf(t *testing.T, list ...*owner) *Client {
	t.Helper()
	var names []string
	var conns []*grpc.ClientConn
	for i, o := range list {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		multikeyv1.RegisterKeysServiceServer(server, o)
		go server.Serve(l) //nolint:errcheck // ends with Stop
		t.Cleanup(server.Stop)
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		names, conns = append(names, string(rune('a'+i))), append(conns, conn)
	}
	c := over(lodge.PartiesOver(names, conns))
	c.listing = 3 * time.Second
	return c
}

// A party that makes false claims about its keys, or does not respond, does not prevent decryption
// under the keys of others.
func TestOwners(t *testing.T) {
	under := func(ids ...byte) *multikey.Ciphertext {
		c := &multikey.Ciphertext{}
		for _, id := range ids {
			c.Parts = append(c.Parts, multikey.Part{Key: multikey.KeyID{id}})
		}
		return c
	}
	c := clientOf(t, &owner{keys: []multikey.KeyID{{1}, {1}, {2}}}, &owner{keys: []multikey.KeyID{{3}, {2}}}, &owner{})
	o := c.owners(t.Context())
	if o.of[multikey.KeyID{1}] != 0 || o.of[multikey.KeyID{3}] != 1 || len(o.of) != 2 || len(o.down) != 1 || o.down[2] == nil {
		t.Errorf("%+v", o)
	}
	for _, x := range []struct {
		c    *multikey.Ciphertext
		code lodge.Code
		says string
	}{
		{under(1, 3), "", ""},
		{under(1, 2), lodge.Conflict, "claim the multi-key keys 0200000000000000: a, b"},
		{under(1, 4), lodge.Unavailable, "no answer of c"},
	} {
		err := c.known(x.c, o)
		var failed *lodge.Error
		if x.code == "" && err != nil || x.code != "" && (!errors.As(err, &failed) || failed.Code != x.code || !strings.Contains(failed.What, x.says)) {
			t.Errorf("%v: %v", x.c.Keys(), err)
		}
	}
}
