package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/process"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/try"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A demonstration that cannot succeed is rejected before any process starts, with an error about
// the flag, also as JSON.
func TestDemoRefusesFirst(t *testing.T) {
	full := t.TempDir()
	file := filepath.Join(full, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(full, "nowhere")) // a cluster would be written there, and give another error
	for want, args := range map[string][]string{
		"p63":                               {"--field", "p63"},
		"--count 1048577":                   {"--count", "1048577"},
		"at most 999":                       {"--kind", "matrix", "--dim", "16", "--count", "1000000"},
		"is not empty":                      {"--out", full},
		"not a directory":                   {"--out", filepath.Join(file, "x")},
		"of at most 4096":                   {"--kind", "matrix", "--dim", "5000"},
		"--dim 5: ":                         {"--dim", "5"},
		"--kernel with --kind matrix":       {"--kind", "matrix", "--kernel", "1x1x1"},
		`--kernel "3"`:                      {"--kind", "convolution", "--dim", "1x4x4", "--kernel", "3"},
		"does not fit into":                 {"--kind", "convolution", "--dim", "1x4x4", "--kernel", "1x5x5"},
		"no file for convolution triples":   {"--kind", "convolution", "--dim", "1x4x4", "--kernel", "1x3x3", "--export", "mp-spdz", "--out", filepath.Join(full, "new")},
		"--parties 1 ":                      {"--parties", "1"},
		"write scalar, mat":                 {"--kind", "vector"},
		"--kind keys ":                      {"--kind", "keys"},
		"are 0 to 2":                        {"--kind", "input", "--input-party", "3"},
		"add --kind input":                  {"--input-party", "0"},
		"--no-sacrifice with --kind random": {"--kind", "random", "--no-sacrifice"},
	} {
		out, err := lodgetest.Run(t, append([]string{"demo", "--params", "insecure-8", "--json"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
			continue
		}
		if _, f := lodgetest.Failed(t, out); err.Error() != fmt.Sprintf("%s: %s (%s)", f.Code, f.What, f.Next) {
			t.Errorf("%v: written %q", args, out)
		}
	}
	for want, args := range map[string][]string{
		"--parties 1 ":          {"--all", "--params", "insecure-8", "--parties", "1"},
		"among --parties 2 ":    {"--parties", "2"},
		"among --parties 4 ":    {"--parties", "4", "--threshold", "2"},
		"more than 40 quorums":  {"--parties", "9"},
		"--values 0":            {"--values", "0"},
		"--values with --all":   {"--values", "3", "--all"},
		"--field without --all": {"--field", "p128"},
		"unknown set":           {"--params", "insecure-8"},
	} {
		if _, err := lodgetest.Run(t, append([]string{"demo", "decrypt"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("decrypt %v: %v", args, err)
		}
	}
	for want, args := range map[string][]string{
		"--parties 2 with":  {"--parties", "2"},
		"--parties 5 with":  {"--parties", "5"},
		"--parties 9 with":  {"--params", "M11-16-128", "--parties", "9"},
		"--bits 0":          {"--bits", "0"},
		"--bits 17":         {"--bits", "17"},
		"multi-key":         {"--params", "T11-4"},
		"legacy":            {"--params", "M11-4"},
		"sets for multi-ke": {"--params", "M11-5"},
	} {
		if _, err := lodgetest.Run(t, append([]string{"demo", "multikey"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("multikey %v: %v", args, err)
		}
	}
}

// After an interrupt the error says so, whichever call it ended.
func TestDemoInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := try.DemoCommand()
	cmd.SetContext(ctx)
	if err := try.Ended(cmd, os.ErrClosed); !errors.Is(err, os.ErrClosed) {
		t.Errorf("before: %v", err)
	}
	cancel()
	if err := try.Ended(cmd, context.Canceled); !errors.Is(err, cli.ErrInterrupted) || strings.Contains(err.Error(), "context") {
		t.Errorf("after: %v", err)
	}
}

func TestInitJSON(t *testing.T) {
	out, err := lodgetest.Run(t, "init", "--json", "--port", "0", "--parties", "2", filepath.Join(t.TempDir(), "c"))
	if err != nil {
		t.Fatal(err)
	}
	var r process.InitReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(r.Parties, r.Coordinator) {
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
	if len(r.Parties) != 2 {
		t.Errorf("%d parties", len(r.Parties))
	}
}

// Legacy sets are rejected for new clusters and keys, and the error names the successor.
func TestLegacySetsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for set, args := range map[string][]string{
		"M11-4-128": {"init", dir + "/a", "--multikey", "M11-4"},
		"T11-53":    {"init", dir + "/b", "--params", "L11-53"},
		"T11-4":     {"demo", "decrypt", "--params", "L11-50"},
		"M11-8-128": {"demo", "multikey", "--params", "M11-8"},
	} {
		_, err := lodgetest.Run(t, args...)
		var refusal *rpc.Error
		if !errors.As(err, &refusal) || refusal.Code != rpc.PolicyRefused || !strings.Contains(err.Error(), "new keys are made with "+set) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

// A demonstration says what it cannot export before it starts anything.
func TestDemoRefusesExport(t *testing.T) {
	for want, args := range map[string][]string{
		"write mp-spdz":    {"--export", "fresco", "--out", "x"},
		"say where":        {"--export", "mp-spdz"},
		"up to 256 bits":   {"--export", "mp-spdz", "--out", "x", "--field", "p512"},
		"no file for rand": {"--export", "mp-spdz", "--out", "x", "--kind", "random"},
	} {
		if _, err := lodgetest.Run(t, append([]string{"demo", "--params", "insecure-8"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
