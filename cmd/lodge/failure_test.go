package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Help has the name of a flag's value where pflag finds one in backquotes: one word, and not a
// command that the text names.
func TestFlagsNameTheirValues(t *testing.T) {
	for _, cmd := range lodgetest.Commands(t) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); strings.Contains(value, " ") {
				t.Errorf("%s: --%s %s", cmd.CommandPath(), f.Name, value)
			}
		})
	}
}

// A command with subcommands rejects any other word. Without a word it shows its help, unless it
// does something by itself.
func TestUnknownSubcommand(t *testing.T) {
	for _, cmd := range lodgetest.Commands(t) {
		if !cmd.HasSubCommands() {
			continue
		}
		if cmd.Annotations[cli.TakesArguments] != "" { // a file, perhaps
			continue
		}
		e, out := lodgetest.Fails(t, append(lodgetest.Named(cmd), "nonsense")...)
		if e.Code != rpc.Invalid || !strings.Contains(e.What, `unknown command "nonsense" for "`+cmd.CommandPath()+`"`) || e.Next == "" || out != "" {
			t.Errorf("%s nonsense: %v, %q", cmd.CommandPath(), e, out)
		}
		if e, _ := lodgetest.Fails(t, append([]string{"help"}, append(lodgetest.Named(cmd), "nonsense")...)...); e.Code != rpc.Invalid {
			t.Errorf("help %s nonsense: %v", cmd.CommandPath(), e)
		}
		if _, ok := cmd.Annotations[cli.OnlyHelp]; !ok {
			continue
		}
		if out, err := lodgetest.Run(t, lodgetest.Named(cmd)...); err != nil || !strings.Contains(out, "Usage:") {
			t.Errorf("%s: %v: %s", cmd.CommandPath(), err, out)
		}
	}
	for want, args := range map[string][]string{
		"did you mean `lodge jobs submit`?":            {"jobs", "--cluster", "x", "submti"},
		"did you mean `lodge stock` or `lodge store`?": {"stokc"},
		"see `lodge store --help`":                     {"store", "nonsense"},
	} {
		if e, _ := lodgetest.Fails(t, args...); !strings.HasPrefix(e.Next, want) {
			t.Errorf("%v: %v, want %s", args, e, want)
		}
	}
}

// Every command refuses a flag that it does not know as an invalid request, and says so in JSON
// where that is asked.
func TestFailuresAreJSON(t *testing.T) {
	for _, cmd := range lodgetest.Commands(t) {
		e, out := lodgetest.Fails(t, append(lodgetest.Named(cmd), "--json", "--nonsense")...)
		_, f := lodgetest.Failed(t, out)
		if e.Code != rpc.Invalid || f.Code != rpc.Invalid || e.Next == "" || f.What != e.What || f.Next != e.Next {
			t.Errorf("%s: %v, %q", cmd.CommandPath(), e, out)
		}
	}
}

// What fails without a server ends with a code and a next step, on standard output too, in one
// document.
func TestFailuresHaveCodes(t *testing.T) {
	shares := lodgetest.ExportTwo(t, 3)
	keyless, party := lodgetest.WithoutKey(t, shares), filepath.Join(shares, "party-0")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	if _, err := lodgetest.Run(t, "export", "mp-spdz", "--from", party, "--out", full); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code rpc.Code
		next string
		args []string
	}{
		{rpc.Invalid, "lodge params list --all", []string{"params", "show", "S1"}},
		{rpc.Invalid, "lodge params show NAME", []string{"params", "show"}},
		{rpc.Invalid, "lodge reserve --help", []string{"reserve", "--count", "1"}},
		{rpc.NotFound, "--cluster", []string{"jobs", "list", "--cluster", "nowhere"}},
		{rpc.NotFound, "--cluster", []string{"jobs", "show", "x", "--cluster", "nowhere"}},
		{rpc.NotFound, "--cluster", []string{"reserve", "--kind", "bit", "--count", "1", "--cluster", "nowhere"}},
		{rpc.NotFound, "--config", []string{"store", "check", "--config", "nowhere.yaml"}},
		{rpc.Invalid, "lodge party --help", []string{"party", "--config", "nowhere.yaml"}},
		{rpc.Invalid, "docs/operations/operate.md", []string{"store", "stats", "--config", file}},
		{rpc.Conflict, "lodge fetch --with-mac-key", []string{"export", "mp-spdz", "--from", keyless, "--out", t.TempDir()}},
		{rpc.Conflict, "fetch others", []string{"export", "mp-spdz", "--from", filepath.Join(lodgetest.Pooled(t, lodgetest.ExportTwo(t, 3)), "party-0"), "--out", t.TempDir()}},
		{rpc.Invalid, "--pool --into DIR", []string{"verify", shares}},
		{cli.BadShares, "--pool --into DIR", []string{"verify", keyless, filepath.Join(shares, "party-1")}},
		{rpc.Invalid, "name one directory of shares for each party", []string{"verify", party}},
		{rpc.Conflict, "--force", []string{"export", "mp-spdz", "--from", party, "--out", full}},
		{cli.BadShares, "name directories that", []string{"export", "mp-spdz", "--from", "/etc/hosts", "--out", t.TempDir()}},
		{rpc.Invalid, "this one needs a directory where", []string{"export", "mp-spdz", "--from", filepath.Join(shares, "party-1"), "--out", filepath.Join(file, "x")}},
		{rpc.Invalid, "add --kind matrix", []string{"demo", "--dim", "5"}},
		{rpc.NotFound, "", []string{"audit", "verify", "nowhere"}},
	} {
		e, out := lodgetest.Fails(t, append(c.args, "--json")...)
		_, f := lodgetest.Failed(t, out)
		if e.Code != c.code || f.Code != c.code || !strings.Contains(f.Next, c.next) || strings.Contains(f.What, string(f.Code)+":") {
			t.Errorf("%v: %v, want %s (%s)", c.args, e, c.code, c.next)
		}
	}
}

