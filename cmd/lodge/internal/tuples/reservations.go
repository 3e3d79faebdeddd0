package tuples

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// completeReservations returns the newest reservations of the selected party, or of the
// coordinator.
func completeReservations(o *cli.Operator) (ids []string) {
	if o.Party != "" {
		return o.PartyWords(func(ctx context.Context, c *cli.Party) (ids []string) {
			r, _ := c.ListReservations(ctx, &tuplesv1.ListReservationsRequest{Limit: cli.MaxWords, States: []tuplesv1.ReservationState{
				tuplesv1.ReservationState_RESERVATION_STATE_RESERVED, tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED,
			}})
			for _, x := range r.GetReservations() {
				ids = append(ids, reservationWord(x))
			}
			return ids
		})
	}
	return o.CoordinatorWords(func(ctx context.Context, c *cli.Coordinator) (ids []string) {
		r, _ := c.Stock.ListReservations(ctx, &stockv1.ListReservationsRequest{Limit: cli.MaxWords})
		for _, x := range r.GetReservations() {
			ids = append(ids, reservationWord(x))
		}
		return ids
	})
}

// reservationWord returns the id of a reservation, described by its contents.
func reservationWord(r *tuplesv1.Reservation) string {
	return cobra.CompletionWithDesc(r.GetId(), fmt.Sprintf("%d %s", r.GetCount(), cli.ClassText(r.GetClass())))
}

// reservationsCommand returns `lodge reservations`.
func reservationsCommand() *cobra.Command {
	o := &cli.Operator{}
	cmd := cli.Command("reservations", nil)
	o.Flags(cmd)
	o.PartyFlag(cmd, "request this party, by name or index")
	cmd.AddCommand(reservationsListCommand(o), reservationsShowCommand(o))
	return cmd
}

func reservationsListCommand(o *cli.Operator) *cobra.Command {
	q := &stockv1.ListReservationsRequest{}
	var after string
	cmd := cli.Command("list", func(cmd *cobra.Command, _ []string) error {
		if o.Party != "" {
			return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
				r := &tuplesv1.ListReservationsRequest{After: after, Limit: q.GetLimit()}
				if q.GetOpen() {
					r.States = []tuplesv1.ReservationState{tuplesv1.ReservationState_RESERVATION_STATE_RESERVED}
				}
				got, err := c.ListReservations(ctx, r)
				if err != nil {
					return err
				}
				return writeReservations(o, cmd, got.GetReservations(), got.GetNext(), "--after")
			})
		}
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			got, err := c.Stock.ListReservations(ctx, q)
			if err != nil {
				return err
			}
			return writeReservations(o, cmd, got.GetReservations(), got.GetNext(), "--before")
		})
	})
	f := cmd.Flags()
	f.BoolVar(&q.Open, "open", false, "only reservations that have not ended")
	f.Uint32Var(&q.Limit, "limit", 20, "largest number of entries, up to 1000")
	f.StringVar(&q.Before, "before", "", "continue an earlier list of the coordinator's with the word at its end")
	f.StringVar(&after, "after", "", "with --party: only ids after this one")
	return cmd
}

func writeReservations(o *cli.Operator, cmd *cobra.Command, list []*tuplesv1.Reservation, next, flag string) error {
	return cli.Write(cmd, struct {
		Reservations []reservationRecord `json:"reservations"`
		Next         string              `json:"next,omitempty"`
	}{cli.Each(list, reservationJSON), next}, func(w io.Writer) error {
		if next != "" {
			defer fmt.Fprintf(cmd.ErrOrStderr(), "there are more: %s %s %s\n", cmd.CommandPath(), flag, next)
		}
		return printReservations(w, list, time.Now())
	})
}

func reservationsShowCommand(o *cli.Operator) *cobra.Command {
	return cli.Command("show", func(cmd *cobra.Command, args []string) error {
		if o.Party != "" {
			return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
				got, err := c.GetReservation(ctx, &tuplesv1.GetReservationRequest{Id: args[0]})
				if err != nil {
					return err
				}
				return writeReservation(o, cmd, got.GetReservation(), nil)
			})
		}
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			got, err := c.Stock.GetReservation(ctx, &stockv1.GetReservationRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return writeReservation(o, cmd, got.GetReservation(), got.GetParties())
		})
	}, func() []string { return completeReservations(o) })
}

func writeReservation(o *cli.Operator, cmd *cobra.Command, r *tuplesv1.Reservation, parties []*stockv1.PartyReservation) error {
	if !cli.JSON(cmd) {
		return printReservation(cmd.OutOrStdout(), r, parties, time.Now())
	}
	x := reservationJSON(r)
	for _, p := range parties {
		x.Parties = append(x.Parties, partyReservation{p.GetParty(), p.GetName(), p.GetReachable(), reservationState(p.GetState())})
	}
	return cli.WriteJSON(cmd.OutOrStdout(), x)
}

