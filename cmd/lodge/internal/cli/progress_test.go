package cli

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"
)

// A command that writes JSON shows no progress.
func TestProgressOf(t *testing.T) {
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	asJSON := cmd.Flags().Bool("json", true, "")
	ProgressOf(cmd).Say("x")
	if out.Len() > 0 {
		t.Errorf("progress of a command that writes JSON: %q", out.String())
	}
	*asJSON = false
	if ProgressOf(cmd).Say("x"); out.Len() == 0 {
		t.Error("no progress is shown")
	}
}
