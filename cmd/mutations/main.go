// Command mutations switches off the checks that Lodge's protocols rest on, one at a time, and
// demands that a test fails for each. If no test fails, the next change may lose the check. A
// comment directly above the check declares the mutation:
//
//	//lodge:check AREA/NAME [OPTION]... what goes wrong without the check
//
// docs/internals/testing.md lists the options. A build overlay (go help build) puts a switch at
// every check of a package, so that one test binary serves all its mutations: an environment
// variable turns one of them on. The tree does not change.
//
//	mutations                        runs all mutations
//	mutations -count 12 -seed 345    runs 12, which the seed selects, and prints the names of the others
//	mutations -run '^popk/bound$'    runs one; -run selects by name
//	mutations -list                  lists the checks, and the consequence of losing each
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	list, asJSON bool
	count        int
	seed         uint64
	pattern      string
	jobs         int
	timeout      time.Duration
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("mutations", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.BoolVar(&o.list, "list", false, "list the checks and run nothing")
	flags.BoolVar(&o.asJSON, "json", false, "print a JSON object for every check")
	flags.IntVar(&o.count, "count", 0, "how many to run; 0 runs all")
	flags.Uint64Var(&o.seed, "seed", 0, "which of them: successive seeds go through all")
	flags.StringVar(&o.pattern, "run", "", "run those whose names match this regular expression")
	flags.IntVar(&o.jobs, "jobs", 2, "how many to run at a time")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "end a test that takes longer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	name, err := regexp.Compile(o.pattern)
	if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	all, err := marked(root)
	if err != nil {
		return err
	}
	matches := func(m mutation) bool { return name.MatchString(m.Name) }
	if o.list {
		return list(out, filter(all, matches), o.asJSON)
	}
	live := filter(all, func(m mutation) bool { return m.Redundant == "" })
	chosen, left := share(filter(live, matches), o.count, o.seed)
	t := &tester{root: root, all: live, timeout: o.timeout, jobs: max(1, o.jobs)}
	results, err := t.runAll(ctx, chosen, func(r result) { print(out, r, o.asJSON) })
	if err != nil {
		return err
	}
	return conclude(out, results, left, o.asJSON)
}

func filter(all []mutation, keep func(mutation) bool) (kept []mutation) {
	for _, m := range all {
		if keep(m) {
			kept = append(kept, m)
		}
	}
	return kept
}

// list prints the checks.
func list(out io.Writer, all []mutation, asJSON bool) error {
	for _, m := range all {
		if asJSON {
			if err := json.NewEncoder(out).Encode(m); err != nil {
				return err
			}
			continue
		}
		note := ""
		if m.Redundant != "" {
			note = " (not tested: " + m.Redundant + ")"
		}
		fmt.Fprintf(out, "%-34s %-44s %s%s\n", m.Name, m.File, m.Protects, note)
	}
	return nil
}

func print(out io.Writer, r result, asJSON bool) {
	if asJSON {
		_ = json.NewEncoder(out).Encode(r)
		return
	}
	fmt.Fprintf(out, "%-8s %6.1f s  %-34s %s\n", r.Outcome, r.Seconds, r.Name, r.By)
	if r.Detail != "" {
		fmt.Fprintln(out, "    "+strings.ReplaceAll(strings.TrimSpace(r.Detail), "\n", "\n    "))
	}
}

// conclude prints the totals and the skipped checks. The error names the checks that were not
// caught.
func conclude(out io.Writer, results []result, left []string, asJSON bool) error {
	var bad []string
	for _, r := range results {
		if r.Outcome != caught {
			bad = append(bad, r.Name+" ("+r.Outcome+")")
		}
	}
	if !asJSON {
		fmt.Fprintf(out, "%d of %d checks caught: a test fails without the check\n", len(results)-len(bad), len(results))
		if len(left) > 0 {
			fmt.Fprintf(out, "left out %d: %s\n", len(left), strings.Join(left, " "))
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("not caught: %s", strings.Join(bad, ", "))
	}
	return nil
}
