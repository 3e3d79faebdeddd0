package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// passiveText says what threshold keys are secure against; every text about them begins with it.
const passiveText = "Threshold keys are secure against parties that follow the protocols: of the holders a majority must be honest when they\n" +
	"make the keys, and at most T of the T+1 that decrypt may collude. Parties refuse them unless their operators have set\n" +
	"allow_passive_threshold. docs/guides/threshold.md says more.\n\n"

// holders connects to all parties as the client that the flags name.
func (o *operator) holders() (*threshold.Client, error) {
	p, err := o.places()
	if err != nil {
		return nil, err
	}
	if _, err := p.credentials(); err != nil { // which names a file that is not there as the other commands do
		return nil, err
	}
	c := lodge.Config{TLS: lodge.TLS{Certificate: p.files.Certificate, Key: p.files.Key, CA: p.files.CA}}
	for _, m := range p.roster.Parties {
		c.Parties = append(c.Parties, lodge.Server{Name: m.Name, Address: m.Address, Identity: m.Identity, TokenFile: p.tokens[m.Identity]})
	}
	x, err := threshold.Dial(c)
	return x, plain(err)
}

// withHolders connects to all parties and runs f.
func (o *operator) withHolders(f func(*threshold.Client) error) error {
	c, err := o.holders()
	if err != nil {
		return err
	}
	defer c.Close()
	return plain(f(c))
}

// thresholdKey finds threshold keys that any of the holders tell of; what keeps others from it is in down.
func thresholdKey(ctx context.Context, c *threshold.Client, epoch uint64) (found *threshold.Key, down map[int]error, err error) {
	list, down, err := c.Keys(ctx)
	if err != nil {
		return nil, down, err
	}
	for _, k := range list {
		if k.Epoch == epoch {
			return k, down, nil
		}
	}
	names := c.Parties()
	var away []string
	for i := range down {
		away = append(away, names[i])
	}
	if len(away) > 0 {
		slices.Sort(away)
		return nil, down, rpc.Errorf(rpc.Unavailable, "try again when all parties can be reached",
			"no threshold keys of epoch %d at those that answer; %s could not be asked", epoch, strings.Join(away, ", "))
	}
	return nil, down, rpc.Errorf(rpc.NotFound, "`lodge keys list` names the epochs, `lodge keys generate` makes threshold keys",
		"no threshold keys of epoch %d at any party", epoch)
}

// partyList reads names or indexes of parties, and gives the indexes in ascending order.
func partyList(flag string, words, names []string) ([]uint32, error) {
	var list []uint32
	for _, w := range words {
		i := slices.Index(names, w)
		if n, err := strconv.Atoi(w); i < 0 && err == nil && n >= 0 && n < len(names) {
			i = n
		}
		if i < 0 {
			return nil, invalid("write names or indexes of "+strings.Join(names, ", "), "--%s: there is no party %q", flag, w)
		}
		if slices.Contains(list, uint32(i)) {
			return nil, invalid("name each once", "--%s names %s twice", flag, names[i])
		}
		list = append(list, uint32(i))
	}
	slices.Sort(list)
	return list, nil
}

// quorums are choices of k of a list, in order: all, or the first ones, if there are more than a command submits jobs.
func quorums(of []uint32, k int) (all [][]uint32) {
	var next func(from int, have []uint32)
	next = func(from int, have []uint32) {
		if len(have) == k {
			all = append(all, slices.Clone(have))
			return
		}
		for i := from; i <= len(of)-k+len(have) && len(all) <= maxSubmitted; i++ {
			next(i+1, append(have, of[i]))
		}
	}
	next(0, nil)
	return all
}

// presentHolders are the holders of keys that are still in the roster, ascending.
func presentHolders(k *threshold.Key) (list []uint32) {
	for _, p := range k.Holders {
		if p >= 0 {
			list = append(list, uint32(p))
		}
	}
	slices.Sort(list)
	return list
}

// nameList are the names of parties.
func nameList[T int | uint32](list []T, names []string) string {
	out := make([]string, len(list))
	for i, p := range list {
		if out[i] = "-"; int(p) >= 0 && int(p) < len(names) {
			out[i] = names[p]
		}
	}
	return strings.Join(out, " ")
}

// thresholdWords are the parameter sets for threshold keys.
func thresholdWords() (names []string) {
	for _, s := range lwe.Sets() {
		names = append(names, s.Name)
	}
	for _, s := range bgv.Sets() {
		names = append(names, s.Name)
	}
	for _, s := range multikey.Sets() {
		names = append(names, s.Name)
	}
	return names
}

// setForThreshold finds a set for threshold keys by its name.
func setForThreshold(name string) (plan.Set, error) {
	const next = "`lodge params list` shows the sets for threshold keys"
	set, err := plan.Lookup(name)
	switch {
	case err != nil:
		return set, rpc.Errorf(rpc.Invalid, next, "there is no parameter set %q", name)
	case !set.Threshold:
		return set, rpc.Errorf(rpc.Invalid, next, "%s is a set for keys that all parties decrypt with", name)
	}
	return set, nil
}

// allSetWords are the names of all parameter sets.
func allSetWords() []string { return append(paramsWords(), thresholdWords()...) }

func (o *operator) completeThreshold() []string {
	c, err := o.holders()
	if err != nil {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	keys, _, _ := c.Keys(ctx)
	var list []string
	for _, k := range keys {
		list = append(list, cobra.CompletionWithDesc(fmt.Sprint(k.Epoch), fmt.Sprintf("%s, %d of %d", k.State, k.Threshold+1, len(k.Holders))))
	}
	return list
}

// completeNames offers what ends a list of parties that is separated by commas.
func completeNames(cmd *cobra.Command, flag string, parties func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var list []string
		for _, name := range parties() {
			if !slices.Contains(strings.Split(before, ","), name) {
				list = append(list, before+name)
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	if err != nil {
		panic(err) // the flag is there
	}
}

// runFlags are those of commands that submit jobs for threshold keys.
func (q *jobOptions) runFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&q.timeout, "timeout", 0, "end the job this long after its submission, also while it waits (default: the coordinator's limit for an attempt)")
	f.StringVar(&q.key, "idempotency-key", "", "the same key gives the same jobs, so that a submission can be repeated")
	f.BoolVar(&q.wait, "wait", false, "watch until it ends; fail unless it completes")
}

func checkTimeout(timeout time.Duration) error {
	if timeout < 0 {
		return invalid("write for example 10m", "--timeout %s", timeout)
	}
	return nil
}

// ofThreshold says of a kind of job that it is for threshold keys, and which command makes it.
func ofThreshold(kind jobv1.Kind, purpose jobv1.Purpose) error {
	switch {
	case kind == jobv1.Kind_KIND_MASKS:
		return invalid("`lodge keys masks` makes them", "--kind masks: masks belong to threshold keys")
	case kind == jobv1.Kind_KIND_RESHARE:
		return invalid("`lodge keys reshare` makes them", "--kind reshare: new shares are of threshold keys")
	case purpose == jobv1.Purpose_PURPOSE_THRESHOLD && kind == jobv1.Kind_KIND_KEYS:
		return invalid("`lodge keys generate` makes them", "--purpose threshold: threshold keys have holders and a threshold")
	case purpose == jobv1.Purpose_PURPOSE_THRESHOLD:
		return invalid("leave it out", "--purpose threshold with --kind %s", job.KindName(kind))
	}
	return nil
}
