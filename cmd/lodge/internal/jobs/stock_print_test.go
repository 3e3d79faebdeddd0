package jobs

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

func TestPrintStock(t *testing.T) {
	scalar := &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_SCALAR, Params: "S", Field: "p128"}
	policy := &stockv1.Policy{Class: scalar, Low: 100, High: 200, Batch: 50, Priority: 7, Paused: true}
	list := []*stockv1.Stock{
		{Class: scalar, Epoch: 1, Available: 12, Reserved: 3, Consumed: 4, Lost: 5, InProduction: 50, MadePerSecond: 1234.5, ReservedPerSecond: 2,
			TimeToEmpty: durationpb.New(90 * time.Second), Policy: policy, HeldBack: "paused\x1b"},
		{Class: &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_MATRIX, Params: "S", Field: "p64", Shape: &jobv1.Shape{Rows: 2, Inner: 3, Columns: 4}}, Epoch: 2},
		{Class: &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_CONVOLUTION, Params: "S", Field: "p64", Shape: &jobv1.Shape{Convolution: &jobv1.Convolution{
			Channels: 3, Height: 9, Width: 8, Outputs: 2, KernelHeight: 3, KernelWidth: 2, StrideHeight: 3, StrideWidth: 2, PaddingWidth: 1,
		}}}, Epoch: 2},
		{Class: &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_BIT, Params: "S", Field: "p64", NoSacrifice: true}, Epoch: 2},
		{Class: &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_INPUT, Params: "S", Field: "p64", InputParty: 1}, Epoch: 2, TimeToEmpty: durationpb.New(100 * time.Hour)},
	}
	var out bytes.Buffer
	if err := printStock(&out, &stockv1.GetStockResponse{Stock: list}, time.Now()); err != nil {
		t.Fatal(err)
	}
	want := `
KIND                                                 FIELD  PARAMS  TENANT  EPOCH  AVAILABLE  RESERVED  CONSUMED  LOST  MAKING  RATE          EMPTY IN  POLICY               HELD BACK
scalar                                               p128   S       dev     1      12         3         4         5     50      +1.23e+03 -2  1m30s     100 to 200 (paused)  paused
matrix 2x3x4                                         p64    S       dev     2      0          0         0         0     0       -             -         -                    -
convolution 3x9x8 by 2x3x2, stride 3x2, padding 0x1  p64    S       dev     2      0          0         0         0     0       -             -         -                    -
bit (no sacrifice)                                   p64    S       dev     2      0          0         0         0     0       -             -         -                    -
input of 1                                           p64    S       dev     2      0          0         0         0     0       -             4d        -                    -
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := printPolicies(&out, []*stockv1.Policy{policy}); err != nil {
		t.Fatal(err)
	}
	want = `
KIND    FIELD  PARAMS  TENANT  EPOCH   LOW  HIGH  BATCH  PRIORITY  STATE
scalar  p128   S       dev     newest  100  200   50     7         paused
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
