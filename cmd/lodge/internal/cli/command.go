package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
)

// Command returns a command, or without run a group of commands. words completes the first
// argument. The help page of the command says the rest: see Describe.
func Command(name string, run func(*cobra.Command, []string) error, words ...func() []string) *cobra.Command {
	cmd := &cobra.Command{Use: name, RunE: run}
	if len(words) > 0 {
		cmd.ValidArgsFunction = FirstArgument(words[0])
	}
	return cmd
}

// page is the help of one command.
type page struct{ use, short, long, example string }

// Describe sets the usage line, the number of arguments, the help and the examples of root and its
// subcommands from the help pages: Markdown in which a heading is a usage line, the first paragraph
// the short description, indented lines the examples, and everything else the long description. A
// heading in braces names text that pages repeat. {list} in a page stands for a description that
// the command computes. Describe panics if a command has no page, or a page no command.
func Describe(root *cobra.Command, pages string) {
	byPath, repeated := map[string]*page{}, []string{}
	for _, text := range strings.Split("\n"+pages, "\n# ")[1:] {
		heading, body, _ := strings.Cut(text, "\n\n")
		body = strings.TrimSpace(body)
		if strings.HasPrefix(heading, "{") {
			repeated = append(repeated, heading, body)
			continue
		}
		path, use := usage(root, heading)
		if path == "" {
			panic("help page of no command: " + heading)
		}
		p := &page{use: use}
		p.short, body, _ = strings.Cut(body, "\n\n")
		body, p.example, _ = strings.Cut("\n\n"+body, "\n\n    ")
		p.long, p.example = strings.TrimSpace(body), strings.ReplaceAll(p.example, "\n    ", "\n  ")
		byPath[path] = p
	}
	describe(root, "", byPath, strings.NewReplacer(repeated...))
	print := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var text strings.Builder
		out := cmd.OutOrStdout()
		cmd.SetOut(&text)
		print(cmd, args)
		cmd.SetOut(out)
		fmt.Fprint(out, terminal.Wrap(text.String(), helpWidth))
	})
}

// helpWidth is the number of columns of help texts.
const helpWidth = 80

// usage splits a heading such as "lodge keys show EPOCH" into the path of the command below root,
// here "keys show", and the usage, here "show EPOCH".
func usage(root *cobra.Command, heading string) (path, use string) {
	words := strings.Fields(heading)
	at, n := root, 1
	for ; n < len(words); n++ {
		sub, _, err := at.Find(words[n : n+1])
		if err != nil || sub == at {
			break
		}
		at = sub
	}
	return strings.Join(words[1:n], " "), strings.Join(words[n-1:], " ")
}

// describe sets the help of cmd, which the page at path describes, and of its subcommands, unless
// they have their own.
func describe(cmd *cobra.Command, path string, pages map[string]*page, repeated *strings.Replacer) {
	for _, sub := range cmd.Commands() {
		at := strings.TrimSpace(path + " " + sub.Name())
		if present, ok := sub.Annotations[former]; ok {
			at = present
		}
		describe(sub, at, pages, repeated)
	}
	if cmd.Short != "" {
		return
	}
	p := pages[path]
	if p == nil {
		panic("no help page: " + cmd.CommandPath())
	}
	text := strings.NewReplacer("{list}", strings.TrimRight(cmd.Long, "\n")).Replace(repeated.Replace(p.long))
	cmd.Short, cmd.Long = p.short, text
	if p.example != "" {
		cmd.Example = "  " + p.example
	}
	if cmd.Use = cmd.Name() + strings.TrimPrefix(p.use, strings.Fields(p.use)[0]); cmd.Args == nil {
		cmd.Args = arguments(cmd, strings.Fields(p.use)[1:])
	}
}

// arguments returns the check of the arguments that the words of a usage line name: FILE is
// required, [LEVEL] is optional, DIR... may be repeated, and a|b is one of two words. Flags follow.
func arguments(cmd *cobra.Command, words []string) cobra.PositionalArgs {
	least, most := 0, 0
	for _, word := range words {
		if strings.Contains(word, "--") {
			break
		}
		if most++; !strings.ContainsAny(word[:1], "[(") {
			least++
		}
		switch {
		case strings.Contains(word, "..."):
			return cobra.MinimumNArgs(least)
		case strings.Contains(word, "|"):
			cmd.ValidArgs = strings.Split(word, "|")
			return cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)
		}
	}
	switch {
	case most == 0:
		return cobra.NoArgs
	case least == most:
		return cobra.ExactArgs(least)
	}
	return cobra.MaximumNArgs(most)
}
