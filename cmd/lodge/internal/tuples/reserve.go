package tuples

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// completeClients returns the names of the clients in the cluster's directory. The parties decide
// which of them they accept.
func completeClients(o *cli.Operator) (names []string) {
	files, err := filepath.Glob(filepath.Join(cli.ClusterDir(o.Cluster), "clients", "*.pem"))
	if err != nil {
		return nil
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".pem"))
	}
	return names
}

const (
	reserveTime  = 25 * time.Second       // of one waiting call; servers end calls after 30 s
	reservePause = 200 * time.Millisecond // between two calls
)

// reserveCommand returns `lodge reserve`.
func reserveCommand() *cobra.Command {
	o, q, r := &cli.Operator{}, &cli.ClassFlags{}, &stockv1.ReserveRequest{}
	var lease, timeout time.Duration
	cmd := cli.Command("reserve", func(cmd *cobra.Command, _ []string) error {
		class, err := q.Class(cmd.Flags())
		switch {
		case err != nil:
			return err
		case r.GetCount() == 0:
			return rpc.Errorf(rpc.Invalid, "write the number of tuples", "--count 0")
		case lease < 0:
			return rpc.Errorf(rpc.Invalid, "write a duration such as 30m", "--lease %s", lease)
		case timeout <= 0:
			return rpc.Errorf(rpc.Invalid, "write a duration such as 10m", "--timeout %s", timeout)
		}
		r.Class = class
		if lease > 0 {
			r.Lease = durationpb.New(lease)
		}
		return reserve(o, cmd, r, timeout)
	})
	o.Flags(cmd)
	q.Flags(cmd)
	f := cmd.Flags()
	f.Uint64Var(&r.Count, "count", 0, "tuples")
	f.Uint64Var(&r.Epoch, "epoch", 0, "epoch of keys (default: the newest that has enough)")
	f.DurationVar(&lease, "lease", 0, "how long the tuples are kept for the clients (default 10m)")
	f.StringVar(&r.IdempotencyKey, "idempotency-key", "", "repeating a command with the same key returns the same reservation")
	f.StringSliceVar(&r.Clients, "clients", nil, "clients that may fetch, by their names at the parties: one for all, or one for each (default: any client of the tenant; at each party the first that fetches)")
	f.BoolVar(&r.Wait, "wait", false, "wait until there are enough tuples")
	f.DurationVar(&timeout, "timeout", 10*time.Minute, "timeout of --wait")
	_ = cmd.MarkFlagRequired("count")
	cli.Complete(cmd, "clients", func() []string { return completeClients(o) })
	return cmd
}

// reserve reserves tuples. With --wait it repeats calls of reserveTime under one idempotency key.
func reserve(o *cli.Operator, cmd *cobra.Command, q *stockv1.ReserveRequest, timeout time.Duration) error {
	c, err := o.Dial()
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	given := q.GetIdempotencyKey() != ""
	if !given {
		q.IdempotencyKey = rand.Text()
	}
	p := cli.ProgressOf(cmd)
	defer p.Done()
	until := time.Now().Add(timeout)
	for {
		limit := cli.CallTime
		if q.GetWait() {
			limit = min(reserveTime, time.Until(until))
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), limit)
		got, err := c.Stock.Reserve(ctx, q)
		cancel()
		if err == nil {
			return reserved(o, cmd, got.GetReservation())
		}
		err = c.Explain(err)
		switch code := rpc.FromError(err).Code; {
		case cmd.Context().Err() != nil:
			return cli.ErrInterrupted
		case !q.GetWait():
			return unknownOutcome(err, given)
		case !slices.Contains([]rpc.Code{rpc.OutOfStock, rpc.TimedOut, rpc.Unavailable, rpc.Busy}, code):
			return err
		case time.Now().Add(reservePause).After(until):
			q.Wait = false // the last call reserves, or reports how many tuples are missing
		default:
			p.Show("waiting for tuples", true)
			time.Sleep(reservePause)
		}
	}
}

// unknownOutcome adds the next step to an error after which it is unknown whether the tuples are
// reserved.
func unknownOutcome(err error, given bool) error {
	if e := rpc.FromError(err); errors.Is(err, &rpc.Error{Code: rpc.TimedOut}) && !given {
		e.Next = "the tuples may be reserved: see `lodge reservations list`; with --idempotency-key the command can be repeated"
		return e
	}
	return err
}

func reserved(o *cli.Operator, cmd *cobra.Command, r *tuplesv1.Reservation) error {
	return cli.Print(cmd, reservationJSON(r), "%s\n", r.GetId())
}

// releaseCommand returns `lodge release`.
func releaseCommand() *cobra.Command {
	o := &cli.Operator{}
	var dryRun bool
	cmd := cli.Command("release", func(cmd *cobra.Command, args []string) error {
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			if dryRun {
				got, err := c.Stock.GetReservation(ctx, &stockv1.GetReservationRequest{Id: args[0]})
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.ErrOrStderr(), wouldRelease(got))
				return writeReservation(o, cmd, got.GetReservation(), got.GetParties())
			}
			got, err := c.Stock.Release(ctx, &stockv1.ReleaseRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return cli.Write(cmd, struct {
				reservationRecord
				Returned bool `json:"returned"`
			}{reservationJSON(got.GetReservation()), got.GetReturned()}, func(w io.Writer) error {
				end := "is over; its shares are erased, or will be"
				if got.GetReturned() {
					end = fmt.Sprintf("is released; %d tuples are back in stock", got.GetReservation().GetCount())
				}
				_, err = fmt.Fprintf(w, "reservation %s %s\n", args[0], end)
				return err
			})
		})
	}, func() []string { return completeReservations(o) })
	o.Flags(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the reservation and what would happen to its tuples, without ending it")
	return cmd
}

// wouldRelease describes what would happen to a reservation's tuples, as far as the parties are
// available.
func wouldRelease(r *stockv1.GetReservationResponse) string {
	switch r.GetReservation().GetState() {
	case tuplesv1.ReservationState_RESERVATION_STATE_RESERVED:
	case tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED:
		return "all parties have delivered their shares, so the tuples of this reservation would be erased:"
	default:
		return "this reservation has ended; there is nothing to release:"
	}
	for _, p := range r.GetParties() {
		switch {
		case !p.GetReachable():
			return fmt.Sprintf("party %s is unavailable, so it is unknown whether the tuples would return to the stock:", p.GetName())
		case p.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED:
			return fmt.Sprintf("party %s has delivered its shares, so the tuples of this reservation would be erased:", p.GetName())
		}
	}
	return "no party has delivered this reservation; its tuples would return to the stock:"
}
