// Package lodgetest runs the lodge program and clusters in tests.
package lodgetest

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Commands returns all commands, including those that cobra adds.
func Commands(t *testing.T) (list []*cobra.Command) {
	t.Helper()
	root := NewLodge()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		list = append(list, cmd)
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	add(root)
	if len(list) < 50 {
		t.Fatalf("%d commands", len(list))
	}
	return list
}

// Named returns the name of a command without that of the program.
func Named(cmd *cobra.Command) []string { return strings.Fields(cmd.CommandPath())[1:] }

// Examples returns the examples in the help of every command, by the name of the command without
// that of the program.
func Examples(t *testing.T) map[string][]string {
	t.Helper()
	examples := map[string][]string{}
	for _, cmd := range Commands(t) {
		name := strings.Join(Named(cmd), " ")
		if cmd.Hidden || cmd.HasParent() && cmd.Parent().Hidden || strings.HasPrefix(name, "completion") {
			continue
		}
		for line := range strings.Lines(cmd.Example) {
			examples[name] = append(examples[name], strings.TrimSpace(line))
		}
	}
	return examples
}

// Fails runs a command line that must fail, and returns the error and the standard output.
func Fails(t *testing.T, args ...string) (*rpc.Error, string) {
	t.Helper()
	var out bytes.Buffer
	root := NewLodge()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	err := cli.Execute(t.Context(), root, args)
	if err == nil {
		t.Errorf("%v passes: %s", args, out.String())
		return &rpc.Error{}, ""
	}
	return rpc.FromError(err), out.String()
}

// Failed decodes the error that a command with --json wrote, in the only or last document.
func Failed(t *testing.T, text string) (last map[string]any, f cli.Failure) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		last = nil
		if err := d.Decode(&last); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
	}
	member, err := json.Marshal(last["error"])
	if err != nil || json.Unmarshal(member, &f) != nil || f.Code == "" || f.What == "" {
		t.Fatalf("no error in %q", text)
	}
	return last, f
}

func Run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := NewLodge()
	root.SetOut(&out)
	root.SetErr(&out)
	err := cli.Execute(t.Context(), root, args)
	return out.String(), err
}
