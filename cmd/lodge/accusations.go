package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// accusationsCommand is `lodge accusations`.
func accusationsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "accusations",
		Short: "See what a party holds against others, check the evidence, and let it go on",
		Long: "A party keeps the evidence of every cheat that it can prove, and the failures that it can name nobody for. Who is\n" +
			"convicted is excluded; too many failures stop generation. Both last until an operator of that party acts.",
	}
	cmd.AddCommand(accusationsVerifyCommand())
	for _, sub := range []func(*operator) *cobra.Command{
		(*operator).accusationsListCommand, (*operator).accusationsShowCommand, (*operator).accusationsExportCommand,
		(*operator).accusationsClearCommand, (*operator).accusationsPardonCommand,
	} {
		o := &operator{}
		c := sub(o)
		c.Long = strings.TrimSpace(c.Long + "\n\n" + connecting)
		o.flags(c)
		o.partyFlag(c, "the party, by name or index")
		cmd.AddCommand(c)
	}
	return cmd
}

// The JSON of accusations.

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
	From      string     `json:"from,omitempty"` // empty: the party saw it itself
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
	Stopped       string     `json:"stopped,omitempty"` // since when
	Suspects      []string   `json:"suspects,omitempty"`
	Cleared       *actRecord `json:"cleared,omitempty"`
}

func actJSON(a *accusationsv1.Act) *actRecord {
	if a == nil {
		return nil
	}
	return &actRecord{when(a.GetWhen()), a.GetBy(), a.GetReason()}
}

func accusationJSON(a *accusationsv1.Accusation) accusationRecord {
	return accusationRecord{
		a.GetId(), a.GetCulprit(), a.GetKind(), a.GetCheck(), a.GetReason(), a.GetSession(), a.GetSessionId(), hex.EncodeToString(a.GetRosterHash()),
		when(a.GetWhen()), a.GetFrom(), a.GetSize(), a.GetTold(), a.GetExcludes(), actJSON(a.GetPardon()),
	}
}

func unnamedJSON(f *accusationsv1.Failure) unnamedRecord {
	return unnamedRecord{
		f.GetSequence(), when(f.GetWhen()), f.GetSession(), f.GetSessionId(), f.GetEpoch(), f.GetCheck(), f.GetReason(), f.GetSuspects(), f.GetCleared(),
	}
}

func standingJSON(s *accusationsv1.Standing) standingRecord {
	return standingRecord{
		s.GetRefusal(), s.GetExcluded(), s.GetFailures(), s.GetMaxFailures(), s.GetWithin().AsDuration().Seconds(), s.GetOnProvenCheat(),
		when(s.GetStop().GetWhen()), s.GetStop().GetSuspects(), actJSON(s.GetCleared()),
	}
}

func (c *partyClient) accusations() accusationsv1.AccusationsServiceClient {
	return accusationsv1.NewAccusationsServiceClient(c.conn)
}

// held is all that a party holds against others.
type held struct {
	accusations []*accusationsv1.Accusation
	failures    []*accusationsv1.Failure
	standing    *accusationsv1.Standing
}

// holds asks for all pages.
func (c *partyClient) holds(ctx context.Context) (h held, err error) {
	q := &accusationsv1.ListAccusationsRequest{Limit: 1000}
	for {
		r, err := c.accusations().ListAccusations(ctx, q)
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
		r, err := c.accusations().ListFailures(ctx, f)
		if err != nil {
			return h, err
		}
		h.failures = append(h.failures, r.GetFailures()...)
		if f.After = r.GetNext(); f.After == 0 {
			return h, nil
		}
	}
}

func (o *operator) accusationsListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list --party PARTY",
		Short: "List a party's accusations and its failures with nobody named, as a client with the permission status",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.callParty(cmd, func(ctx context.Context, c *partyClient) error {
				h, err := c.holds(ctx)
				if err != nil {
					return err
				}
				if o.json {
					list := struct {
						Accusations []accusationRecord `json:"accusations"`
						Failures    []unnamedRecord    `json:"failures"`
						Standing    standingRecord     `json:"standing"`
					}{[]accusationRecord{}, []unnamedRecord{}, standingJSON(h.standing)}
					for _, a := range h.accusations {
						list.Accusations = append(list.Accusations, accusationJSON(a))
					}
					for _, f := range h.failures {
						list.Failures = append(list.Failures, unnamedJSON(f))
					}
					return writeIndented(cmd.OutOrStdout(), list)
				}
				return printHeld(cmd.OutOrStdout(), h, time.Now())
			})
		},
	}
}

