package party

import (
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	decryptionv1 "github.com/lodge-mpc/lodge/proto/lodge/decryption/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A party with a low disk rejects every method that begins new work, including multi-key
// evaluation, with disk_low. A party with enough space does not.
func TestLowDiskRefusesNewWork(t *testing.T) {
	pin := withContext(t)
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		pin(i, f)
		for c := range f.Clients {
			for _, p := range []string{config.PermDecrypt, config.PermApprove} {
				if !slices.Contains(f.Clients[c].Permissions, p) {
					f.Clients[c].Permissions = append(f.Clients[c].Permissions, p)
				}
			}
		}
		if i == 0 {
			f.Disk.MinFree = 1 << 62 // no disk has so much
		}
	})
	call := func(conn *grpc.ClientConn, method string) error {
		stream, err := conn.NewStream(n.context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err != nil {
			return err
		}
		_ = stream.SendMsg(&emptypb.Empty{}) // RecvMsg returns the error
		_ = stream.CloseSend()
		return stream.RecvMsg(&emptypb.Empty{})
	}
	low, enough := n.nodes[0], n.nodes[1]
	for _, c := range []struct {
		method      string
		coordinator bool
	}{
		{keygenv1.KeygenService_Start_FullMethodName, true},
		{triplesv1.TriplesService_Start_FullMethodName, true},
		{popkv1.PopkService_Start_FullMethodName, true},
		{thresholdv1.ThresholdService_Start_FullMethodName, true},
		{tuplesv1.TuplesService_Propose_FullMethodName, true},
		{thresholdv1.ThresholdService_Decrypt_FullMethodName, false},
		{thresholdv1.ThresholdService_ApproveDecryption_FullMethodName, false},
		{decryptionv1.DecryptionService_DecryptShare_FullMethodName, false},
		{multikeyv1.KeysService_MakeKeys_FullMethodName, false},
		{multikeyv1.EvaluationService_Submit_FullMethodName, false},
		{linearv1.LinearService_Multiply_FullMethodName, false},
		{linearv1.LinearService_Ask_FullMethodName, false},
		{linearv1.LinearService_Answer_FullMethodName, false},
	} {
		if !newWork[c.method] {
			t.Errorf("%s counts as no new work", c.method)
		}
		conn := func(x *node) *grpc.ClientConn {
			if c.coordinator {
				return x.coordinator
			}
			return x.client
		}
		if e := rpc.FromError(call(conn(low), c.method)); e == nil || e.Code != rpc.DiskLow || e.Next == "" {
			t.Errorf("%s on a low disk: %v", c.method, e)
		}
		if e := rpc.FromError(call(conn(enough), c.method)); e != nil && (e.Code == rpc.DiskLow || e.Code == rpc.Forbidden) {
			t.Errorf("%s with enough space: %v", c.method, e)
		}
	}
}
