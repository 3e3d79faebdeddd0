package conduct

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// accusationsCommand returns `lodge accusations`.
func accusationsCommand() *cobra.Command {
	cmd := cli.Command("accusations", nil)
	cmd.AddCommand(accusationsVerifyCommand())
	for _, sub := range []func(*cli.Operator) *cobra.Command{
		accusationsListCommand, accusationsShowCommand, accusationsExportCommand,
		accusationsClearCommand, accusationsPardonCommand,
	} {
		o := &cli.Operator{}
		c := sub(o)
		o.Flags(c)
		o.PartyFlag(c, "the party, by name or index")
		cmd.AddCommand(c)
	}
	return cmd
}

// The JSON records of accusations.

type actRecord struct {
	When   string `json:"when"`
	By     string `json:"by"`
	Reason string `json:"reason"`
}

type accusationRecord struct {
	ID        string     `json:"id"`
	Culprit   string     `json:"culprit"`
	Kind      string     `json:"kind"`
	Check     string     `json:"check"`
	Reason    string     `json:"reason"`
	Session   string     `json:"session"`
	SessionID string     `json:"session_id"`
	Roster    string     `json:"roster"`
	When      string     `json:"when"`
	From      string     `json:"from,omitempty"` // empty: the party detected it itself
	Size      uint64     `json:"size"`
	Told      []string   `json:"told,omitempty"`
	Excludes  bool       `json:"excludes"`
	Pardon    *actRecord `json:"pardon,omitempty"`
}

type unnamedRecord struct {
	Sequence  uint64   `json:"sequence"`
	When      string   `json:"when"`
	Session   string   `json:"session"`
	SessionID string   `json:"session_id"`
	Epoch     uint64   `json:"epoch"`
	Check     string   `json:"check"`
	Reason    string   `json:"reason"`
	Suspects  []string `json:"suspects"`
	Cleared   bool     `json:"cleared"`
}

type standingRecord struct {
	Refusal       string     `json:"refusal,omitempty"`
	Excluded      []string   `json:"excluded,omitempty"`
	Failures      uint32     `json:"failures"`
	MaxFailures   uint32     `json:"max_failures"`
	Within        float64    `json:"within_seconds"`
	OnProvenCheat string     `json:"on_proven_cheat"`
	Stopped       string     `json:"stopped,omitempty"` // RFC 3339
	Suspects      []string   `json:"suspects,omitempty"`
	Cleared       *actRecord `json:"cleared,omitempty"`
}

func actJSON(a *accusationsv1.Act) *actRecord {
	if a == nil {
		return nil
	}
	return &actRecord{cli.Time(a.GetWhen()), a.GetBy(), a.GetReason()}
}

func accusationJSON(a *accusationsv1.Accusation) accusationRecord {
	return accusationRecord{
		a.GetId(), a.GetCulprit(), a.GetKind(), a.GetCheck(), a.GetReason(), a.GetSession(), a.GetSessionId(), hex.EncodeToString(a.GetRosterHash()),
		cli.Time(a.GetWhen()), a.GetFrom(), a.GetSize(), a.GetTold(), a.GetExcludes(), actJSON(a.GetPardon()),
	}
}

func unnamedJSON(f *accusationsv1.Failure) unnamedRecord {
	return unnamedRecord{
		f.GetSequence(), cli.Time(f.GetWhen()), f.GetSession(), f.GetSessionId(), f.GetEpoch(), f.GetCheck(), f.GetReason(), f.GetSuspects(), f.GetCleared(),
	}
}

func standingJSON(s *accusationsv1.Standing) standingRecord {
	return standingRecord{
		s.GetRefusal(), s.GetExcluded(), s.GetFailures(), s.GetMaxFailures(), s.GetWithin().AsDuration().Seconds(), s.GetOnProvenCheat(),
		cli.Time(s.GetStop().GetWhen()), s.GetStop().GetSuspects(), actJSON(s.GetCleared()),
	}
}

