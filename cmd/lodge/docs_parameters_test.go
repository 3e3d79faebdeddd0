package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
)

// parameterRows are the rows of the table of docs/reference/parameters.md: every set that is not
// for tests.
func parameterRows() (rows []string) {
	row := func(name, successor string, b hardness.Bits, failure, table string) {
		if successor != "" {
			name += "` (legacy: `" + successor
		}
		end := ""
		if successor != "" {
			end = ")"
		}
		rows = append(rows, fmt.Sprintf("| `%s`%s | %.1f | %.1f | %s | %s |", name, end, b.Classical, b.Quantum, failure, table))
	}
	for _, s := range params.Sets() {
		if !s.Insecure {
			row(s.Name, "", s.Security(), "bounded", "yes")
		}
	}
	for _, s := range bgv.Sets() {
		if !s.Insecure {
			row(s.Name, "", s.Security(), "bounded", "yes")
		}
	}
	for _, s := range linear.Sets() {
		if !s.Insecure {
			row(s.Name, "", s.Security(), "bounded", "smaller moduli than its rows")
		}
	}
	for _, s := range lwe.Sets() {
		if !s.Insecure {
			known := "yes"
			if s.Name == "T11-53" {
				known = "the ring only"
			}
			row(s.Name, s.Successor, s.Security().Least(), fmt.Sprintf("2^%.0f", s.LookupFailure()), known)
		}
	}
	for _, s := range multikey.Sets() {
		if !s.Insecure {
			row(s.Name, s.Successor, s.Security().Least(), fmt.Sprintf("2^%.0f", s.LogFailure()), "without blocks")
		}
	}
	return rows
}

// The table of docs/reference/parameters.md is what the model gives.
func TestParametersDocument(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "parameters.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(parameterRows(), "\n"); !strings.Contains(string(b), want+"\n\n") {
		t.Errorf("parameters.md does not have\n%s", want)
	}
	least := 1e9
	for _, r := range parameterRows() {
		var quantum float64
		if parts := strings.Split(r, "|"); !strings.Contains(r, "legacy") {
			if _, err := fmt.Sscan(parts[3], &quantum); err != nil {
				t.Fatal(err)
			}
			least = min(least, quantum)
		}
	}
	if want := fmt.Sprintf("the least quantum figure is %.1f.", least); !strings.Contains(string(b), want) {
		t.Errorf("parameters.md does not say %q", want)
	}
}
