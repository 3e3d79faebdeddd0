package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Every command that does something has up to three examples, which it accepts.
func TestExamples(t *testing.T) {
	examples := lodgetest.Examples(t)
	for _, cmd := range lodgetest.Commands(t) {
		name := strings.Join(lodgetest.Named(cmd), " ")
		if _, ok := cmd.Annotations[cli.OnlyHelp]; ok || cmd.Parent() == nil || strings.HasPrefix(name, "completion") || name == "help" || cmd.Hidden ||
			cmd.Parent().Hidden {
			continue
		}
		lines := examples[name]
		for _, line := range lines {
			if !strings.HasPrefix(line, "lodge "+name) {
				t.Errorf("%s: the example %q is of another command", name, line)
			} else if err := checkCommand(line, ""); err != nil {
				t.Errorf("%s: %q: %v", name, line, err)
			}
		}
		if len(lines) < 1 || len(lines) > 3 {
			t.Errorf("%s: %d examples", name, len(lines))
		}
	}
}

// No line of any help is wider than 80 columns, and all of them together are still the text of the
// pages.
func TestHelpFitsTheTerminal(t *testing.T) {
	for _, cmd := range lodgetest.Commands(t) {
		help, err := lodgetest.Run(t, append(lodgetest.Named(cmd), "--help")...)
		if cmd.Name() == "exit-codes" {
			help, err = lodgetest.Run(t, "help", "exit-codes")
		}
		if err != nil && cmd.Name() != "bench" {
			t.Errorf("%s: %v", cmd.CommandPath(), err)
		}
		for line := range strings.Lines(help) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), len(line), line)
			}
			if strings.ContainsAny(line, "{}") && !strings.HasPrefix(cmd.CommandPath(), "lodge completion") {
				t.Errorf("%s: %s", cmd.CommandPath(), line)
			}
		}
		joined := strings.Join(strings.Fields(strings.ReplaceAll(help, "\\\n", "\n")), " ")
		for _, want := range []string{cmd.Long, cmd.Example} {
			if want = strings.Join(strings.Fields(want), " "); !strings.Contains(joined, want) && cmd.Name() != "bench" {
				t.Errorf("%s: the help lacks %q", cmd.CommandPath(), want)
			}
		}
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