// reservationState returns the name of a state in tables and JSON; empty if it is unknown.
func reservationState(s tuplesv1.ReservationState) string {
	if s == 0 {
		return ""
	}
	return cli.Word(s)
}

// leaseText formats the remaining time of a lease.
func leaseText(r *tuplesv1.Reservation, now time.Time) string {
	left := r.GetLease().AsTime().Sub(now).Round(time.Second)
	switch {
	case r.GetState() != tuplesv1.ReservationState_RESERVATION_STATE_RESERVED && r.GetState() != tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED:
		return "-"
	case left <= 0:
		return "ended"
	}
	return left.String()
}

func printReservations(w io.Writer, list []*tuplesv1.Reservation, now time.Time) error {
	return cli.PrintTable(w, "no reservations", "ID\tSTATE\tKIND\tFIELD\tEPOCH\tCOUNT\tOWNER\tFOR\tLEASE\tFETCHED BY", list, func(r *tuplesv1.Reservation) []any {
		return []any{r.GetId(), reservationState(r.GetState()), cli.ClassText(r.GetClass()), r.GetClass().GetField(), r.GetEpoch(),
			r.GetCount(), r.GetOwner(), strings.Join(r.GetClients(), ","), leaseText(r, now), r.GetClient()}
	})
}

// maxShownRanges is the largest number of ranges that are shown as text.
const maxShownRanges = 10

func printReservation(w io.Writer, r *tuplesv1.Reservation, parties []*stockv1.PartyReservation, now time.Time) error {
	t := cli.NewTable(w)
	line := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, cli.OneLine(text))
		}
	}
	c := r.GetClass()
	line("reservation", "%s", r.GetId())
	line("state", "%s", reservationState(r.GetState()))
	line("tuples", "%d %s over %s, %s", r.GetCount(), cli.ClassText(c), c.GetField(), c.GetParams())
	line("tenant", "%s", c.GetTenant())
	line("epoch", "%d", r.GetEpoch())
	line("MAC key", "%s", r.GetMacKeyId())
	line("owner", "%s", r.GetOwner())
	line("for", "%s", strings.Join(r.GetClients(), ", "))
	line("lease", "%s", leaseText(r, now))
	line("fetched by", "%s", r.GetClient())
	line("digest", "%x", r.GetDigest())
	for i, x := range r.GetRanges() {
		if i == maxShownRanges {
			line("", "and %d more ranges; --json lists all", len(r.GetRanges())-i)
			break
		}
		line("range", "%d from %d of batch %s", x.GetCount(), x.GetFirst(), x.GetBatchId())
	}
	if len(parties) > 0 {
		fmt.Fprint(t, "\nPARTY\tNAME\tSTATE\n")
		for _, p := range parties {
			state := cli.OrDash(reservationState(p.GetState()))
			if !p.GetReachable() {
				state = "(away)"
			}
			fmt.Fprintf(t, "%d\t%s\t%s\n", p.GetParty(), p.GetName(), state)
		}
	}
	return t.Flush()
}

type reservationRecord struct {
	ID    string `json:"id"`
	State string `json:"state"`
	cli.ClassRecord
	Epoch     uint64             `json:"epoch"`
	MACKey    string             `json:"mac_key"`
	Count     uint64             `json:"count"`
	Owner     string             `json:"owner"`
	Clients   []string           `json:"clients,omitempty"`
	Lease     string             `json:"lease"`
	Digest    string             `json:"digest,omitempty"`
	Client    string             `json:"fetched_by,omitempty"`
	Delivered string             `json:"delivered,omitempty"`
	Ranges    []rangeRecord      `json:"ranges"`
	Parties   []partyReservation `json:"parties,omitempty"`
}

type rangeRecord struct {
	Batch string `json:"batch"`
	First uint64 `json:"first"`
	Count uint64 `json:"count"`
}

type partyReservation struct {
	Party     uint32 `json:"party"`
	Name      string `json:"name"`
	Reachable bool   `json:"reachable"`
	State     string `json:"state,omitempty"`
}

func reservationJSON(r *tuplesv1.Reservation) reservationRecord {
	return reservationRecord{
		ID: r.GetId(), State: reservationState(r.GetState()), ClassRecord: cli.ClassJSON(r.GetClass()), Epoch: r.GetEpoch(), MACKey: r.GetMacKeyId(),
		Count: r.GetCount(), Owner: r.GetOwner(), Clients: r.GetClients(), Lease: cli.Time(r.GetLease()), Digest: hex.EncodeToString(r.GetDigest()),
		Client: r.GetClient(), Delivered: cli.Time(r.GetDelivered()),
		Ranges: cli.Each(r.GetRanges(), func(y *tuplesv1.Range) rangeRecord { return rangeRecord{y.GetBatchId(), y.GetFirst(), y.GetCount()} }),
	}
}
