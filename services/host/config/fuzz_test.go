package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParty reads any file as a party's. The file is refused, or the configuration is complete.
func FuzzParty(f *testing.F) {
	dir := f.TempDir()
	write(f, dir, "roster.yaml", roster(f, dir))
	f.Add([]byte(partyYAML))
	f.Add([]byte(partyYAML + "---\n"))
	f.Add([]byte(strings.Replace(partyYAML, "4GiB", "16777216TiB", 1)))
	f.Add([]byte(strings.Replace(partyYAML, "policy:", "limits: {idle: 1s, window: 1}\npolicy:", 1)))
	f.Add([]byte("name: &a alice\nlisten: *a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "party.yaml")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := LoadParty(path)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "config: ") {
				t.Errorf("error %q", err)
			}
			return
		}
		if p.Roster.Parties[p.Index].Name != p.Name || p.Listen == "" || p.Limits.Window < 4<<20 || p.Limits.Idle <= 0 || len(p.Policy.Params) == 0 {
			t.Errorf("%+v was accepted", p)
		}
	})
}

// FuzzCoordinator does the same for the coordinator's file.
func FuzzCoordinator(f *testing.F) {
	dir := f.TempDir()
	write(f, dir, "roster.yaml", roster(f, dir))
	f.Add([]byte(coordinatorYAML))
	f.Add([]byte(coordinatorYAML + "job_timeout: 1h\n"))
	f.Add([]byte(coordinatorYAML + "job_timeout: -1h\n"))
	f.Add([]byte(coordinatorYAML + "max_concurrent: 3\n"))
	f.Add([]byte(strings.Replace(coordinatorYAML, "submit", "fetch", 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "coordinator.yaml")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := LoadCoordinator(path)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "config: ") {
				t.Errorf("error %q", err)
			}
			return
		}
		if c.JobTimeout <= 0 || c.MaxConcurrent < 1 || c.MaxConcurrent > MaxJobs || c.DataDir == "" || c.Roster == nil {
			t.Errorf("%+v was accepted", c)
		}
	})
}