func accusations(c *cli.Party) accusationsv1.AccusationsServiceClient {
	return accusationsv1.NewAccusationsServiceClient(c.Conn)
}

// held is everything that a party holds against other parties.
type held struct {
	accusations []*accusationsv1.Accusation
	failures    []*accusationsv1.Failure
	standing    *accusationsv1.Standing
}

// holds fetches all pages.
func holds(c *cli.Party, ctx context.Context) (h held, err error) {
	q := &accusationsv1.ListAccusationsRequest{Limit: 1000}
	for {
		r, err := accusations(c).ListAccusations(ctx, q)
		if err != nil {
			return h, err
		}
		h.accusations, h.standing = append(h.accusations, r.GetAccusations()...), r.GetStanding()
		if q.After = r.GetNext(); q.After == "" {
			break
		}
	}
	f := &accusationsv1.ListFailuresRequest{Limit: 1000}
	for {
		r, err := accusations(c).ListFailures(ctx, f)
		if err != nil {
			return h, err
		}
		h.failures = append(h.failures, r.GetFailures()...)
		if f.After = r.GetNext(); f.After == 0 {
			return h, nil
		}
	}
}

func accusationsListCommand(o *cli.Operator) *cobra.Command {
	return cli.Command("list", func(cmd *cobra.Command, _ []string) error {
		return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			h, err := holds(c, ctx)
			if err != nil {
				return err
			}
			list := struct {
				Accusations []accusationRecord `json:"accusations"`
				Failures    []unnamedRecord    `json:"failures"`
				Standing    standingRecord     `json:"standing"`
			}{cli.Each(h.accusations, accusationJSON), cli.Each(h.failures, unnamedJSON), standingJSON(h.standing)}
			return cli.Write(cmd, list, func(w io.Writer) error { return printHeld(w, h, time.Now()) })
		})
	})
}

