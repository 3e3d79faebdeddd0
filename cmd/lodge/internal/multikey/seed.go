package multikey

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/secretfile"
	"github.com/lodge-mpc/lodge/services/multikey/toss"
	"github.com/lodge-mpc/lodge/services/ops/enrol"
)

// seedRecord is the JSON outcome of `lodge mk seed combine` and `lodge mk seed verify`.
type seedRecord struct {
	Label    string   `json:"label"`
	Set      string   `json:"set"`
	Seed     string   `json:"seed"`
	Founders []string `json:"founders"`
	// Joined lists the parties of the roster that took no part.
	Joined []string `json:"joined,omitempty"`
}

// mkSeedCommand returns `lodge mk seed`.
func mkSeedCommand() *cobra.Command {
	cmd := cli.Command("seed", nil)
	cmd.AddCommand(seedCommitCommand(), seedRevealCommand(), seedCombineCommand(), seedVerifyCommand())
	return cmd
}

func seedCommitCommand() *cobra.Command {
	var label, set, dir, out string
	cmd := cli.Command("commit", func(cmd *cobra.Command, args []string) error {
		founders, err := entriesOf(args)
		if err != nil {
			return err
		}
		key, err := pki.LoadSigningKey(filepath.Join(dir, enrol.SigningFile))
		if err != nil {
			return cli.Misconfigured(err)
		}
		if err := cli.RefuseLegacy(set); err != nil {
			return err
		}
		c, err := toss.New(label, set, founders)
		if err != nil {
			return cli.Tossed(err)
		}
		s, m, err := c.Commit(key)
		if err != nil {
			return cli.Tossed(err)
		}
		defer s.Wipe()
		if err := cli.CheckNewFile(out); err != nil {
			return err
		}
		secret := secretPath(dir, label)
		if err := writeBytes(secret, 0o600, s.Bytes()); err != nil {
			return err
		}
		if err := writeBytes(out, 0o644, m.Bytes()); err != nil {
			return errors.Join(err, os.Remove(secret))
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s, to hand out; keep %s\n", out, secret)
		return err
	})
	f := cmd.Flags()
	f.StringVar(&label, "label", "", "name of this toss, the same for all founders")
	f.StringVar(&set, "set", multikey.Default, "parameter set that the seed is for")
	seedFiles(cmd, &dir, &out)
	_ = cmd.MarkFlagRequired("label")
	return cmd
}

// seedFiles adds the flags for a founder's files.
func seedFiles(cmd *cobra.Command, dir, out *string) {
	cmd.Flags().StringVar(dir, "dir", "", "`directory` that `lodge enrol` made, with the founder's signing key")
	cmd.Flags().StringVar(out, "out", "", "file to create")
	_ = cmd.MarkFlagRequired("dir")
	_ = cmd.MarkFlagRequired("out")
}

func seedRevealCommand() *cobra.Command {
	var dir, out string
	cmd := cli.Command("reveal", func(cmd *cobra.Command, args []string) error {
		var list []*toss.Commitment
		for _, path := range args {
			m, err := cli.ReadToss(path, toss.ParseCommitment)
			if err != nil {
				return err
			}
			list = append(list, m)
		}
		key, err := pki.LoadSigningKey(filepath.Join(dir, enrol.SigningFile))
		if err != nil {
			return cli.Misconfigured(err)
		}
		secret := secretPath(dir, list[0].Label)
		s, err := readSecret(secret)
		if err != nil {
			return err
		}
		defer s.Wipe()
		m, err := s.Reveal(key, list)
		if err != nil {
			return cli.Tossed(err)
		}
		if err := writeBytes(out, 0o644, m.Bytes()); err != nil {
			return err
		}
		if err := os.WriteFile(secret, []byte(revealedLine), 0o600); err != nil {
			return errors.Join(err, os.Remove(out))
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s, to hand out\n", out)
		return err
	})
	seedFiles(cmd, &dir, &out)
	return cmd
}

func seedCombineCommand() *cobra.Command {
	var out string
	cmd := cli.Command("combine", func(cmd *cobra.Command, args []string) error {
		var list []*toss.Reveal
		for _, path := range args {
			m, err := cli.ReadToss(path, toss.ParseReveal)
			if err != nil {
				return err
			}
			list = append(list, m)
		}
		t, err := toss.Combine(list)
		if err != nil {
			return cli.Tossed(err)
		}
		if err := writeBytes(out, 0o644, t.Bytes()); err != nil {
			return err
		}
		return printSeed(cmd, newSeedRecord(t))
	})
	cmd.Flags().StringVar(&out, "out", "", "file to create")
	cmd.Flags().Bool("json", false, "write JSON")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func seedVerifyCommand() *cobra.Command {
	var roster string
	cmd := cli.Command("verify", func(cmd *cobra.Command, args []string) error {
		t, err := cli.ReadTranscript(args[0])
		if err != nil {
			return err
		}
		r := newSeedRecord(t)
		if roster != "" {
			if r.Joined, err = cli.SeedOf(t, roster); err != nil {
				return err
			}
		}
		return printSeed(cmd, r)
	})
	cmd.Flags().StringVar(&roster, "roster", "", "roster that contains the seed")
	cmd.Flags().Bool("json", false, "write JSON")
	return cmd
}

func newSeedRecord(t *toss.Transcript) seedRecord {
	r := seedRecord{Label: t.Label, Set: t.Set, Seed: cli.ContextOf(t).Seed}
	for _, f := range t.Founders {
		r.Founders = append(r.Founders, f.Name+" "+pki.EncodePublic(f.Key))
	}
	return r
}

func printSeed(cmd *cobra.Command, r seedRecord) error {
	return cli.Write(cmd, r, func(w io.Writer) error {
		for _, f := range r.Founders {
			fmt.Fprintln(w, "founder", f)
		}
		if len(r.Joined) > 0 {
			fmt.Fprintln(w, "took no part:", strings.Join(r.Joined, ", "))
		}
		_, err := fmt.Fprintf(w, "toss %s; in the roster of all:\nmultikey:\n  set: %s\n  seed: %s\n", r.Label, r.Set, r.Seed)
		return err
	})
}

// entriesOf returns the founders of entry files.
func entriesOf(paths []string) (founders []toss.Founder, err error) {
	for _, path := range paths {
		e, err := config.LoadEntry(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, rpc.Errorf(rpc.NotFound, "name the entry.yaml files that `lodge enrol` wrote", "%v", err)
		}
		if err != nil {
			return nil, cli.Invalid("name the entry.yaml files that `lodge enrol` wrote", "%v", err)
		}
		key, err := pki.ParsePublic(e.SigningKey)
		if err != nil {
			return nil, cli.Invalid("name the entries of parties only, without the coordinator's", "%s: %v", path, err)
		}
		founders = append(founders, toss.Founder{Name: e.Name, Key: key})
	}
	return founders, nil
}

// revealedLine replaces the stored value after it was revealed, so that the founder cannot commit
// again under this label.
const revealedLine = "lodge multikey toss revealed 1\n"

// secretPath returns the path of a founder's stored value. Labels are names.
func secretPath(dir, label string) string { return filepath.Join(dir, "toss-"+label+".secret") }

func readSecret(path string) (*toss.Secret, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, rpc.Errorf(rpc.NotFound, "name the directory that this founder used for `lodge mk seed commit`", "%v", err)
	case err != nil:
		return nil, err
	case secretfile.Exposed(info):
		return nil, cli.Invalid("toss again, with another label", "%s can be read by other users", path)
	}
	b, err := os.ReadFile(path)
	if err == nil && string(b) == revealedLine {
		return nil, rpc.Errorf(rpc.Conflict, "a founder reveals once: hand out the file that was written then, or toss again with another label",
			"the value in %s was already revealed", path)
	}
	return cli.ReadToss(path, toss.ParseSecret)
}

func writeBytes(path string, mode os.FileMode, b []byte) error {
	return cli.WriteNewFile(path, mode, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
