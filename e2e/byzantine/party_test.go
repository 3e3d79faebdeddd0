// Package byzantine tests whole parties, as `lodge party` runs them, against parties that cheat in
// one named way and against a coordinator that lies. A process of the test binary runs a cheating
// party if it has the flag -cheat; the product does not include it.
//
// With the name -, the party reads one command per session from standard input: "cheat NAME",
// "record KIND" (be honest and record the messages, for replays of that kind of session), or
// "honest". It responds with a line that begins with ok and names the hooks of the previous cheat
// that were never reached.
package byzantine

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
	"testing"
	"text/tabwriter"

	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/party"
)

var (
	cheatName  = flag.String("cheat", "", "run a party with this cheat, or - to read names from standard input")
	configFile = flag.String("config", "party.yaml", "configuration of the party for -cheat")
	claims     = flag.String("version", "byzantine", "version that the party of -cheat claims to be")
	listCheats = flag.Bool("cheats", false, "write the table of cheats")
)

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	status := 0
	switch {
	case *listCheats:
		err = writeTable(os.Stdout)
	case *cheatName != "":
		err = runParty(*cheatName, *configFile)
	default:
		status, err = runTests(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "byzantine:", err)
		status = 1
	}
	os.Exit(status)
}

// runParty runs a cheating party until the process is interrupted.
func runParty(name, file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f, err := config.LoadParty(file)
	if err != nil {
		return err
	}
	c, err := newCheater(f)
	if err != nil {
		return err
	}
	if name == "-" {
		go c.obey(os.Stdin, os.Stdout)
	} else if err := c.order("cheat", name); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	return party.RunWith(ctx, f, *claims, log, party.Seam{Cheat: c.begin, Streams: c.sends}, c.inner())
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
			return fmt.Errorf("no cheat is called %q; -cheats lists them", argument)
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
