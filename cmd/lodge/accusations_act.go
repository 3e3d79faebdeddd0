package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
)

// reasonFlag adds the flag that an operator's act takes.
func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, for the audit log and those who look at it later")
	_ = cmd.MarkFlagRequired("reason")
}

func (o *operator) accusationsClearCommand() *cobra.Command {
	ok, q := &confirmation{}, &accusationsv1.ClearFailuresRequest{}
	cmd := &cobra.Command{
		Use:   "clear --party PARTY --reason WHY",
		Short: "Have the failures with nobody named so far count no more, so that generation goes on",
		Long: "Have a party's failures with nobody named so far count no more, as its client with the permission accusations. It is\n" +
			"your word that their cause is known: a party that cheats and is not found gets as many attempts again. The other\n" +
			"parties' operators do the same at theirs.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.callParty(cmd, func(ctx context.Context, c *partyClient) error {
				h, err := c.holds(ctx)
				if err != nil {
					return err
				}
				var open []*accusationsv1.Failure
				for _, f := range h.failures {
					if q.Last = f.GetSequence(); !f.GetCleared() {
						open = append(open, f)
					}
				}
				if yes, err := ok.before(func() error { return o.showUncleared(cmd, h, open) }); !yes {
					return err
				}
				r, err := c.accusations().ClearFailures(ctx, q)
				if err != nil {
					return err
				}
				if o.json {
					return writeIndented(cmd.OutOrStdout(), struct {
						Cleared  uint32         `json:"cleared"`
						Standing standingRecord `json:"standing"`
					}{r.GetCleared(), standingJSON(r.GetStanding())})
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "party %s: %d failures are cleared; %s\n",
					o.party, r.GetCleared(), goesOn(r.GetStanding()))
				return err
			})
		},
	}
	reasonFlag(cmd, &q.Reason)
	ok.flags(cmd)
	return cmd
}

// goesOn says whether sessions may begin.
func goesOn(s *accusationsv1.Standing) string {
	if s.GetRefusal() != "" {
		return "no session begins: " + oneLine(s.GetRefusal())
	}
	return "sessions may begin"
}

// showUncleared says what would be cleared.
func (o *operator) showUncleared(cmd *cobra.Command, h held, open []*accusationsv1.Failure) error {
	if o.json {
		out := struct {
			Failures []unnamedRecord `json:"failures"`
			Standing standingRecord  `json:"standing"`
			DryRun   bool            `json:"dry_run"`
		}{[]unnamedRecord{}, standingJSON(h.standing), true}
		for _, f := range open {
			out.Failures = append(out.Failures, unnamedJSON(f))
		}
		return writeIndented(cmd.OutOrStdout(), out)
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "party %s would clear %d failures\n", o.party, len(open)); err != nil || len(open) == 0 {
		return err
	}
	return printUnnamed(cmd.OutOrStdout(), open, time.Now())
}

func (o *operator) accusationsPardonCommand() *cobra.Command {
	ok, q := &confirmation{}, &accusationsv1.PardonRequest{}
	cmd := &cobra.Command{
		Use:   "pardon ID --party PARTY --reason WHY",
		Short: "Have an accusation exclude nobody any more, at one party",
		Long: "Have an accusation exclude nobody any more, as the party's client with the permission accusations. A party that is\n" +
			"convicted has signed what no party signs that follows the protocol: its machine, its build or its key is not what\n" +
			"it should be. To go on without it, change the roster. Other accusations of the same party stay; the other parties'\n" +
			"operators do the same at theirs.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(o.completeAccusations),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Id = args[0]
			return o.callParty(cmd, func(ctx context.Context, c *partyClient) error {
				a, err := c.accusation(ctx, q.GetId())
				if err != nil {
					return err
				}
				if yes, err := ok.before(func() error { return o.showPardon(cmd, a) }); !yes {
					return err
				}
				r, err := c.accusations().Pardon(ctx, q)
				if err != nil {
					return err
				}
				if o.json {
					return writeIndented(cmd.OutOrStdout(), struct {
						accusationRecord
						Standing standingRecord `json:"standing"`
					}{accusationJSON(r.GetAccusation()), standingJSON(r.GetStanding())})
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "party %s: accusation %s of %s is pardoned; %s\n",
					o.party, q.GetId(), a.GetCulprit(), goesOn(r.GetStanding()))
				return err
			})
		},
	}
	reasonFlag(cmd, &q.Reason)
	ok.flags(cmd)
	return cmd
}

// showPardon says what would be pardoned.
func (o *operator) showPardon(cmd *cobra.Command, a *accusationsv1.Accusation) error {
	if o.json {
		return writeIndented(cmd.OutOrStdout(), struct {
			accusationRecord
			DryRun bool `json:"dry_run"`
		}{accusationJSON(a), true})
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "party %s would pardon this\n", o.party); err != nil {
		return err
	}
	return printAccusation(cmd.OutOrStdout(), a)
}
