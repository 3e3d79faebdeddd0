package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Every command that does something has an example, which it would take; there are no examples of
// others.
func TestExamples(t *testing.T) {
	left := map[string]bool{}
	for name := range cli.Examples {
		left[name] = true
	}
	for _, cmd := range lodgetest.Commands(t) {
		name := strings.Join(lodgetest.Named(cmd), " ")
		if _, ok := cmd.Annotations[cli.OnlyHelp]; ok || cmd.Parent() == nil || strings.HasPrefix(name, "completion") || name == "help" || cmd.Hidden {
			continue
		}
		delete(left, name)
		lines := strings.Split(cmd.Example, "\n")
		for _, line := range lines {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "lodge "+name) {
				t.Errorf("%s: the example %q is of another command", name, line)
			} else if err := checkCommand(line, ""); err != nil {
				t.Errorf("%s: %q: %v", name, line, err)
			}
		}
		if len(lines) > 3 {
			t.Errorf("%s: %d lines", name, len(lines))
		}
	}
	if len(left) > 0 {
		t.Errorf("examples of commands that there are not: %v", left)
	}
}

// Words that need no server are offered for the values of flags and for arguments.
func TestCompletionWithoutServer(t *testing.T) {
	for want, args := range map[string][]string{
		"inverse":      {"demo", "--kind", ""},
		"mp-spdz":      {"demo", "--export", ""},
		"p4096":        {"demo", "decrypt", "--field", ""},
		params.Default: {"params", "show", ""},
		"p256":         {"params", "show", params.Default, "--field", ""},
	} {
		out, err := lodgetest.Run(t, append([]string{"__complete"}, args...)...)
		if err != nil || !strings.Contains("\n"+out, "\n"+want+"\n") {
			t.Errorf("%v: %v: no %s in %s", args, err, want, out)
		}
	}
}

// The version names what must agree between parties.
func TestVersion(t *testing.T) {
	out, err := lodgetest.Run(t, "version", "--json")
	var r cli.VersionReport
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Protocol != job.ProtocolVersion || !strings.HasPrefix(r.Go, "go1") ||
		len(r.Sets) != len(params.Sets()) || len(r.Sets[0].Hash) != 64 {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = lodgetest.Run(t, "version"); err != nil || !strings.Contains(out, params.Default+" ") {
		t.Errorf("%v: %s", err, out)
	}
}
