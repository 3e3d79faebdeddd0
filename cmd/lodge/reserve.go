package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

const (
	reserveTime  = 25 * time.Second       // one call that waits; servers end calls after 30 s
	reservePause = 200 * time.Millisecond // between two of them
)

// reserveCommand is `lodge reserve`.
func reserveCommand() *cobra.Command {
	o, q, r := &operator{}, &classFlags{}, &stockv1.ReserveRequest{}
	var lease, timeout time.Duration
	cmd := &cobra.Command{
		Use:   "reserve",
		Short: "Reserve tuples at all parties and print the id of the reservation",
		Long: "Reserve tuples at all parties at once. Each party's client then draws its shares with `lodge fetch` or\n" +
			"`lodge export mp-spdz`, while the lease lasts.\n\n" + connecting,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			class, err := q.class(cmd.Flags())
			switch {
			case err != nil:
				return err
			case r.GetCount() == 0:
				return rpc.Errorf(rpc.Invalid, "say how many tuples", "--count 0")
			case lease < 0:
				return rpc.Errorf(rpc.Invalid, "write for example 30m", "--lease %s", lease)
			case timeout <= 0:
				return rpc.Errorf(rpc.Invalid, "write for example 10m", "--timeout %s", timeout)
			}
			r.Class = class
			if lease > 0 {
				r.Lease = durationpb.New(lease)
			}
			return o.reserve(cmd, r, timeout)
		},
	}
	o.flags(cmd)
	q.flags(cmd)
	f := cmd.Flags()
	f.Uint64Var(&r.Count, "count", 0, "tuples")
	f.Uint64Var(&r.Epoch, "epoch", 0, "epoch of keys (default: the newest that has enough)")
	f.DurationVar(&lease, "lease", 0, "how long the tuples are kept for the clients (default 10m)")
	f.StringVar(&r.IdempotencyKey, "idempotency-key", "", "the same key gives the same reservation, so that this can be repeated")
	f.StringSliceVar(&r.Clients, "clients", nil, "who may fetch, by the names of clients at the parties: one for all, or one for each\n"+
		"(default: any client of the tenant; at each party the first that comes)")
	f.BoolVar(&r.Wait, "wait", false, "wait until there is enough")
	f.DurationVar(&timeout, "timeout", 10*time.Minute, "with --wait: at most this long")
	_ = cmd.MarkFlagRequired("count")
	complete(cmd, "clients", o.completeClients)
	return cmd
}

// reserve reserves, with --wait in calls of reserveTime under one idempotency key.
func (o *operator) reserve(cmd *cobra.Command, q *stockv1.ReserveRequest, timeout time.Duration) error {
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	given := q.GetIdempotencyKey() != ""
	if !given {
		q.IdempotencyKey = rand.Text()
	}
	p := progressOf(cmd, o.json)
	defer p.Done()
	until := time.Now().Add(timeout)
	for {
		limit := callTime
		if q.GetWait() {
			limit = min(reserveTime, time.Until(until))
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), limit)
		got, err := c.stock.Reserve(ctx, q)
		cancel()
		if err == nil {
			return o.reserved(cmd, got.GetReservation())
		}
		err = c.explain(err)
		switch code := rpc.FromError(err).Code; {
		case cmd.Context().Err() != nil:
			return errInterrupted
		case !q.GetWait():
			return unknownOutcome(err, given)
		case !slices.Contains([]rpc.Code{rpc.OutOfStock, rpc.TimedOut, rpc.Unavailable, rpc.Busy}, code):
			return err
		case time.Now().Add(reservePause).After(until):
			q.Wait = false // the last call says what is missing, or reserves
		default:
			p.Show("waiting for tuples", true)
			time.Sleep(reservePause)
		}
	}
}

// unknownOutcome says what to do when nobody knows whether the tuples are reserved.
func unknownOutcome(err error, given bool) error {
	if e := rpc.FromError(err); errors.Is(err, &rpc.Error{Code: rpc.TimedOut}) && !given {
		e.Next = "the tuples may be reserved: see `lodge reservations list`; with --idempotency-key it can be repeated"
		return e
	}
	return err
}

func (o *operator) reserved(cmd *cobra.Command, r *tuplesv1.Reservation) error {
	if o.json {
		return writeIndented(cmd.OutOrStdout(), reservationJSON(r))
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), r.GetId())
	return err
}

// releaseCommand is `lodge release`.
func releaseCommand() *cobra.Command {
	o := &operator{}
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "release RESERVATION",
		Short: "End a reservation: what no party delivered goes back into stock, the rest is erased",
		Long: "End a reservation of this client. When no party has delivered it, its tuples go back into stock; otherwise every\n" +
			"party erases its shares of them.\n\n" + connecting,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(o.completeReservations),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.call(cmd, func(ctx context.Context, c *client) error {
				if dryRun {
					got, err := c.stock.GetReservation(ctx, &stockv1.GetReservationRequest{Id: args[0]})
					if err != nil {
						return err
					}
					fmt.Fprintln(cmd.ErrOrStderr(), wouldRelease(got))
					return o.writeReservation(cmd, got.GetReservation(), got.GetParties())
				}
				got, err := c.stock.Release(ctx, &stockv1.ReleaseRequest{Id: args[0]})
				if err != nil {
					return err
				}
				if o.json {
					return writeIndented(cmd.OutOrStdout(), struct {
						reservationRecord
						Returned bool `json:"returned"`
					}{reservationJSON(got.GetReservation()), got.GetReturned()})
				}
				end := "is over; its shares are erased, or will be"
				if got.GetReturned() {
					end = fmt.Sprintf("is released; %d tuples are back in stock", got.GetReservation().GetCount())
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "reservation %s %s\n", args[0], end)
				return err
			})
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the reservation and what would become of its tuples, and end nothing")
	return cmd
}

// wouldRelease says what would become of a reservation's tuples, as far as the parties can be reached.
func wouldRelease(r *stockv1.GetReservationResponse) string {
	switch r.GetReservation().GetState() {
	case tuplesv1.ReservationState_RESERVATION_STATE_RESERVED:
	case tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED:
		return "all parties have delivered their shares, so the tuples of this reservation would be erased:"
	default:
		return "this reservation is over; there is nothing to release:"
	}
	for _, p := range r.GetParties() {
		switch {
		case !p.GetReachable():
			return fmt.Sprintf("party %s cannot be reached, so it is not known whether the tuples would go back into stock:", p.GetName())
		case p.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED:
			return fmt.Sprintf("party %s has delivered its shares, so the tuples of this reservation would be erased:", p.GetName())
		}
	}
	return "no party has delivered this reservation; its tuples would go back into stock:"
}
