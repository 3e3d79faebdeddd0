package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/engine/params"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// completeTime bounds what a shell waits for words of a server; maxWords is how many it gets.
const (
	completeTime = time.Second
	maxWords     = 50
)

// complete offers words for a flag.
func complete(cmd *cobra.Command, flag string, words func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag is there
	}
}

// firstArgument offers words for a command's only argument.
func firstArgument(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

func words(list []string) func() []string { return func() []string { return list } }

func paramsWords() (names []string) {
	for _, s := range params.Sets() {
		names = append(names, s.Name)
	}
	return names
}

func fieldWords() []string { return config.Fields }

// completeClients offers the names of the clients of a cluster's directory: whom the parties know is theirs to say.
func (o *operator) completeClients() (names []string) {
	files, err := filepath.Glob(filepath.Join(clusterDir(o.cluster), "clients", "*.pem"))
	if err != nil {
		return nil
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".pem"))
	}
	return names
}

func (o *operator) completeParties() (names []string) {
	p, err := o.places()
	if err != nil {
		return nil
	}
	for _, m := range p.roster.Parties {
		names = append(names, m.Name)
	}
	return names
}

// asked gives the words that a server gives in time.
func (o *operator) asked(f func(context.Context, *client) []string) []string {
	c, err := o.dial()
	if err != nil {
		return nil
	}
	defer c.conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	return f(ctx, c)
}

// completeJobs offers the newest jobs.
func (o *operator) completeJobs() []string {
	return o.asked(func(ctx context.Context, c *client) (ids []string) {
		r, _ := c.ListJobs(ctx, &coordinatorv1.ListJobsRequest{Limit: maxWords})
		for _, j := range r.GetJobs() {
			ids = append(ids, cobra.CompletionWithDesc(j.GetId(), job.KindName(j.GetRequest().GetKind())+", "+stateName(j.GetState())))
		}
		return ids
	})
}

// completeReservations offers the newest reservations: of the party that was named, or of the coordinator.
func (o *operator) completeReservations() (ids []string) {
	if o.party != "" {
		return o.askedParty(func(ctx context.Context, c *partyClient) (ids []string) {
			r, _ := c.ListReservations(ctx, &tuplesv1.ListReservationsRequest{Limit: maxWords, States: []tuplesv1.ReservationState{
				tuplesv1.ReservationState_RESERVATION_STATE_RESERVED, tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED,
			}})
			for _, x := range r.GetReservations() {
				ids = append(ids, reservationWord(x))
			}
			return ids
		})
	}
	return o.asked(func(ctx context.Context, c *client) (ids []string) {
		r, _ := c.stock.ListReservations(ctx, &stockv1.ListReservationsRequest{Limit: maxWords})
		for _, x := range r.GetReservations() {
			ids = append(ids, reservationWord(x))
		}
		return ids
	})
}

// reservationWord is the id of a reservation, with what it holds.
func reservationWord(r *tuplesv1.Reservation) string {
	return cobra.CompletionWithDesc(r.GetId(), fmt.Sprintf("%d %s", r.GetCount(), kindText(r.GetClass())))
}

// askedParty gives the words that the party that was named gives in time.
func (o *operator) askedParty(f func(context.Context, *partyClient) []string) []string {
	c, err := o.dialParty()
	if err != nil {
		return nil
	}
	defer c.conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	return f(ctx, c)
}

func (o *operator) completeBatches() []string {
	return o.askedParty(func(ctx context.Context, c *partyClient) (ids []string) {
		r, _ := c.ListBatches(ctx, &tuplesv1.ListBatchesRequest{Limit: maxWords})
		for _, b := range r.GetBatches() {
			ids = append(ids, cobra.CompletionWithDesc(b.GetId(), kindText(b.GetClass())+", "+batchState(b.GetState())))
		}
		return ids
	})
}

func (o *operator) completeMACKeys() []string {
	return o.askedParty(func(ctx context.Context, c *partyClient) (ids []string) {
		r, _ := c.ListMacKeys(ctx, &tuplesv1.ListMacKeysRequest{})
		for _, k := range r.GetKeys() {
			ids = append(ids, cobra.CompletionWithDesc(k.GetId(), fmt.Sprintf("epoch %d, %s", k.GetEpoch(), k.GetField())))
		}
		return ids
	})
}
