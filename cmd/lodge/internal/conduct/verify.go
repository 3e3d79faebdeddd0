package conduct

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/evidence"
)

// provedRecord is the JSON form of a verified accusation.
type provedRecord struct {
	Proved    bool   `json:"proved"`
	Kind      string `json:"kind,omitempty"`
	Party     int    `json:"party"`
	Culprit   string `json:"culprit,omitempty"`
	Check     string `json:"check,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Protocol  string `json:"protocol,omitempty"`
	Session   string `json:"session,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Accuser   string `json:"accuser,omitempty"`
	When      string `json:"when,omitempty"` // as reported by the accuser
	Roster    string `json:"roster"`
}

func accusationsVerifyCommand() *cobra.Command {
	var path string
	cmd := cli.Command("verify", func(cmd *cobra.Command, args []string) error {
		roster, err := config.LoadRoster(path)
		if err != nil {
			return err
		}
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		hash := roster.Hash()
		found, err := evidence.Verify(cmd.Context(), bufio.NewReaderSize(f, 1<<20), roster)
		if nothing := (*evidence.Error)(nil); errors.As(err, &nothing) {
			if cli.JSON(cmd) {
				cli.Hold(cmd)
				if err := cli.WriteJSON(cmd.OutOrStdout(), provedRecord{Party: -1, Roster: hex.EncodeToString(hash[:])}); err != nil {
					return err
				}
			}
			return rpc.Errorf(cli.CheckFailed, nextOf(nothing.Problem), "the file does not prove a cheat: %s", nothing.Reason)
		}
		if err != nil {
			return err
		}
		x := provedRecord{
			true, string(found.Kind), int(found.Culprit.Index), found.Culprit.Name, found.Check, found.Reason, found.Protocol, found.Job.String(),
			hex.EncodeToString(found.Session[:]), found.Accuser.Name, found.When.UTC().Format(time.RFC3339), hex.EncodeToString(hash[:]),
		}
		return cli.Write(cmd, x, func(w io.Writer) error { return printProved(w, x) })
	})
	cmd.Flags().StringVar(&path, "roster", "", "roster of the session")
	_ = cmd.MarkFlagRequired("roster")
	cmd.Flags().Bool("json", false, "write JSON")
	return cmd
}

// nextOf returns the next step for a file that does not prove a cheat.
func nextOf(p evidence.Problem) string {
	switch p {
	case evidence.OtherRoster:
		return "name the roster that was in use then"
	case evidence.OtherVersion:
		return "use a build of the version that wrote the file"
	case evidence.Unreadable:
		return "check that the file is complete"
	}
	return "do not blame the party for it"
}

func printProved(w io.Writer, x provedRecord) error {
	fmt.Fprintf(w, "proved: party %d (%s) cheated: %s\n", x.Party, x.Culprit, cli.OneLine(x.Reason))
	t := cli.NewTable(w)
	for _, row := range [][2]string{
		{"kind, check", x.Kind + ", " + x.Check}, {"session", x.Session + " of " + x.Protocol + ", " + x.SessionID},
		{"accused by", x.Accuser + ", as of " + x.When + " (its word)"}, {"roster", x.Roster},
	} {
		fmt.Fprintf(t, "  %s\t%s\n", row[0], row[1])
	}
	return t.Flush()
}
