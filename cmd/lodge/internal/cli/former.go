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

// Former returns a hidden copy of cmd under a former name. It will be removed in the next release.
func Former(cmd *cobra.Command, use string) *cobra.Command {
	cmd.Use, cmd.Hidden = use, true
	return cmd
}