func printHeld(w io.Writer, h held, now time.Time) error {
	s := h.standing
	line := "sessions may start"
	if s.GetRefusal() != "" {
		line = "no session starts: " + s.GetRefusal()
	}
	fmt.Fprintln(w, cli.OneLine(line))
	if len(h.accusations) == 0 {
		fmt.Fprintln(w, "no accusations")
	} else {
		t := cli.NewTable(w)
		fmt.Fprintln(t, "ID\tCULPRIT\tKIND\tCHECK\tSESSION\tFROM\tAGE\tEXCLUDES\tREASON")
		for _, a := range h.accusations {
			excludes := "no"
			switch {
			case a.GetPardon() != nil:
				excludes = "pardoned"
			case a.GetExcludes():
				excludes = "yes"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.GetId(), a.GetCulprit(), a.GetKind(), a.GetCheck(), a.GetSession(), cli.OrDash(a.GetFrom()),
				now.Sub(a.GetWhen().AsTime()).Round(time.Second), excludes, cli.OneLine(a.GetReason()))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(h.failures) == 0 {
		_, err := fmt.Fprintln(w, "no failures without blame")
		return err
	}
	_, err := fmt.Fprintf(w, "%d failures without blame count; %d within %s stop generation\n", s.GetFailures(), s.GetMaxFailures(),
		s.GetWithin().AsDuration())
	if err != nil {
		return err
	}
	return printUnnamed(w, h.failures, now)
}

func printUnnamed(w io.Writer, list []*accusationsv1.Failure, now time.Time) error {
	return cli.PrintTable(w, "", "FAILURE\tSESSION\tEPOCH\tCHECK\tSUSPECTS\tAGE\tCLEARED\tREASON", list, func(f *accusationsv1.Failure) []any {
		return []any{f.GetSequence(), f.GetSession(), f.GetEpoch(), f.GetCheck(), strings.Join(f.GetSuspects(), ","),
			now.Sub(f.GetWhen().AsTime()).Round(time.Second), f.GetCleared(), f.GetReason()}
	})
}

func completeAccusations(o *cli.Operator) []string {
	return o.PartyWords(func(ctx context.Context, c *cli.Party) (list []string) {
		r, _ := accusations(c).ListAccusations(ctx, &accusationsv1.ListAccusationsRequest{})
		for _, a := range r.GetAccusations() {
			list = append(list, a.GetId())
		}
		return list
	})
}

// accusation returns the accusation with an id.
func accusation(c *cli.Party, ctx context.Context, id string) (*accusationsv1.Accusation, error) {
	h, err := holds(c, ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range h.accusations {
		if a.GetId() == id {
			return a, nil
		}
	}
	return nil, rpc.Errorf(rpc.NotFound, "`lodge accusations list` lists the ids", "%[2]s has no accusation %[1]q", id, c.Name)
}

func accusationsShowCommand(o *cli.Operator) *cobra.Command {
	return cli.Command("show", func(cmd *cobra.Command, args []string) error {
		return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			a, err := accusation(c, ctx, args[0])
			if err != nil {
				return err
			}
			return cli.Write(cmd, accusationJSON(a), func(w io.Writer) error { return printAccusation(w, a) })
		})
	}, func() []string { return completeAccusations(o) })
}

func printAccusation(w io.Writer, a *accusationsv1.Accusation) error {
	from := "this party detected it itself"
	if a.GetFrom() != "" {
		from = "shown by " + a.GetFrom() + ", and verified here"
	}
	follows := "none: it concerns another roster, or the policy is report"
	switch p := a.GetPardon(); {
	case p != nil:
		follows = fmt.Sprintf("none: pardoned by %s at %s: %s", p.GetBy(), cli.Time(p.GetWhen()), cli.OneLine(p.GetReason()))
	case a.GetExcludes():
		follows = a.GetCulprit() + " is excluded, and no session starts with it"
	}
	t := cli.NewTable(w)
	for _, row := range [][2]string{
		{"accusation", a.GetId()}, {"culprit", a.GetCulprit()}, {"what", cli.OneLine(a.GetReason())}, {"kind, check", a.GetKind() + ", " + a.GetCheck()},
		{"session", a.GetSession() + ", " + a.GetSessionId()}, {"roster", hex.EncodeToString(a.GetRosterHash())},
		{"recorded", cli.Time(a.GetWhen()) + ", " + from}, {"peers that have it", cli.OrDash(strings.Join(a.GetTold(), ", "))},
		{"evidence", fmt.Sprintf("%d bytes; `lodge accusations export %s` writes it", a.GetSize(), a.GetId())}, {"follows", follows},
	} {
		fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
	}
	return t.Flush()
}

func accusationsExportCommand(o *cli.Operator) *cobra.Command {
	var out string
	cmd := cli.Command("export", func(cmd *cobra.Command, args []string) error {
		c, err := o.DialParty()
		if err != nil {
			return err
		}
		defer c.Conn.Close()
		a, err := fetchEvidence(c, cmd.Context(), args[0], out)
		if err != nil {
			return c.Explain(err)
		}
		return cli.Print(cmd, struct {
			accusationRecord
			File string `json:"file"`
		}{accusationJSON(a), out}, "%s has the %d bytes that prove the cheat of %s\n", out, a.GetSize(), a.GetCulprit())
	}, func() []string { return completeAccusations(o) })
	cmd.Flags().StringVar(&out, "out", "", "file to create")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// fetchEvidence writes the evidence of an accusation to a new file.
func fetchEvidence(c *cli.Party, ctx context.Context, id, out string) (*accusationsv1.Accusation, error) {
	stream, err := accusations(c).GetEvidence(ctx, &accusationsv1.GetEvidenceRequest{Id: id})
	if err != nil {
		return nil, err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	if err := cli.SaveStream(out, first, stream.Recv); err != nil {
		return nil, err
	}
	return first.GetAccusation(), nil
}
