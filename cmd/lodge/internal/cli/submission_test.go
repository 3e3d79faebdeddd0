package cli

import (
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		count, most uint64
		want        []uint64
	}{
		{1, 1, []uint64{1}}, {7, 10, []uint64{7}}, {10, 10, []uint64{10}}, {11, 10, []uint64{10, 1}}, {30, 10, []uint64{10, 10, 10}},
	} {
		if got, err := Split(c.count, c.most); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d of at most %d: %v, %v", c.count, c.most, got, err)
		}
	}
	if got, err := Split(10*MaxSubmitted, 10); err != nil || len(got) != MaxSubmitted {
		t.Errorf("%d jobs, %v", len(got), err)
	}
	for _, most := range []uint64{0, 10} {
		if _, err := Split(10*MaxSubmitted+1, most); rpc.FromError(err).Code != rpc.Invalid {
			t.Errorf("at most %d: %v", most, err)
		}
	}
}
