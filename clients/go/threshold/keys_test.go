package threshold

import (
	"crypto/sha256"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/bgv"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
)

// holder sends the keys that it has.
type holder struct {
	thresholdv1.UnimplementedThresholdServiceServer
	head   *thresholdv1.GetKeysResponse
	chunks [][]byte
}

func (h *holder) GetKeys(r *thresholdv1.GetKeysRequest, stream thresholdv1.ThresholdService_GetKeysServer) error {
	if err := stream.Send(h.head); err != nil {
		return err
	}
	for i := int(r.GetFirst()); i < len(h.chunks); i++ {
		if err := stream.Send(&thresholdv1.GetKeysResponse{Index: uint32(i), Chunk: h.chunks[i]}); err != nil {
			return err
		}
	}
	return nil
}

func (h *holder) serve(t *testing.T) *grpc.ClientConn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	thresholdv1.RegisterThresholdServiceServer(server, h)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Keys received from a lying holder before it stops do not invalidate those received from an honest
// one afterwards.
func TestKeysAfterLies(t *testing.T) {
	s, err := bgvOf("insecure-B5-8")
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	keys, err := s.NewKeys([bgv.SeedSize]byte{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	digest := s.KeysDigest(keys)
	honest := &holder{head: &thresholdv1.GetKeysResponse{Header: s.KeysHeader(keys), Digest: digest[:]}}
	for i, d := range s.ChunkDigests(keys) {
		honest.head.ChunkDigests = append(honest.head.ChunkDigests, d[:])
		honest.chunks = append(honest.chunks, s.AppendChunk(nil, keys, i))
	}
	lie := func(change func(*thresholdv1.GetKeysResponse)) *holder {
		h := &holder{head: &thresholdv1.GetKeysResponse{Header: slices.Clone(honest.head.Header), Digest: digest[:], ChunkDigests: slices.Clone(honest.head.ChunkDigests)}}
		change(h.head)
		return h
	}
	other := slices.Clone(honest.chunks[0])
	other[0] ^= 1
	sum := sha256.Sum256(other)
	chunk := lie(func(m *thresholdv1.GetKeysResponse) { m.ChunkDigests[0] = sum[:] })
	chunk.chunks = [][]byte{other}
	for what, liar := range map[string]*holder{
		"another seed":  lie(func(m *thresholdv1.GetKeysResponse) { m.Header[sha256.Size] ^= 1 }),
		"another chunk": chunk,
		"short digests": lie(func(m *thresholdv1.GetKeysResponse) { m.ChunkDigests[0] = m.ChunkDigests[0][:31] }),
		"fewer chunks":  lie(func(m *thresholdv1.GetKeysResponse) { m.ChunkDigests = m.ChunkDigests[1:] }),
	} {
		c := Over(lodge.PartiesOver([]string{"p0", "p1"}, []*grpc.ClientConn{liar.serve(t), honest.serve(t)}))
		k := &Key{Epoch: 1, Digest: digest, Params: s.Name, Up: []int{0, 1}, bgv: s}
		if _, _, err := c.BGVKeys(t.Context(), k, nil); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := c.BGVPublicKey(t.Context(), k); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