func printHeld(w io.Writer, h held, now time.Time) error {
	s := h.standing
	line := "sessions may begin"
	if s.GetRefusal() != "" {
		line = "no session begins: " + s.GetRefusal()
	}
	fmt.Fprintln(w, oneLine(line))
	if len(h.accusations) == 0 {
		fmt.Fprintln(w, "no accusations")
	} else {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ID\tCULPRIT\tKIND\tCHECK\tSESSION\tFROM\tAGE\tEXCLUDES\tREASON")
		for _, a := range h.accusations {
			excludes := "no"
			switch {
			case a.GetPardon() != nil:
				excludes = "pardoned"
			case a.GetExcludes():
				excludes = "yes"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.GetId(), a.GetCulprit(), a.GetKind(), a.GetCheck(), a.GetSession(), orDash(a.GetFrom()),
				now.Sub(a.GetWhen().AsTime()).Round(time.Second), excludes, oneLine(a.GetReason()))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(h.failures) == 0 {
		_, err := fmt.Fprintln(w, "no failures with nobody named")
		return err
	}
	_, err := fmt.Fprintf(w, "%d failures with nobody named count; %d within %s stop generation\n", s.GetFailures(), s.GetMaxFailures(),
		s.GetWithin().AsDuration())
	if err != nil {
		return err
	}
	return printUnnamed(w, h.failures, now)
}

func printUnnamed(w io.Writer, list []*accusationsv1.Failure, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FAILURE\tSESSION\tEPOCH\tCHECK\tSUSPECTS\tAGE\tCLEARED\tREASON")
	for _, f := range list {
		cleared := "no"
		if f.GetCleared() {
			cleared = "yes"
		}
		fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", f.GetSequence(), f.GetSession(), f.GetEpoch(), f.GetCheck(), strings.Join(f.GetSuspects(), ","),
			now.Sub(f.GetWhen().AsTime()).Round(time.Second), cleared, oneLine(f.GetReason()))
	}
	return t.Flush()
}

func (o *operator) completeAccusations() []string {
	return o.askedParty(func(ctx context.Context, c *partyClient) (list []string) {
		r, _ := c.accusations().ListAccusations(ctx, &accusationsv1.ListAccusationsRequest{})
		for _, a := range r.GetAccusations() {
			list = append(list, a.GetId())
		}
		return list
	})
}

// accusation finds one by its id.
func (c *partyClient) accusation(ctx context.Context, id string) (*accusationsv1.Accusation, error) {
	h, err := c.holds(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range h.accusations {
		if a.GetId() == id {
			return a, nil
		}
	}
	return nil, rpc.Errorf(rpc.NotFound, "`lodge accusations list` names those that there are", "no accusation %q at %s", id, c.name)
}

func (o *operator) accusationsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show ID --party PARTY",
		Short:             "Show an accusation of a party, as a client with the permission status",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(o.completeAccusations),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.callParty(cmd, func(ctx context.Context, c *partyClient) error {
				a, err := c.accusation(ctx, args[0])
				if err != nil {
					return err
				}
				if o.json {
					return writeIndented(cmd.OutOrStdout(), accusationJSON(a))
				}
				return printAccusation(cmd.OutOrStdout(), a)
			})
		},
	}
}

func printAccusation(w io.Writer, a *accusationsv1.Accusation) error {
	from := "this party saw it itself"
	if a.GetFrom() != "" {
		from = "shown by " + a.GetFrom() + ", and verified here"
	}
	follows := "nothing: it is of another roster, or the policy is report"
	switch p := a.GetPardon(); {
	case p != nil:
		follows = fmt.Sprintf("nothing: pardoned by %s at %s: %s", p.GetBy(), when(p.GetWhen()), oneLine(p.GetReason()))
	case a.GetExcludes():
		follows = a.GetCulprit() + " is excluded, and no session begins with it"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"accusation", a.GetId()}, {"culprit", a.GetCulprit()}, {"what", oneLine(a.GetReason())}, {"kind, check", a.GetKind() + ", " + a.GetCheck()},
		{"session", a.GetSession() + ", " + a.GetSessionId()}, {"roster", hex.EncodeToString(a.GetRosterHash())},
		{"recorded", when(a.GetWhen()) + ", " + from}, {"peers that have it", orDash(strings.Join(a.GetTold(), ", "))},
		{"evidence", fmt.Sprintf("%d bytes; `lodge accusations export %s` writes it", a.GetSize(), a.GetId())}, {"follows", follows},
	} {
		fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
	}
	return t.Flush()
}

func (o *operator) accusationsExportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "export ID --party PARTY --out FILE",
		Short: "Write the evidence of an accusation to a new file, which anybody can verify who has the roster",
		Long: "Write the evidence of an accusation to a new file, as a client with the permission status. There is nothing secret in\n" +
			"it: messages that the culprit has signed, and what it takes to see that it should not have. `lodge accusations verify`\n" +
			"checks it on any machine.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(o.completeAccusations),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.dialParty()
			if err != nil {
				return err
			}
			defer c.conn.Close()
			a, err := c.evidence(cmd.Context(), args[0], out)
			if err != nil {
				return c.explain(err)
			}
			if o.json {
				return writeIndented(cmd.OutOrStdout(), struct {
					accusationRecord
					File string `json:"file"`
				}{accusationJSON(a), out})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has the %d bytes that prove the cheat of %s\n", out, a.GetSize(), a.GetCulprit())
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to make")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// evidence writes the evidence of an accusation to a new file.
func (c *partyClient) evidence(ctx context.Context, id, out string) (*accusationsv1.Accusation, error) {
	stream, err := c.accusations().GetEvidence(ctx, &accusationsv1.GetEvidenceRequest{Id: id})
	if err != nil {
		return nil, err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, rpc.Errorf(rpc.Conflict, "name a new file", "%s exists", out)
	}
	if err != nil {
		return nil, err
	}
	for r := first; err == nil; {
		if _, err = f.Write(r.GetChunk()); err == nil {
			r, err = stream.Recv()
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(out))
	}
	return first.GetAccusation(), nil
}
