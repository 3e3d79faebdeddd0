package vault

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// A shape comes back from records as it was, and records of other tuples have none.
func TestShapesInRecords(t *testing.T) {
	whole := kind.Shape{Convolution: kind.ConvolutionShape{Channels: 1, Height: 2, Width: 3, Outputs: 4, KernelHeight: 5, KernelWidth: 6,
		StrideHeight: 7, StrideWidth: 8, PaddingHeight: 9, PaddingWidth: 10}}
	c := stock.Class{}.Shaped(whole).Convolution
	for _, s := range []kind.Shape{whole, {Matrix: kind.MatrixShape{Rows: 1, Inner: 2, Cols: 3}}, {}} {
		if got := (stock.Class{}).Shaped(s).Shape(); got != s {
			t.Errorf("%v became %v", s, got)
		}
		if got := (stock.Batch{}).Shaped(s); got.Class().Shape() != s {
			t.Errorf("%v became %v", s, got.Class())
		}
	}
	b := stock.Batch{ID: "a", Kind: "convolution", Convolution: c}
	record, err := json.Marshal(&b)
	if err != nil {
		t.Fatal(err)
	}
	var again stock.Batch
	if err := json.Unmarshal(record, &again); err != nil || again.Class() != b.Class() || again.Convolution != c {
		t.Errorf("%+v, %v", again, err)
	}
	if want := `"convolution":{"channels":1,"height":2,"width":3,"outputs":4,"kernel_height":5,"kernel_width":6,"stride_height":7,"stride_width":8,` +
		`"padding_height":9,"padding_width":10}`; !strings.Contains(string(record), want) {
		t.Errorf("%s, without %s", record, want)
	}
	if (&stock.Batch{}).Class() == b.Class() {
		t.Error("a class does not say which convolution it is")
	}
	if record, err = json.Marshal(&stock.Batch{ID: "a", Kind: "scalar"}); err != nil || len(record) == 0 || says(record, "convolution") {
		t.Errorf("%s, %v", record, err)
	}
}

func says(record []byte, key string) bool {
	var all map[string]any
	_ = json.Unmarshal(record, &all)
	_, ok := all[key]
	return ok
}
