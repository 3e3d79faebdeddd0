package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// formerFlags maps the names that flags had in the previous release to their present names.
var formerFlags = map[string]string{"dim": "block"}

// AcceptFormerFlags makes cmd accept the former names of its flags, which its help does not list.
// They will be removed in the next release.
func AcceptFormerFlags(cmd *cobra.Command) {
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if present, ok := formerFlags[name]; ok {
			name = present
		}
		return pflag.NormalizedName(name)
	})
}

// former annotates a command under a former name with the path of the present command below root,
// whose help page it shares.
const former = "former"

// Former hides cmd, which has a former name. present is the path of the command that replaces it.
// It will be removed in the next release.
func Former(cmd *cobra.Command, present string) *cobra.Command {
	cmd.Hidden, cmd.Annotations = true, map[string]string{former: present}
	return cmd
}