// A record that is written beside a failure has it inside, and there is no second document.
func TestFailureInRecord(t *testing.T) {
	dir := lodgetest.Pooled(t, lodgetest.ExportTwo(t, 3))
	manifest := filepath.Join(dir, "party-1", tuplefile.ManifestName)
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, bytes.Replace(data, []byte(`"mac_key_share": "22"`), []byte(`"mac_key_share": "23"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	e, out := lodgetest.Fails(t, "verify", "--json", dir)
	if record, f := lodgetest.Failed(t, out); record["ok"] != false || record["tuples"] != 3.0 || f.Code != cli.CheckFailed || e.Code != cli.CheckFailed ||
		f.What != "verification failed: 0 of 3 tuples are good" {
		t.Errorf("%v: %s", e, out)
	}
	if e, out = lodgetest.Fails(t, "verify", dir); !strings.Contains(out, "0 of 3") || strings.Contains(out, "error") {
		t.Errorf("%v: %s", e, out)
	}
	for text, want := range map[string]string{
		"": `{"error":{"code":"busy","what":"x","next":""}}` + "\n", "{}": `{"error":{"code":"busy","what":"x","next":""}}` + "\n",
		"{\n  \"a\": 1\n}\n": "{\n  \"a\": 1,\n  \"error\": {\n    \"code\": \"busy\",\n    \"what\": \"x\",\n    \"next\": \"\"\n  }\n}\n",
		`{"a":1}` + "\n":     `{"a":1,"error":{"code":"busy","what":"x","next":""}}` + "\n",
		"[1]\n":              "[1]\n" + `{"error":{"code":"busy","what":"x","next":""}}` + "\n",
	} {
		var b bytes.Buffer
		o := &cli.Output{W: &b, Held: true}
		if _, err := io.WriteString(o, text); err != nil || b.Len() > 0 {
			t.Fatalf("%v: %s", err, b.String())
		}
		if err := o.Fail(errors.Join(rpc.Errorf(rpc.Busy, "", "x"))); err != nil || b.String() != want {
			t.Errorf("%v: %q becomes %q", err, text, b.String())
		}
	}
}

// Where nothing is there, every example of a command that needs something fails with a code other
// than internal and a next step, and with --json in JSON.
func TestExamplesFailWell(t *testing.T) {
	t.Chdir(t.TempDir())
	tried := 0
	for name, lines := range lodgetest.Examples(t) {
		switch strings.Fields(name)[0] {
		case "demo", "dev", "quickstart", "init", "bench", "params", "version", "compose", "enrol": // these need nothing
			continue
		}
		if name == "config keys" || name == "decrypt recipient" || name == "decrypt attester" || name == "linear sets" || name == "mk netlist example" {
			continue
		}
		for _, line := range lines {
			args := strings.Fields(strings.NewReplacer("HASH", strings.Repeat("0", 64), "DIGEST", strings.Repeat("0", 64)).Replace(line))[1:]
			cmd, _, err := lodgetest.NewLodge().Find(args)
			if err != nil {
				t.Fatal(err)
			}
			if cmd.Flags().Lookup("json") == nil && cmd.InheritedFlags().Lookup("json") == nil {
				e, out := lodgetest.Fails(t, args...)
				if e.Code != rpc.NotFound && e.Code != rpc.Unavailable || e.Next == "" || out != "" {
					t.Errorf("%v: %v: %s", args, e, out)
				}
				continue
			}
			e, out := lodgetest.Fails(t, append(args, "--json")...)
			if last, f := lodgetest.Failed(t, out); f.Code != e.Code || f.Code != rpc.NotFound && name != "doctor" || f.Next == "" {
				t.Errorf("%v: %v: %v", args, e, last)
			}
			tried++
		}
	}
	if tried < 50 {
		t.Errorf("only %d examples were tried", tried)
	}
}
