package exchange

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
)

// For any frames, accept returns well-formed parts of messages or a blame.
func FuzzAccept(f *testing.F) {
	seed := func(frames ...*exchangev1.Frame) {
		var all []byte
		for _, fr := range frames {
			b, err := proto.Marshal(fr)
			if err != nil {
				f.Fatal(err)
			}
			all = append(append(all, byte(len(b))), b...)
		}
		f.Add(all)
	}
	seed(&exchangev1.Frame{Start: &exchangev1.Start{Name: "x", Frames: 1}, End: &exchangev1.End{}})
	seed(&exchangev1.Frame{Start: &exchangev1.Start{Name: "x", Frames: 2}, Data: []byte("a")},
		&exchangev1.Frame{Seq: 1, Data: []byte("b"), End: &exchangev1.End{Digest: []byte("d"), Signature: []byte("s")}})
	f.Fuzz(func(t *testing.T, all []byte) {
		b := &inbox{}
		index, count := 0, 0
		for len(all) > 0 {
			n := min(int(all[0]), len(all)-1)
			fr := new(exchangev1.Frame)
			if proto.Unmarshal(all[1:1+n], fr) != nil {
				return
			}
			all = all[1+n:]
			got, err := b.accept(1, fr)
			if err != nil {
				var blame *round.Blame
				if !errors.As(err, &blame) || blame.Party != 1 {
					t.Fatalf("got %v", err)
				}
				return
			}
			if index == 0 {
				count = got.Count
			}
			if got.Index != index || got.Count != count || got.Index >= got.Count || got.Name == "" || got.Last() != (fr.End != nil) {
				t.Fatalf("frame %+v", got)
			}
			if index++; got.Last() {
				index = 0
			}
		}
	})
}
