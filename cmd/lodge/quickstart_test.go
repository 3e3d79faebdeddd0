package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
)

func quickstart(t *testing.T, dir, input string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	root := lodgetest.NewLodge()
	root.SetIn(strings.NewReader(input))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	err := cli.Execute(t.Context(), root, append([]string{"quickstart", "--dir", dir, "--field", lodgetest.LiveField, "--stock", "100", "--multikey", "",
		"--params", "insecure-8," + lodgetest.ThresholdSet}, args...))
	return out.String(), err
}

// The tour starts a cluster with keys and stock, runs every command that it shows, and leaves no
// process. The user can leave at any step.
func TestQuickstart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net")
	out, err := quickstart(t, dir, "", "--yes")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"1. Start a cluster", "$ lodge health\ncoordinator: ready\np0: ready", "$ lodge stock\nKIND", "input of 2 ", "masks exact of 1,2 ",
		"100 scalar tuples, ", "$ lodge decrypt ", "\n3\n1\n4\n", "The cluster has stopped. `lodge dev --dir " + dir + "`",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	steps := len(regexp.MustCompile(`(?m)^\d+\. `).FindAllString(out, -1))
	if out, err = quickstart(t, dir, "\n\nq\n"); err != nil || !strings.Contains(out, "Press Enter") || !strings.Contains(out, "3. ") || strings.Contains(out, "4. ") || steps != 7 {
		t.Errorf("%d steps; stopped at the third: %v\n%s", steps, err, out)
	}
	if out, err = lodgetest.Run(t, "health", "--cluster", dir); err == nil {
		t.Errorf("a process still runs: %s", out)
	}
}

// Without a terminal nobody can press Enter.
func TestQuickstartNeedsYes(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	root := lodgetest.NewLodge()
	root.SetIn(null)
	dir := filepath.Join(t.TempDir(), "net")
	if err := cli.Execute(t.Context(), root, []string{"quickstart", "--dir", dir}); err == nil || !strings.Contains(err.Error(), "add --yes") || cli.Exists(dir) {
		t.Errorf("%v", err)
	}
}
