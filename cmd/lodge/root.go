package main

import "github.com/spf13/cobra"

// newRoot returns `lodge` with the commands of all rooms. A command that fails returns an error, which main prints once.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "lodge",
		Short:         "Make and serve authenticated triples for secure multiparty computation",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	addGroups(root)
	for _, register := range []func(*cobra.Command){
		registerTry, registerProcess, registerJobs, registerKeys, registerTuples, registerThreshold, registerMultikey, registerLinear, registerConduct,
	} {
		register(root)
	}
	exemplify(root)
	strict(root)
	return root
}
