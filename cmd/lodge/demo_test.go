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
)

// What cannot succeed is refused before any process starts, in words about the flag, and as JSON where that is asked.
func TestDemoRefusesFirst(t *testing.T) {
	full := t.TempDir()
	file := filepath.Join(full, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(full, "nowhere")) // a cluster would be written there, and fail in other words
	for want, args := range map[string][]string{
		"p63":                               {"--field", "p63"},
		"--count 1048577":                   {"--count", "1048577"},
		"at most 999":                       {"--kind", "matrix", "--dim", "16", "--count", "1000000"},
		"is not empty":                      {"--out", full},
		"not a directory":                   {"--out", filepath.Join(file, "x")},
		"of at most 4096":                   {"--kind", "matrix", "--dim", "5000"},
		"--dim 5: ":                         {"--dim", "5"},
		"--parties 1 ":                      {"--parties", "1"},
		"write scalar, mat":                 {"--kind", "vector"},
		"--kind keys ":                      {"--kind", "keys"},
		"are 0 to 2":                        {"--kind", "input", "--input-party", "3"},
		"add --kind input":                  {"--input-party", "0"},
		"--no-sacrifice with --kind random": {"--kind", "random", "--no-sacrifice"},
	} {
		out, err := runLodge(t, append([]string{"demo", "--params", "insecure-8", "--json"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
			continue
		}
		if _, f := failed(t, out); err.Error() != fmt.Sprintf("%s: %s (%s)", f.Code, f.What, f.Next) {
			t.Errorf("%v: written %q", args, out)
		}
	}
	if _, err := runLodge(t, "demo", "decrypt", "--params", "insecure-8", "--parties", "1"); err == nil || !strings.Contains(err.Error(), "--parties 1 ") {
		t.Errorf("decrypt: %v", err)
	}
}

// An interrupt is called one, whatever call it ended.
func TestDemoInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := demoCommand()
	cmd.SetContext(ctx)
	if err := ended(cmd, os.ErrClosed); !errors.Is(err, os.ErrClosed) {
		t.Errorf("before: %v", err)
	}
	cancel()
	if err := ended(cmd, context.Canceled); !errors.Is(err, errInterrupted) || strings.Contains(err.Error(), "context") {
		t.Errorf("after: %v", err)
	}
}

func TestInitJSON(t *testing.T) {
	out, err := runLodge(t, "init", "--json", "--port", "0", "--parties", "2", filepath.Join(t.TempDir(), "c"))
	if err != nil {
		t.Fatal(err)
	}
	var r initReport
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
