package conduct

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
)

// reasonFlag adds the flag for the reason of an operator's act.
func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "reason, for the audit log and later readers")
	_ = cmd.MarkFlagRequired("reason")
}

func accusationsClearCommand(o *cli.Operator) *cobra.Command {
	ok, q := &cli.Confirmation{}, &accusationsv1.ClearFailuresRequest{}
	cmd := cli.Command("clear", func(cmd *cobra.Command, _ []string) error {
		return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			h, err := holds(c, ctx)
			if err != nil {
				return err
			}
			var open []*accusationsv1.Failure
			for _, f := range h.failures {
				if q.Last = f.GetSequence(); !f.GetCleared() {
					open = append(open, f)
				}
			}
			if yes, err := ok.Before(func() error { return showUncleared(o, cmd, h, open) }); !yes {
				return err
			}
			r, err := accusations(c).ClearFailures(ctx, q)
			if err != nil {
				return err
			}
			return cli.Print(cmd, struct {
				Cleared  uint32         `json:"cleared"`
				Standing standingRecord `json:"standing"`
			}{r.GetCleared(), standingJSON(r.GetStanding())}, "party %s: %d failures are cleared; %s\n",
				o.Party, r.GetCleared(), goesOn(r.GetStanding()))
		})
	})
	reasonFlag(cmd, &q.Reason)
	ok.Flags(cmd)
	return cmd
}

// goesOn describes whether sessions may start.
func goesOn(s *accusationsv1.Standing) string {
	if s.GetRefusal() != "" {
		return "no session starts: " + cli.OneLine(s.GetRefusal())
	}
	return "sessions may start"
}

// showUncleared prints what would be cleared.
func showUncleared(o *cli.Operator, cmd *cobra.Command, h held, open []*accusationsv1.Failure) error {
	return cli.Write(cmd, struct {
		Failures []unnamedRecord `json:"failures"`
		Standing standingRecord  `json:"standing"`
		DryRun   bool            `json:"dry_run"`
	}{cli.Each(open, unnamedJSON), standingJSON(h.standing), true}, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "party %s would clear %d failures\n", o.Party, len(open)); err != nil || len(open) == 0 {
			return err
		}
		return printUnnamed(w, open, time.Now())
	})
}

func accusationsPardonCommand(o *cli.Operator) *cobra.Command {
	ok, q := &cli.Confirmation{}, &accusationsv1.PardonRequest{}
	cmd := cli.Command("pardon", func(cmd *cobra.Command, args []string) error {
		q.Id = args[0]
		return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			a, err := accusation(c, ctx, q.GetId())
			if err != nil {
				return err
			}
			if yes, err := ok.Before(func() error { return showPardon(o, cmd, a) }); !yes {
				return err
			}
			r, err := accusations(c).Pardon(ctx, q)
			if err != nil {
				return err
			}
			return cli.Print(cmd, struct {
				accusationRecord
				Standing standingRecord `json:"standing"`
			}{accusationJSON(r.GetAccusation()), standingJSON(r.GetStanding())}, "party %s: accusation %s of %s is pardoned; %s\n",
				o.Party, q.GetId(), a.GetCulprit(), goesOn(r.GetStanding()))
		})
	}, func() []string { return completeAccusations(o) })
	reasonFlag(cmd, &q.Reason)
	ok.Flags(cmd)
	return cmd
}

// showPardon prints the accusation that would be pardoned.
func showPardon(o *cli.Operator, cmd *cobra.Command, a *accusationsv1.Accusation) error {
	return cli.Write(cmd, struct {
		accusationRecord
		DryRun bool `json:"dry_run"`
	}{accusationJSON(a), true}, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "party %s would pardon this\n", o.Party); err != nil {
			return err
		}
		return printAccusation(w, a)
	})
}
