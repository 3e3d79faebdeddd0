package session

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// The log entry about a dispute suffices to verify the signature of the blamed party.
func TestRecordOfADispute(t *testing.T) {
	public, signer, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	var report runner.Report
	for p := range round.Party(3) {
		e := exchange.Envelope{Protocol: "test", Version: 1, Session: [32]byte{7}, Round: 4, Name: "x/open", From: p, To: round.All, Digest: round.Digest{byte(p)}}
		report.Broadcasts = append(report.Broadcasts, runner.Broadcast{Envelope: e, Signature: e.Sign(signer)})
	}
	report.Transcript = round.Digest{0xab, 0xcd}
	names := []string{"a", "b", "c"}
	logged := func(err error) string {
		var out bytes.Buffer
		record(slog.New(slog.NewJSONHandler(&out, nil)), names, report, err)
		return out.String()
	}
	for outcome, lines := range map[runner.Outcome]int{
		runner.Blamed: 1, runner.Aborted: 3, runner.Timeout: 0, runner.Cancelled: 0, runner.PeerAbort: 0,
	} {
		if got := strings.Count(logged(&runner.Failure{Outcome: outcome, Party: 1}), "signed broadcast"); got != lines {
			t.Errorf("%s: %d lines", outcome, got)
		}
	}
	if text := logged(nil); !strings.Contains(text, `"transcript":"abcd00`) || strings.Contains(text, "broadcast") {
		t.Errorf("of a complete session: %s", text)
	}
	if text := logged(&runner.Failure{Outcome: runner.Timeout, Suspects: []round.Party{0, 2}}); !strings.Contains(text, `"suspects":["a","c"]`) {
		t.Errorf("of a timeout: %s", text)
	}
	var line struct {
		Peer     string
		Evidence struct {
			Protocol, Session, Name, Digest, Signature string
			Version, Round                             uint32
			From                                       int
		}
	}
	lines := strings.Split(logged(&runner.Failure{Outcome: runner.Blamed, Party: 1, Check: "opening"}), "\n")
	if !strings.Contains(lines[0], `"outcome":"blame"`) || !strings.Contains(lines[0], `"check":"opening"`) || !strings.Contains(lines[0], `"peer":"b"`) {
		t.Errorf("of a blame: %s", lines[0])
	}
	if err := json.Unmarshal([]byte(lines[1]), &line); err != nil {
		t.Fatal(err)
	}
	ev := line.Evidence
	e := exchange.Envelope{Protocol: ev.Protocol, Version: ev.Version, Round: ev.Round, Name: ev.Name, From: round.Party(ev.From), To: round.All}
	signature, err := hex.DecodeString(ev.Signature)
	if err != nil {
		t.Fatal(err)
	}
	for text, to := range map[string][]byte{ev.Session: e.Session[:], ev.Digest: e.Digest[:]} {
		b, err := hex.DecodeString(text)
		if err != nil || copy(to, b) != 32 {
			t.Fatalf("%q: %v", text, err)
		}
	}
	if line.Peer != "b" || e.From != 1 || !e.Verify(public, signature) {
		t.Errorf("the line %+v does not verify", line)
	}
}
