package demos

import (
	"bytes"
	"strings"
	"testing"
)

// In the auction in plaintext, the first of equal bids wins and pays as much as the second.
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

// The report of `lodge demo multikey` fits on a screen, also after a failure.
func TestDemoMultikeyFitsOnAScreen(t *testing.T) {
	run := AuctionRun{
		Winner: "p7", Price: 65535, Bootstraps: 123456, Rotations: 1234567, Seconds: 1234.56, ResultBytes: 1 << 30, DecryptSeconds: 1234.56,
		AnswerBytes: 1 << 20, Decryptors: []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"},
	}
	r := MultikeyReport{
		Params: "insecure-M11-III", SecurityBits: 112, QuantumBits: 103.5, Bits: 16, KeysSeconds: 123.45, KeyBytes: 1 << 30, SpreadSeconds: 1234.5, EncryptSeconds: 12.3,
		BidBytes: 1 << 10, MasksSeconds: 123.4, Masks: auctionMasks, Evaluator: "p0", All: run, Killed: "p7", RefusedCode: "unavailable",
		Refused: "no party that responded owns the multi-key keys bc2bdac8e45451f9; no answer of p7 (unavailable)", Others: run, TotalSeconds: 12345.6,
	}
	for _, p := range run.Decryptors {
		r.Parties, r.Bids = append(r.Parties, p), append(r.Bids, 65535)
	}
	r.Others.Correct = true
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
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

// The report of `lodge demo decrypt` fits on a screen.
func TestDemoThresholdFitsOnAScreen(t *testing.T) {
	r := ThresholdReport{
		Parties: 7, Quorum: 4, Params: "T11-4", SecurityBits: 128.4, QuantumBits: 111.6, KeygenSecurity: "passive", Values: 1024, Correct: 2048, KeygenSeconds: 1234.5,
		KeygenSentBytes: 1 << 40, Quorums: 35, Masks: 4096, MasksSentBytes: 1e6, Killed: "p6", Used: []string{"p0", "p1", "p2", "p3"},
		RequestBytes: 1 << 30, AnswerBytes: 1 << 20, PaperFailure: 1e-9, PaperAnswerBytes: 1 << 20,
	}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
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
