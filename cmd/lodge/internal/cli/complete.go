package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/engine/params"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
)

// completeTime is the longest time that a shell waits for completions from a server; maxWords is
// the largest number of them.
const (
	completeTime = time.Second
	MaxWords     = 50
)

// Complete registers completions for the values of a flag.
func Complete(cmd *cobra.Command, flag string, words func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag exists
	}
}

// FirstArgument returns completions for the only argument of a command.
func FirstArgument(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

func Words(list []string) func() []string { return func() []string { return list } }

func ParamsWords() (names []string) {
	for _, s := range params.Sets() {
		names = append(names, s.Name)
	}
	return names
}

func FieldWords() []string { return config.Fields }

func (o *Operator) CompleteParties() (names []string) {
	p, err := o.Places()
	if err != nil {
		return nil
	}
	for _, m := range p.Roster.Parties {
		names = append(names, m.Name)
	}
	return names
}

// CoordinatorWords returns the completions that the coordinator sends within completeTime.
func (o *Operator) CoordinatorWords(f func(context.Context, *Coordinator) []string) []string {
	return words(o.Dial, f)
}

// PartyWords returns the completions that the selected party sends within completeTime.
func (o *Operator) PartyWords(f func(context.Context, *Party) []string) []string {
	return words(o.DialParty, f)
}

// words returns no completions if the call fails: a shell cannot show an error.
func words[C connection](dial func() (C, error), f func(context.Context, C) []string) (list []string) {
	_ = call(context.Background(), completeTime, dial, func(ctx context.Context, c C) error {
		list = f(ctx, c)
		return nil
	})
	return list
}

func (o *Operator) CompleteMACKeys() []string {
	return o.PartyWords(func(ctx context.Context, c *Party) (ids []string) {
		r, _ := c.ListMacKeys(ctx, &tuplesv1.ListMacKeysRequest{})
		for _, k := range r.GetKeys() {
			ids = append(ids, cobra.CompletionWithDesc(k.GetId(), fmt.Sprintf("epoch %d, %s", k.GetEpoch(), k.GetField())))
		}
		return ids
	})
}
