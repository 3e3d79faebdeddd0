package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
)

// linked lists the packages of the compared libraries that lodge itself uses, with the reason.
// lodge-bench links more.
var linked = map[string]string{
	"github.com/sp301415/tfhe-go/math/":              "transforms of engine/multikey",
	"github.com/sp301415/tfhe-go/tfhe":               "gadgets of engine/multikey",
	"github.com/tuneinsight/lattigo/v6/ring":         "roots of unity of engine/ring",
	"github.com/tuneinsight/lattigo/v6/ring/ringqp":  "public keys of engine/bgv",
	"github.com/tuneinsight/lattigo/v6/core/rlwe":    "key and ciphertext types of engine/bgv",
	"github.com/tuneinsight/lattigo/v6/schemes/bgv":  "parameters and encoder of engine/bgv",
	"github.com/tuneinsight/lattigo/v6/utils":        "dependency of the packages above",
	"github.com/tuneinsight/lattigo/v6/utils/":       "dependency of the packages above",
	"github.com/lodge-mpc/lodge/cmd/lodge":           "the command",
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/": "the command",
	"github.com/lodge-mpc/lodge/cmd/internal/":       "clusters and progress, shared with lodge-bench",
}

// The lodge binary links neither the benchmarks nor the packages of other libraries that only they
// need, such as the multi-key package of tfhe-go.
func TestBinaryLeavesBenchmarksOut(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	for _, path := range packages {
		if path == "github.com/lodge-mpc/lodge/bench" {
			t.Errorf("lodge links %s", path)
		}
		if !slices.ContainsFunc([]string{"github.com/sp301415/", "github.com/tuneinsight/", "github.com/lodge-mpc/lodge/cmd/"}, func(p string) bool {
			return strings.HasPrefix(path, p)
		}) {
			continue
		}
		allowed := false
		for name := range linked {
			allowed = allowed || path == name || strings.HasSuffix(name, "/") && strings.HasPrefix(path, name)
		}
		if !allowed {
			t.Errorf("lodge links %s, which is not in the list of this test", path)
		}
	}
	if len(packages) < 200 {
		t.Errorf("only %d packages", len(packages))
	}
}

// `lodge bench` names its successor, and its exit code is that of wrong usage.
func TestBenchIsAnotherProgram(t *testing.T) {
	for _, args := range [][]string{{"bench"}, {"bench", "kernels", "--filter", "ntt"}} {
		out, err := lodgetest.Run(t, args...)
		if err == nil || out != "" || cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "run `lodge-bench`") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
}
