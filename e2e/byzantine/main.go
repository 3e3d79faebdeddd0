// Command byzantine is a party for tests: a whole Lodge party, as `lodge party` runs it, that
// cheats in one named way. The product does not include it.
//
//	byzantine --list
//	byzantine --cheat NAME --config FILE
//	byzantine --cheat - --config FILE
//
// The last form reads one command per session from standard input: "cheat NAME", "record KIND" (be
// honest and record the messages, for replays of that kind of session), or "honest". It responds
// with a line that begins with ok and names the hooks of the previous cheat that were never
// reached.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/party"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "byzantine:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) error {
	flags := flag.NewFlagSet("byzantine", flag.ContinueOnError)
	flags.SetOutput(errs)
	name := flags.String("cheat", "", "name of the cheat, or - to read names from standard input")
	file := flags.String("config", "party.yaml", "configuration of the party")
	version := flags.String("version", "byzantine", "version that the party claims to be")
	list := flags.Bool("list", false, "write the table of cheats")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *list {
		return writeTable(out)
	}
	f, err := config.LoadParty(*file)
	if err != nil {
		return err
	}
	c, err := newCheater(f)
	if err != nil {
		return err
	}
	if *name == "-" {
		go c.obey(in, out)
	} else if err := c.order("cheat", *name); err != nil {
		return err
	}
	return party.RunWith(ctx, f, *version, slog.New(slog.NewTextHandler(errs, nil)), party.Seam{Cheat: c.begin, Streams: c.sends}, c.inner())
}

// obey takes orders until its input ends.
func (c *cheater) obey(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		verb, argument, _ := strings.Cut(lines.Text(), " ")
		missed := c.missed()
		if err := c.order(verb, argument); err != nil {
			fmt.Fprintln(out, "error", err)
			continue
		}
		fmt.Fprintln(out, strings.Join(append([]string{"ok"}, missed...), " "))
	}
}

// order says what to do from the next session on.
func (c *cheater) order(verb, argument string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch verb {
	case "honest":
		c.cheat, c.recording = nil, ""
	case "record":
		c.cheat, c.recording = nil, cheattest.Kind(argument)
	case "cheat":
		cheat := cheattest.Find(argument)
		if cheat == nil {
			return fmt.Errorf("no cheat is called %q; --list has them", argument)
		}
		c.cheat, c.recording = cheat, ""
	default:
		return errors.New("an order is cheat NAME, record KIND or honest")
	}
	c.unfired, c.faults, c.links = nil, 0, map[linkKey]*link{}
	return nil
}

// writeTable writes all cheats.
func writeTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSESSION\tPARTIES\tTHREATS\tCHECK\tNAMED\tCOUNTS\tWHAT IT DOES")
	for _, c := range cheattest.Table() {
		ends := c.OnWire()
		check, counts := ends.Check, ""
		if check == "" {
			check = "(passes)"
		}
		if ends.Counts {
			counts = "yes"
		}
		threats := strings.Trim(fmt.Sprint(c.Threats), "[]")
		fmt.Fprintf(w, "%s\t%s\t%d+\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.In, c.From, threats, check, ends.Named, counts, c.Does)
	}
	fmt.Fprintln(w, "\nATTACK\tENDS\t\t\t\t\t\tWHAT IT DOES")
	for _, a := range attacks() {
		fmt.Fprintf(w, "%s\t%s\t\t\t\t\t\t%s\n", a.Name, a.Ends, a.Does)
	}
	return w.Flush()
}
