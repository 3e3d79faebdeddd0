package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/doctor"
)

// diagnosis runs `lodge doctor --json`.
func diagnosis(t *testing.T, args ...string) (r doctorReport, err error) {
	t.Helper()
	out, err := runLodge(t, append([]string{"doctor", "--json", "--probe-bytes", "65536"}, args...)...)
	if jerr := json.Unmarshal([]byte(out), &r); jerr != nil {
		t.Fatalf("%v, %v: %s", err, jerr, out)
	}
	return r, err
}

// of gives the findings of a check.
func of(r doctorReport, status doctor.Status, subject, check string) (list []doctor.Finding) {
	for _, f := range r.Findings {
		if f.Status == status && f.Subject == subject && f.Check == check {
			list = append(list, f)
		}
	}
	return list
}

// measured tells that a link was: a machine with much else to do may be too slow for the report to be content.
func measured(r doctorReport, link string) bool {
	return len(of(r, doctor.OK, link, "link"))+len(of(r, doctor.Warn, link, "link")) == 1
}

func TestDoctorAndStatus(t *testing.T) {
	l := startLive(t)
	keys := read[struct{ Keys []macKeyRecord }](l, "mac-keys", "list", "--party", "p0").Keys
	l.ok("mac-keys", "draw", keys[0].ID, "--party", "p0", "--out", filepath.Join(t.TempDir(), "share")) // for the audit log
	r, err := diagnosis(t, "--cluster", l.net.Dir)
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
	for _, p := range []string{"p0", "p1"} { // a development cluster, whose application may have anything decrypted
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
	own, err := diagnosis(t, "--config", l.net.Parties[0])
	if err != nil || !measured(own, "p0 to p1") || len(of(own, doctor.OK, "p1", "reach")) != 1 || len(of(own, doctor.OK, "p0", "store")) != 1 {
		t.Errorf("as p0: %v: %+v", err, own.Findings)
	}
	client, err := diagnosis(t, "--roster", filepath.Join(l.net.Dir, "roster.yaml"), "--identity", filepath.Join(l.net.Dir, "clients", "app.pem"), "--ca", filepath.Join(l.net.Dir, "ca.pem"))
	if err != nil || len(of(client, doctor.Warn, "coordinator", "reach")) != 1 || !measured(client, "p1 to p0") || len(of(client, doctor.OK, "p0", "config")) != 0 {
		t.Errorf("as a client: %v: %+v", err, client.Findings)
	}

	l.shows([]string{"status"}, "PROCESS", "coordinator", "ready", "insecure-8", "no jobs wait or run")
	s := read[statusReport](l, "status")
	if len(s.Processes) != 3 || s.Processes[0].Party != nil || *s.Processes[2].Party != 1 || s.Processes[2].Store.Generation == 0 || s.Processes[1].Links["p1"] != "connected" ||
		s.Processes[0].Roster == "" || s.Processes[0].Roster != s.Processes[1].Roster || len(s.Processes[0].Params["insecure-8"]) != 64 {
		t.Errorf("%+v", s)
	}

	l.shows([]string{"log-level"}, "PROCESS", "coordinator", "info", "p1")
	l.shows([]string{"log-level", "debug", "--at", "p1,coordinator", "--for", "1h"}, "coordinator", "debug")
	levels := read[struct{ Processes []levelRecord }](l, "log-level").Processes
	if len(levels) != 3 || levels[0].Level != "debug" || levels[1].Level != "info" || levels[1].Until != "" || levels[2].Level != "debug" || levels[2].Until == "" {
		t.Errorf("%+v", levels)
	}
	l.shows([]string{"log-level", "warn", "--at", "p1", "--for", "0"}, "warn")
	if levels = read[struct{ Processes []levelRecord }](l, "log-level", "--at", "p1").Processes; len(levels) != 1 || levels[0].Level != "warn" || levels[0].Until != "" {
		t.Errorf("%+v", levels)
	}
	l.refuses(rpc.Invalid, "not one of debug", "log-level", "loud")
	l.refuses(rpc.Invalid, "at most 24h", "log-level", "debug", "--for", "25h")
	l.refuses(rpc.NotFound, "no process", "log-level", "debug", "--at", "p7")
	l.refuses(rpc.Forbidden, "operate", "log-level", "debug", "--at", "p1", "--identity", filepath.Join(l.net.Dir, "clients", "app.pem"))

	l.stop[2]()
	r, err = diagnosis(t, "--cluster", l.net.Dir)
	if err == nil || !strings.Contains(err.Error(), "checks failed") || r.Fail != 2 || len(of(r, doctor.Fail, "p1", "reach")) != 1 || len(of(r, doctor.Fail, "p0 to p1", "link")) != 1 ||
		len(of(r, doctor.OK, "p1", "vault")) != 1 {
		t.Errorf("with p1 away: %v: %+v", err, r)
	}
	if own, err := diagnosis(t, "--config", l.net.Parties[1]); err != nil || len(of(own, doctor.Warn, "p1", "reach")) != 1 {
		t.Errorf("as p1, which does not run: %v: %+v", err, own.Findings)
	}
	out, err := runLodge(t, "doctor", "--cluster", l.net.Dir, "--quiet", "--probe-bytes", "0")
	if err == nil || strings.Contains(out, "\nok ") || !strings.Contains(out, "check that it runs") || !strings.Contains(out, "2 failures") {
		t.Errorf("%v: %s", err, out)
	}
	l.shows([]string{"status"}, "away", "not connected to p1")
	l.stop[0]()
	l.shows([]string{"status"}, "jobs: unavailable")
	l.stop[1]()
	l.refuses(rpc.Unavailable, "no process of the cluster answers", "status")
}

func TestDoctorOffline(t *testing.T) {
	l := unreachableCluster(t)
	if r, err := diagnosis(t, "--cluster", l, "--offline"); err != nil || len(of(r, doctor.OK, "p0", "config")) != 1 || len(of(r, doctor.OK, "p0", "reach")) != 0 {
		t.Errorf("%v: %+v", err, r)
	}
	if err := os.Chmod(filepath.Join(l, "p0", "tls.key"), 0o640); err != nil {
		t.Fatal(err)
	}
	if r, err := diagnosis(t, "--config", filepath.Join(l, "p0", "party.yaml"), "--offline"); err == nil || r.Fail != 1 || len(of(r, doctor.Fail, "p0", "key-files")) != 1 {
		t.Errorf("%v: %+v", err, r)
	}
	if _, err := runLodge(t, "doctor", "--cluster", t.TempDir()); err == nil || !strings.Contains(err.Error(), "--cluster") {
		t.Error(err)
	}
	if _, err := runLodge(t, "doctor", "--cluster", l, "--probe-bytes", "99999999"); err == nil || !strings.Contains(err.Error(), "at most 16777216") {
		t.Error(err)
	}
}
