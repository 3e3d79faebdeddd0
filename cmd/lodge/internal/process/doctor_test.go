package process_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	keysroom "github.com/lodge-mpc/lodge/cmd/lodge/internal/keys"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/process"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/doctor"
)

// diagnosis runs `lodge doctor --json`.
func diagnosis(t *testing.T, args ...string) (r process.DoctorReport, err error) {
	t.Helper()
	out, err := lodgetest.Run(t, append([]string{"doctor", "--json", "--probe-bytes", "65536"}, args...)...)
	if jerr := json.Unmarshal([]byte(out), &r); jerr != nil {
		t.Fatalf("%v, %v: %s", err, jerr, out)
	}
	return r, err
}

// of returns the findings of a check.
func of(r process.DoctorReport, status doctor.Status, subject, check string) (list []doctor.Finding) {
	for _, f := range r.Findings {
		if f.Status == status && f.Subject == subject && f.Check == check {
			list = append(list, f)
		}
	}
	return list
}

// measured reports whether a link was measured: on a busy machine the measurement may be too slow
// for status ok.
func measured(r process.DoctorReport, link string) bool {
	return len(of(r, doctor.OK, link, "link"))+len(of(r, doctor.Warn, link, "link")) == 1
}

func TestDoctorAndStatus(t *testing.T) {
	l := lodgetest.Start(t)
	keys := lodgetest.Read[struct{ Keys []keysroom.MacKeyRecord }](l, "mac-keys", "list", "--party", "p0").Keys
	l.OK("mac-keys", "draw", keys[0].ID, "--party", "p0", "--out", filepath.Join(t.TempDir(), "share")) // for the audit log
	r, err := diagnosis(t, "--cluster", l.Net.Dir)
	if err != nil || r.Fail != 0 || r.OK+r.Warn != len(r.Findings) {
		t.Errorf("%v: %+v", err, r)
	}
	for _, want := range [][2]string{
		{"p0", "config"}, {"coordinator", "certificate"}, {"p1", "vault"}, {"cluster", "roster"}, {"coordinator", "reach"}, {"p0", "reach"}, {"p1", "clock"},
		{"p1", "store"}, {"p0", "served-certificate"}, {"p0", "audit-head"},
	} {
		if len(of(r, doctor.OK, want[0], want[1])) != 1 {
			t.Errorf("no finding of %v in %+v", want, r.Findings)
		}
	}
	for _, p := range []string{"p0", "p1"} { // a development cluster, whose application may decrypt anything
		if list := of(r, doctor.Warn, p, "decryption"); len(list) != 1 || !strings.Contains(list[0].What, `client "app" can read the keys`) {
			t.Errorf("of %s: %+v", p, list)
		}
		if list := of(r, doctor.OK, p, "decryption"); len(list) != 1 || !strings.Contains(list[0].What, "1 of 2 rules") {
			t.Errorf("of %s: %+v", p, list)
		}
	}
	if !measured(r, "p0 to p1") || !measured(r, "p1 to p0") {
		t.Errorf("links: %+v", r.Findings)
	}
	own, err := diagnosis(t, "--config", l.Net.Parties[0])
	if err != nil || !measured(own, "p0 to p1") || len(of(own, doctor.OK, "p1", "reach")) != 1 || len(of(own, doctor.OK, "p0", "store")) != 1 {
		t.Errorf("as p0: %v: %+v", err, own.Findings)
	}
	client, err := diagnosis(t, "--roster", filepath.Join(l.Net.Dir, "roster.yaml"), "--identity", filepath.Join(l.Net.Dir, "clients", "app.pem"), "--ca", filepath.Join(l.Net.Dir, "ca.pem"))
	if err != nil || len(of(client, doctor.Warn, "coordinator", "reach")) != 1 || !measured(client, "p1 to p0") || len(of(client, doctor.OK, "p0", "config")) != 0 {
		t.Errorf("as a client: %v: %+v", err, client.Findings)
	}

	l.Shows([]string{"status"}, "PROCESS", "coordinator", "ready", "insecure-8", "no jobs are queued or running")
	s := lodgetest.Read[process.StatusReport](l, "status")
	if len(s.Processes) != 3 || s.Processes[0].Party != nil || *s.Processes[2].Party != 1 || s.Processes[2].Store.Generation == 0 || s.Processes[1].Links["p1"] != "connected" ||
		s.Processes[0].Roster == "" || s.Processes[0].Roster != s.Processes[1].Roster || len(s.Processes[0].Params["insecure-8"]) != 64 {
		t.Errorf("%+v", s)
	}

	l.Shows([]string{"log-level"}, "PROCESS", "coordinator", "info", "p1")
	l.Shows([]string{"log-level", "debug", "--at", "p1,coordinator", "--for", "1h"}, "coordinator", "debug")
	levels := lodgetest.Read[struct{ Processes []process.LevelRecord }](l, "log-level").Processes
	if len(levels) != 3 || levels[0].Level != "debug" || levels[1].Level != "info" || levels[1].Until != "" || levels[2].Level != "debug" || levels[2].Until == "" {
		t.Errorf("%+v", levels)
	}
	l.Shows([]string{"log-level", "warn", "--at", "p1", "--for", "0"}, "warn")
	if levels = lodgetest.Read[struct{ Processes []process.LevelRecord }](l, "log-level", "--at", "p1").Processes; len(levels) != 1 || levels[0].Level != "warn" || levels[0].Until != "" {
		t.Errorf("%+v", levels)
	}
	l.Refuses(rpc.Invalid, "not one of debug", "log-level", "loud")
	l.Refuses(rpc.Invalid, "at most 24h", "log-level", "debug", "--for", "25h")
	l.Refuses(rpc.NotFound, "no process", "log-level", "debug", "--at", "p7")
	l.Refuses(rpc.Forbidden, "operate", "log-level", "debug", "--at", "p1", "--identity", filepath.Join(l.Net.Dir, "clients", "app.pem"))

	l.Stop[2]()
	r, err = diagnosis(t, "--cluster", l.Net.Dir)
	if err == nil || !strings.Contains(err.Error(), "checks failed") || r.Fail != 2 || len(of(r, doctor.Fail, "p1", "reach")) != 1 || len(of(r, doctor.Fail, "p0 to p1", "link")) != 1 ||
		len(of(r, doctor.OK, "p1", "vault")) != 1 {
		t.Errorf("with p1 away: %v: %+v", err, r)
	}
	if own, err := diagnosis(t, "--config", l.Net.Parties[1]); err != nil || len(of(own, doctor.Warn, "p1", "reach")) != 1 {
		t.Errorf("as p1, which does not run: %v: %+v", err, own.Findings)
	}
	out, err := lodgetest.Run(t, "doctor", "--cluster", l.Net.Dir, "--quiet", "--probe-bytes", "0")
	if err == nil || strings.Contains(out, "\nok ") || !strings.Contains(out, "check that it runs") || !strings.Contains(out, "2 failures") {
		t.Errorf("%v: %s", err, out)
	}
	l.Shows([]string{"status"}, "away", "not connected to p1")
	l.Stop[0]()
	l.Shows([]string{"status"}, "jobs: unavailable")
	l.Stop[1]()
	l.Refuses(rpc.Unavailable, "no process of the cluster responds", "status")
}

func TestDoctorOffline(t *testing.T) {
	l := lodgetest.UnreachableCluster(t)
	if r, err := diagnosis(t, "--cluster", l, "--offline"); err != nil || len(of(r, doctor.OK, "p0", "config")) != 1 || len(of(r, doctor.OK, "p0", "reach")) != 0 {
		t.Errorf("%v: %+v", err, r)
	}
	if err := os.Chmod(filepath.Join(l, "p0", "tls.key"), 0o640); err != nil {
		t.Fatal(err)
	}
	if r, err := diagnosis(t, "--config", filepath.Join(l, "p0", "party.yaml"), "--offline"); err == nil || r.Fail != 1 || len(of(r, doctor.Fail, "p0", "key-files")) != 1 {
		t.Errorf("%v: %+v", err, r)
	}
	if _, err := lodgetest.Run(t, "doctor", "--cluster", t.TempDir()); err == nil || !strings.Contains(err.Error(), "--cluster") {
		t.Error(err)
	}
	if _, err := lodgetest.Run(t, "doctor", "--cluster", l, "--probe-bytes", "99999999"); err == nil || !strings.Contains(err.Error(), "at most 16777216") {
		t.Error(err)
	}
}
