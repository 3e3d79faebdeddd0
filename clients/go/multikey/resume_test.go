package multikey

import (
	"errors"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	"github.com/lodge-mpc/lodge/engine/sample"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
)

// party responds as a test specifies.
type party struct {
	multikeyv1.UnimplementedRegistryServiceServer
	multikeyv1.UnimplementedEvaluationServiceServer
	keys   *multikey.Keys
	each   func(asked, chunk int) error // called before each chunk, with the number of the request
	first  []uint32                     // first chunk of each request
	result *multikeyv1.GetResultResponse
}

func (p *party) GetPublished(q *multikeyv1.GetPublishedRequest, stream multikeyv1.RegistryService_GetPublishedServer) error {
	p.first = append(p.first, q.GetFirst())
	head := &multikeyv1.GetPublishedResponse{Header: p.keys.Header()}
	digests := p.keys.ChunkDigests()
	for _, d := range digests {
		head.ChunkDigests = append(head.ChunkDigests, d[:])
	}
	if err := stream.Send(head); err != nil {
		return err
	}
	for i := int(q.GetFirst()); i < len(digests); i++ {
		if err := p.each(len(p.first), i); err != nil {
			return err
		}
		if err := stream.Send(&multikeyv1.GetPublishedResponse{Index: uint32(i), Chunk: p.keys.AppendChunk(nil, i)}); err != nil {
			return err
		}
	}
	return nil
}

func (p *party) GetResult(_ *multikeyv1.GetResultRequest, stream multikeyv1.EvaluationService_GetResultServer) error {
	return stream.Send(p.result)
}

// serve starts a party.
func serve(t *testing.T, p *party, s *multikey.Scheme) *Party {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	multikeyv1.RegisterRegistryServiceServer(server, p)
	multikeyv1.RegisterEvaluationServiceServer(server, p)
	go server.Serve(l) //nolint:errcheck // ends with Stop
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return At(conn, s)
}

// A download of keys resumes after broken connections, and ends if no data arrives.
func TestKeysAreResumed(t *testing.T) {
	s := scheme(t, multikey.StandardSeed(), "insecure-M8-32")
	_, keys := s.Generate(7, sample.NewSource(make([]byte, 32)).Sub("resumed"), 2)
	broken := status.Error(codes.Unavailable, "broken")
	p := &party{keys: keys, each: func(asked, chunk int) error {
		if chunk == asked { // one more in each request
			return broken
		}
		return nil
	}}
	if s.Chunks() < 2 {
		t.Fatalf("%d chunks are too few to resume", s.Chunks())
	}
	got, err := serve(t, p, s).Keys(t.Context(), keys.ID(), nil)
	if err != nil || got.ID() != keys.ID() {
		t.Fatal(err)
	}
	for i, first := range p.first {
		if int(first) != i {
			t.Errorf("chunks were requested from %v on", p.first)
		}
	}
	p.each = func(int, int) error { return broken }
	var failed *lodge.Error
	if _, err := serve(t, p, s).Keys(t.Context(), keys.ID(), nil); !errors.As(err, &failed) || failed.Code != lodge.Unavailable {
		t.Errorf("without data: %v", err)
	}
}

// The stated size of a result uses no memory before its data arrives.
func TestResultsThatCannotBe(t *testing.T) {
	s := scheme(t, multikey.StandardSeed(), "insecure-M8-32")
	all := slices.Repeat([][]byte{make([]byte, 32)}, s.Parties)
	huge := &multikeyv1.InputGroup{Form: multikeyv1.InputForm_INPUT_FORM_CIPHERTEXTS, Count: circuit.MaxWires, Keys: all}
	bytes := uint64(circuit.MaxWires) * uint64(s.CiphertextSize(len(all)))
	p := &party{result: &multikeyv1.GetResultResponse{Bytes: bytes}}
	for name, list := range map[string][]*multikeyv1.InputGroup{
		"that does not come": {huge}, "of more bits than can be": slices.Repeat([]*multikeyv1.InputGroup{huge}, 100_000),
	} {
		var failed *lodge.Error
		_, err := serve(t, p, s).Result(t.Context(), &multikeyv1.EvaluationJob{ResultDigest: make([]byte, 32), Results: list}, nil)
		if !errors.As(err, &failed) || failed.Code != lodge.Conflict {
			t.Errorf("a result %s: %v", name, err)
		}
	}
}
