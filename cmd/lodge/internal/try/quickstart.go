package try

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// tour is `lodge quickstart`.
type tour struct {
	devOptions
	yes  bool
	out  io.Writer
	keys *bufio.Reader // lines that the user types
	work string        // directory for shares and ciphertexts

	n int // of the last step
}

func quickstartCommand() *cobra.Command {
	t := &tour{}
	cmd := cli.Command("quickstart", func(cmd *cobra.Command, _ []string) error {
		t.given = cmd.Flags().Changed
		return t.run(cmd)
	})
	t.flags(cmd)
	for _, name := range []string{"minimal", "field", "stock", "dim", "port"} {
		_ = cmd.Flags().MarkHidden(name) // for the cluster, which the tour describes with its defaults
	}
	cmd.Flags().BoolVar(&t.yes, "yes", false, "do not wait for Enter before each step")
	return cmd
}

func (t *tour) run(cmd *cobra.Command) (err error) {
	in := cmd.InOrStdin()
	if f, ok := in.(*os.File); !t.yes && ok && !term.IsTerminal(int(f.Fd())) {
		return cli.Invalid("add --yes to run all steps without waiting", "the input is not a terminal, so nobody can press Enter")
	}
	t.out, t.keys = cmd.OutOrStdout(), bufio.NewReader(in)
	if t.work, err = os.MkdirTemp("", "lodge-quickstart-"); err != nil {
		return err
	}
	defer os.RemoveAll(t.work)
	if err := t.say("Start a cluster", "A coordinator and %d parties start on this machine. In production each party runs on its own machine, and nobody has the secrets of two. They make keys, and keep tuples in stock. All files are in %s. This takes about a minute.", t.parties, t.dir); err != nil {
		return t.ended(cmd.Context(), err)
	}
	if err := t.with(cmd, func(*DevReport) error { return nil }, func(r *DevReport) error { return t.steps(cmd.Context(), r) }, true); err != nil {
		return t.ended(cmd.Context(), err)
	}
	fmt.Fprintf(t.out, "\nThe cluster has stopped. `lodge dev%s` starts it again, with the same keys and stock; `rm -r %s` removes it.\nNext: docs/start/quickstart.md fetches shares into Python arrays, and docs/guides/online.md computes on them.\n", t.at("dir"), t.dir)
	return nil
}

// errStopped ends the tour without an error.
var errStopped = errors.New("stopped by the user")

func (t *tour) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// steps shows the commands of a user. Each is run as a user runs it.
func (t *tour) steps(ctx context.Context, r *DevReport) error {
	if err := t.say("Look at the processes", "Every process says whether it is ready. `lodge status` shows more: versions, links and memory."); err != nil {
		return err
	}
	if _, err := t.do(ctx, "health"); err != nil {
		return err
	}
	if err := t.say("Look at the stock", "Policies keep tuples of each kind in stock. A scalar triple is a random a and b, and c = ab, shared among the parties with MACs: no party knows them."); err != nil {
		return err
	}
	if _, err := t.do(ctx, "stock"); err != nil {
		return err
	}
	if err := t.say("Reserve 100 triples", "A reservation takes the same triples at all parties. Its id is how their programs name them."); err != nil {
		return err
	}
	id, err := t.do(ctx, "reserve", "--kind", "scalar", "--params", t.params[0], "--field", t.field, "--count", "100")
	if err != nil {
		return err
	}
	if id = strings.TrimSpace(id); id == "" || strings.ContainsAny(id, " \n") {
		return rpc.Errorf(rpc.Internal, "", "unexpected id %q", id)
	}
	if err := t.say("Fetch the shares of party 0", "Each party gives only its own share, and only to its own client. The file has the shares of a, b and c and of their MACs."); err != nil {
		return err
	}
	if _, err := t.do(ctx, "fetch", id, "--party", "0", "--out", filepath.Join(t.work, "p0")); err != nil {
		return err
	}
	return t.decryption(ctx, r)
}

// decryption encrypts and decrypts with the threshold keys, if there are any.
func (t *tour) decryption(ctx context.Context, r *DevReport) error {
	for _, k := range r.Keys {
		if _, err := lwe.Lookup(k.Params); err == nil {
			if err := t.say("Encrypt three numbers", "Epoch %d has threshold keys: anyone encrypts, and any majority of the parties decrypts together.", k.Epoch); err != nil {
				return err
			}
			file, epoch := filepath.Join(t.work, "sum"), fmt.Sprint(k.Epoch)
			if _, err := t.do(ctx, "keys", "encrypt", epoch, "3", "1", "4", "--out", file); err != nil {
				return err
			}
			if err := t.say("Decrypt them", "Each party of a quorum sends a masked share. No party sees the key, and a mask is used once."); err != nil {
				return err
			}
			_, err := t.do(ctx, "decrypt", file)
			return err
		}
	}
	return nil
}

// say prints the heading of a step and what it does, and waits for Enter.
func (t *tour) say(title, format string, args ...any) error {
	t.n++
	width := terminal.Width(t.out)
	if width == 0 || width > 80 {
		width = 80
	}
	fmt.Fprintf(t.out, "\n%d. %s\n\n%s\n", t.n, title, terminal.Wrap(fmt.Sprintf(format, args...), width))
	if t.yes {
		return nil
	}
	fmt.Fprint(t.out, "Press Enter to go on, or type q to stop: ")
	line, err := t.keys.ReadString('\n')
	if err != nil || strings.TrimSpace(line) == "q" {
		return errStopped
	}
	return nil
}

// do runs a command of lodge with the tour's cluster, and shows it with its output, which it
// returns.
func (t *tour) do(ctx context.Context, args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(t.out, "$ lodge %s\n", strings.Join(args, " "))
	var out strings.Builder
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), cli.ClusterVariable+"="+t.dir)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(t.out, &out), t.out
	if err := cmd.Run(); err != nil {
		return "", rpc.Errorf(rpc.Internal, "its error is above", "lodge %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), nil
}
