package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
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
		"--kernel with --kind matrix":       {"--kind", "matrix", "--kernel", "1x1x1"},
		`--kernel "3"`:                      {"--kind", "convolution", "--dim", "1x4x4", "--kernel", "3"},
		"does not fit into":                 {"--kind", "convolution", "--dim", "1x4x4", "--kernel", "1x5x5"},
		"no file for convolutions":          {"--kind", "convolution", "--dim", "1x4x4", "--kernel", "1x3x3", "--export", "mp-spdz", "--out", filepath.Join(full, "new")},
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
		if _, err := runLodge(t, append([]string{"demo", "decrypt"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
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
		if _, err := runLodge(t, append([]string{"demo", "multikey"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("multikey %v: %v", args, err)
		}
	}
}

// The auction in the clear: of equal bids the first wins, and pays as much.
func TestDemoSecondPrice(t *testing.T) {
	for _, x := range []struct {
		bids          []uint64
		winner, price uint64
	}{
		{[]uint64{0, 0, 0}, 0, 0}, {[]uint64{3, 9, 9}, 1, 9}, {[]uint64{7, 1, 2}, 0, 2}, {[]uint64{4, 5, 6, 15}, 3, 6},
	} {
		if winner, price := secondPrice(x.bids); winner != x.winner || price != x.price {
			t.Errorf("%v: %d pays %d", x.bids, winner, price)
		}
	}
}

// What `lodge demo multikey` says fits on a screen, also if it went wrong.
func TestDemoMultikeyFitsOnAScreen(t *testing.T) {
	run := auctionRun{
		Winner: "p7", Price: 65535, Bootstraps: 123456, Rotations: 1234567, Seconds: 1234.56, ResultBytes: 1 << 30, DecryptSeconds: 1234.56,
		AnswerBytes: 1 << 20, Decryptors: []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"},
	}
	r := multikeyReport{
		Params: "insecure-M11-III", SecurityBits: 112, QuantumBits: 103.5, Bits: 16, KeysSeconds: 123.45, KeyBytes: 1 << 30, SpreadSeconds: 1234.5, EncryptSeconds: 12.3,
		BidBytes: 1 << 10, MasksSeconds: 123.4, Masks: demoMasks, Evaluator: "p0", All: run, Killed: "p7", RefusedCode: "unavailable",
		Refused: "no party that responded owns the multi-key keys bc2bdac8e45451f9; no answer of p7 (unavailable)", Others: run, TotalSeconds: 12345.6,
	}
	for _, p := range run.Decryptors {
		r.Parties, r.Bids = append(r.Parties, p), append(r.Bids, 65535)
	}
	r.Others.Correct = true
	var out bytes.Buffer
	cmd := demoCommand()
	cmd.SetOut(&out)
	if err := r.print(cmd); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) > 24 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > 132 || strings.Contains(line, "%!") {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
	for _, word := range []string{"pays 65535, NOT as in the clear", "pays 65535, as in the clear", "p7 was killed", "by p0, p1, p2, p3, p4, p5, p6 and p7"} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("no %q in %s", word, out.String())
		}
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

// What `lodge demo decrypt` says fits on a screen.
func TestDemoThresholdFitsOnAScreen(t *testing.T) {
	r := thresholdReport{
		Parties: 7, Quorum: 4, Params: "T11-4", SecurityBits: 128.4, QuantumBits: 111.6, KeygenSecurity: "passive", Values: 1024, Correct: 2048, KeygenSeconds: 1234.5,
		KeygenSentBytes: 1 << 40, Quorums: 35, Masks: 4096, MasksSentBytes: 1e6, Killed: "p6", Used: []string{"p0", "p1", "p2", "p3"},
		RequestBytes: 1 << 30, AnswerBytes: 1 << 20, PaperFailure: 1e-9, PaperAnswerBytes: 1 << 20,
	}
	var out bytes.Buffer
	cmd := demoCommand()
	cmd.SetOut(&out)
	if err := r.print(cmd); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) > 24 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > 132 || strings.Contains(line, "%!") {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
	for _, word := range []string{"any 4 of 7 do", "2048 of 2048", "party p6 was killed", "p0 and p1 and p2 and p3 decrypted"} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("no %q in %s", word, out.String())
		}
	}
}

// Nothing new is set up with a legacy set, and the refusal names the successor.
func TestLegacySetsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for set, args := range map[string][]string{
		"M11-4-128": {"init", dir + "/a", "--multikey", "M11-4"},
		"T11-53":    {"init", dir + "/b", "--params", "L11-53"},
		"T11-4":     {"demo", "decrypt", "--params", "L11-50"},
		"M11-8-128": {"demo", "multikey", "--params", "M11-8"},
	} {
		_, err := runLodge(t, args...)
		var refusal *rpc.Error
		if !errors.As(err, &refusal) || refusal.Code != rpc.PolicyRefused || !strings.Contains(err.Error(), "new keys are made with "+set) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}
