package job_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/job"
)

var update = flag.Bool("update", false, "write the hashes of the parties' messages into testdata")

// pinned holds the hashes of honest parties' messages, by name, and their protocol version.
type pinned struct {
	ProtocolVersion uint32            `json:"protocol_version"`
	Hashes          map[string]string `json:"hashes"`
}

const pinnedFile = "testdata/said.json"

const whatToDo = "If a release may have been made with ProtocolVersion %d, raise it in services/session/job/spec.go: parties of " +
	"both builds would take each other for cheats. Then run go test ./services/session/job -run TestWhatPartiesSayIsPinned -update " +
	"and commit testdata/said.json."

// What honest parties send and sign with fixed randomness and fixed keys changes only together with
// job.ProtocolVersion. Otherwise a party of one build blames honest ones of another, and a judge of
// another build reads evidence in another way.
func TestWhatPartiesSayIsPinned(t *testing.T) {
	said := map[string]string{}
	note := func(name string, d round.Digest) {
		if said[name] != "" {
			t.Errorf("two things are called %s", name)
		}
		said[name] = hex.EncodeToString(d[:])
	}
	protocols(t, note)
	frames(t, note)
	signed(t, note)
	if *update {
		write(t, pinned{job.ProtocolVersion, said})
		return
	}
	b, err := os.ReadFile(pinnedFile)
	if err != nil {
		t.Fatal(err)
	}
	var want pinned
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if want.ProtocolVersion != job.ProtocolVersion {
		t.Fatalf("%s is of protocol version %d, and job.ProtocolVersion is %d: run this test with -update and commit it",
			pinnedFile, want.ProtocolVersion, job.ProtocolVersion)
	}
	changed := false
	for _, name := range slices.Sorted(maps.Keys(want.Hashes)) {
		switch {
		case said[name] == "":
			t.Errorf("%s: is pinned, and nobody says it", name)
		case said[name] != want.Hashes[name]:
			t.Errorf("%s: is %s, and %s with the version that is pinned", name, said[name], want.Hashes[name])
			changed = true
		}
	}
	for name := range said {
		if want.Hashes[name] == "" {
			t.Errorf("%s: is not pinned: run this test with -update and commit the file", name)
		}
	}
	if changed {
		t.Errorf(whatToDo, job.ProtocolVersion)
	}
}

func write(t *testing.T, p pinned) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "\t")
	if err := e.Encode(p); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(pinnedFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pinnedFile, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
