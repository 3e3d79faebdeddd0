package threshold

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/lwe"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
)

func fourParties() *Client {
	return Over(lodge.PartiesOver(make([]string, 4), make([]*grpc.ClientConn, 4)))
}

// stated is a party's description of keys held by 2 of 3 holders, at places 0, 2 and 3.
func stated(t *testing.T, change func(*thresholdv1.ThresholdKey)) *thresholdv1.ThresholdKey {
	t.Helper()
	set, err := lwe.Lookup("insecure-L8-50")
	if err != nil {
		t.Fatal(err)
	}
	hash := set.Hash()
	k := &thresholdv1.ThresholdKey{
		Epoch: 7, State: "active", Params: set.Name, ParamsHash: hash[:], Digest: make([]byte, 32), Threshold: 1, Holders: []int32{0, 2, 3},
		Masks: []*thresholdv1.MaskStock{{Quorum: []uint32{0, 2}, Form: jobv1.MaskForm_MASK_FORM_EXACT, Free: 9}},
	}
	if change != nil {
		change(k)
	}
	return k
}

// The parties' descriptions of keys are accepted if they agree and are plausible.
func TestMerge(t *testing.T) {
	c := fourParties()
	less := stated(t, func(k *thresholdv1.ThresholdKey) { k.Masks[0].Free = 5 })
	stranger := stated(t, func(k *thresholdv1.ThresholdKey) { k.Masks = nil })
	k, err := c.merge([]said{{0, stated(t, nil)}, {1, stranger}, {2, less}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.Up, []int{0, 2}) {
		t.Errorf("%v are up; party 1 holds no share", k.Up)
	}
	if len(k.Masks) != 1 || k.Masks[0].Free != 5 {
		t.Errorf("masks %+v: only masks that all members have are usable", k.Masks)
	}
	for name, change := range map[string]func(*thresholdv1.ThresholdKey){
		"threshold of none":   func(k *thresholdv1.ThresholdKey) { k.Threshold = 0 },
		"no honest majority":  func(k *thresholdv1.ThresholdKey) { k.Threshold = 2 },
		"one holder":          func(k *thresholdv1.ThresholdKey) { k.Holders = []int32{0} },
		"a holder twice":      func(k *thresholdv1.ThresholdKey) { k.Holders = []int32{0, 2, 2} },
		"a holder from away":  func(k *thresholdv1.ThresholdKey) { k.Holders = []int32{0, 2, 4} },
		"unknown set":         func(k *thresholdv1.ThresholdKey) { k.Params = "L0" },
		"set of another hash": func(k *thresholdv1.ThresholdKey) { k.ParamsHash = make([]byte, 32) },
	} {
		if _, err := c.merge([]said{{0, stated(t, change)}}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	erased := stated(t, func(k *thresholdv1.ThresholdKey) {
		k.State, k.Digest, k.Masks = "retired", append([]byte{1}, k.Digest[1:]...), nil
	})
	for _, by := range [][]said{{{0, erased}, {1, erased}, {2, stated(t, nil)}}, {{0, stated(t, nil)}, {1, erased}}} {
		if k, err := c.merge(by); err != nil || k.State != "active" || k.Digest != [32]byte{} || len(k.Up) != 1 {
			t.Errorf("next to different keys that are erased: %+v, %v", k, err)
		}
	}
	if k, err := c.merge([]said{{0, erased}}); err != nil || k.State != "retired" {
		t.Errorf("erased: %+v, %v", k, err)
	}
	for name, change := range map[string]func(*thresholdv1.ThresholdKey){
		"digest":    func(k *thresholdv1.ThresholdKey) { k.Digest = append([]byte{1}, k.Digest[1:]...) },
		"holders":   func(k *thresholdv1.ThresholdKey) { k.Holders = []int32{0, 3, 2} },
		"threshold": func(k *thresholdv1.ThresholdKey) { k.Threshold = 2 },
	} {
		_, err := c.merge([]said{{0, stated(t, nil)}, {2, stated(t, change)}})
		if e := lodge.FromError(err); err == nil || e.Code != lodge.Conflict || name == "digest" && !strings.Contains(e.What, "keys 0100000000000000 with a threshold of 1, and keys 0000000000000000 with 1") {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

// Among the quorums with the fewest failures, the client chooses the one with most masks, and none
// that ran out of masks.
func TestChoose(t *testing.T) {
	k := &Key{Masks: []Masks{{Quorum: []int{0, 1}, Form: "exact", Free: 9}, {Quorum: []int{0, 2}, Form: "exact", Free: 5}, {Quorum: []int{1, 2}, Form: "paper", Free: 50}}}
	for _, c := range []struct {
		failures map[int]int
		empty    map[string]bool
		paper    bool
		want     []int
	}{
		{nil, nil, false, []int{0, 1}}, {map[int]int{1: 1}, nil, false, []int{0, 2}}, {map[int]int{1: 1, 2: 2}, nil, false, []int{0, 1}},
		{nil, map[string]bool{"[0 1]": true}, false, []int{0, 2}}, {nil, nil, true, []int{1, 2}},
	} {
		got, err := choose(k, &Request{Paper: c.paper}, c.failures, c.empty)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	none := map[string]bool{"[0 1]": true, "[0 2]": true}
	if _, err := choose(k, &Request{}, nil, none); lodge.FromError(err).Code != lodge.OutOfStock {
		t.Errorf("%v", err)
	}
	// If a quorum may have decrypted the ciphertexts before, it can be chosen again without masks.
	k.Threshold, k.Up, k.Decrypted = 1, []int{3, 0, 2}, map[int]uint64{0: 0, 2: 9, 3: 9}
	for _, want := range [][]int{{0, 3}, {2, 3}} {
		got, err := choose(k, &Request{}, nil, none)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v: want %v", got, err, want)
		}
		none[fmt.Sprint(got)] = true
	}
	if _, err := choose(k, &Request{}, nil, none); lodge.FromError(err).Code != lodge.OutOfStock {
		t.Errorf("all quorums were tried: %v", err)
	}
}
