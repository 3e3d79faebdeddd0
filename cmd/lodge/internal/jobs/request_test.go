package jobs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

func TestJobRequest(t *testing.T) {
	const triples = jobv1.Purpose_PURPOSE_TRIPLES
	shape := &jobv1.Shape{Rows: 200, Inner: 100, Columns: 50}
	for args, want := range map[string]*coordinatorv1.JobRequest{
		"--kind keys": {Kind: jobv1.Kind_KIND_KEYS, Params: "S14-33w", Purpose: triples},
		"--kind keys --dim 128 --purpose decryption --params p --epoch 4 --timeout 90s": {
			Kind: jobv1.Kind_KIND_KEYS, Params: "p", Dim: 128, Epoch: 4, Purpose: jobv1.Purpose_PURPOSE_DECRYPTION, Timeout: durationpb.New(90 * time.Second),
		},
		"--kind scalar --epoch 2 --count 9 --field p64 --tenant alice": {
			Kind: jobv1.Kind_KIND_SCALAR, Params: "S14-33w", Field: "p64", Dim: 1, Count: 9, Epoch: 2, Purpose: triples, Tenant: "alice",
		},
		"--kind input --input-party 1 --epoch 2 --count 9": {
			Kind: jobv1.Kind_KIND_INPUT, Params: "S14-33w", Field: "p128", Dim: 1, Count: 9, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant, InputParty: 1,
		},
		"--kind bit --epoch 2 --no-sacrifice": {
			Kind: jobv1.Kind_KIND_BIT, Params: "S14-33w", Field: "p128", Dim: 1, Count: 1, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant, NoSacrifice: true,
		},
		"--kind input --input-party 0 --epoch 2": {
			Kind: jobv1.Kind_KIND_INPUT, Params: "S14-33w", Field: "p128", Dim: 1, Count: 1, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant,
		},
		"--kind matrix --epoch 2 --shape 200x100x50": {
			Kind: jobv1.Kind_KIND_MATRIX, Params: "S14-33w", Field: "p128", Shape: shape, Count: 1, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant,
		},
		"--kind convolution --epoch 2 --shape 3x32x30 --kernel 16x3x5 --stride 1 --padding 1x2": {
			Kind: jobv1.Kind_KIND_CONVOLUTION, Params: "S14-33w", Field: "p128", Count: 1, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant,
			Shape: &jobv1.Shape{Convolution: &jobv1.Convolution{
				Channels: 3, Height: 32, Width: 30, Outputs: 16, KernelHeight: 3, KernelWidth: 5, StrideHeight: 1, StrideWidth: 1,
				PaddingHeight: 1, PaddingWidth: 2,
			}},
		},
		"--kind convolution --epoch 2 --shape 1x9x8 --kernel 2x3x2 --stride 3x2 --dim 4": {
			Kind: jobv1.Kind_KIND_CONVOLUTION, Params: "S14-33w", Field: "p128", Dim: 4, Count: 1, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant,
			Shape: &jobv1.Shape{Convolution: &jobv1.Convolution{
				Channels: 1, Height: 9, Width: 8, Outputs: 2, KernelHeight: 3, KernelWidth: 2, StrideHeight: 3, StrideWidth: 2,
			}},
		},
		"--kind matrix --epoch 2 --shape 5 --dim 4": {
			Kind: jobv1.Kind_KIND_MATRIX, Params: "S14-33w", Field: "p128", Dim: 4, Shape: &jobv1.Shape{Rows: 5, Inner: 5, Columns: 5}, Count: 1, Epoch: 2,
			Purpose: triples, Tenant: devnet.Tenant,
		},
	} {
		got, err := parseRequest(args)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if want.Params == "S14-33w" {
			want.Params = got.Params // the default, which the registry determines
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", args, got, want)
		}
	}
	for args, want := range map[string]string{
		"":                                        `--kind ""`,
		"--kind cubes":                            `--kind "cubes"`,
		"--kind keys --purpose fun":               `--purpose "fun"`,
		"--kind keys --field p64":                 "--field with --kind keys",
		"--kind keys --count 3":                   "--count with --kind keys",
		"--kind keys --tenant a":                  "--tenant with --kind keys",
		"--kind keys --shape 3":                   "--shape with --kind keys",
		"--kind keys --timeout -3s":               "--timeout -3s",
		"--kind scalar --epoch 1 --input-party 0": "--input-party with --kind scalar",
		"--kind input --epoch 1":                  "no --input-party",
		"--kind random --epoch 1 --no-sacrifice":  "--no-sacrifice with --kind random",
		"--kind keys --no-sacrifice":              "--no-sacrifice with --kind keys",
		"--kind matrix --epoch 1":                 `--shape ""`,
		"--kind matrix --epoch 1 --shape 3x4":     "2 dimensions",
		"--kind matrix --epoch 1 --shape 3x0x4":   `"0" is not a dimension`,
		"--kind matrix --epoch 1 --shape 16384":   `"16384" is not a dimension`,
		"--kind matrix --epoch 1 --shape 1x2x-3":  `"-3" is not a dimension`,

		"--kind matrix --epoch 1 --shape 3 --stride 2":                             "--stride with --kind matrix",
		"--kind scalar --epoch 1 --padding 0":                                      "--padding with --kind scalar",
		"--kind convolution --epoch 1":                                             `--shape ""`,
		"--kind convolution --epoch 1 --shape 3x4":                                 "2 dimensions",
		"--kind convolution --epoch 1 --shape 3x4x4":                               `--kernel ""`,
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x0x3":                `"0" is not a dimension`,
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x3x3 --stride 0":     `"0" is not a dimension from 1`,
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x3x3 --padding -1":   `"-1" is not a dimension from 0`,
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x3x3 --padding 1x1x": "3 dimensions",
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x5x3":                "a kernel of height 5 does not fit",
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x3x3 --stride 2":     "no window reads beyond the first 3",
	} {
		_, err := parseRequest(args)
		if !errors.Is(err, &rpc.Error{Code: rpc.Invalid}) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func parseRequest(args string) (*coordinatorv1.JobRequest, error) {
	q, cmd := &cli.JobOptions{}, &cobra.Command{}
	flags(q, cmd)
	if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
		return nil, err
	}
	return request(q, cmd.Flags().Changed)
}
