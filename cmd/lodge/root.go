package main

import "github.com/spf13/cobra"

// newRoot returns `lodge` with the commands of all rooms and those that more adds. A command that fails returns an error,
// which main prints once.
func newRoot(more ...func(*cobra.Command)) *cobra.Command {
	root := &cobra.Command{
		Use:           "lodge",
		Short:         "Make and serve authenticated triples for secure multiparty computation",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	addGroups(root)
	for _, register := range append([]func(*cobra.Command){
		registerProcess, registerJobs, registerKeys, registerTuples, registerThreshold, registerMultikey, registerLinear, registerConduct,
	}, more...) {
		register(root)
	}
	exemplify(root)
	strict(root)
	return root
}
