package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// MaskForms lists the forms of masks. The first is the default.
var MaskForms = []string{"exact", "paper"}

// CheckQuorum returns an error unless the parties are a quorum of the key's holders.
func CheckQuorum(k *threshold.Key, quorum, holders []uint32, names []string) error {
	next := fmt.Sprintf("name %d of %s", k.Threshold+1, NameList(holders, names))
	if set := k.Multikey(); set != nil {
		next = fmt.Sprintf("name at least two of %s, up to %d", NameList(holders, names), set.Parties)
		if len(quorum) < 2 || len(quorum) > max(2, set.Parties) {
			return rpc.Errorf(rpc.WrongQuorum, next, "--quorum names %d parties", len(quorum))
		}
	} else if len(quorum) != k.Threshold+1 {
		return rpc.Errorf(rpc.WrongQuorum, next, "--quorum names %d parties, but %d holders of epoch %d decrypt", len(quorum), k.Threshold+1, k.Epoch)
	}
	for _, p := range quorum {
		if !slices.Contains(holders, p) {
			return rpc.Errorf(rpc.WrongQuorum, next, "party %s holds no share of the keys of epoch %d", names[p], k.Epoch)
		}
	}
	return nil
}

// holders connects to all parties as the client that the flags select.
func (o *Operator) holders() (*threshold.Client, error) {
	c, _, err := o.Configuration()
	if err != nil {
		return nil, err
	}
	x, err := threshold.Dial(c)
	return x, FromClient(err)
}

// Configuration returns the configuration of a client library that the flags select, and the
// roster.
func (o *Operator) Configuration() (c lodge.Config, r *config.Roster, err error) {
	p, err := o.Places()
	if err != nil {
		return c, nil, err
	}
	if _, err := p.Credentials(); err != nil { // reports a missing file like the other commands
		return c, nil, err
	}
	c.TLS = lodge.TLS{Certificate: p.Files.Certificate, Key: p.Files.Key, CA: p.Files.CA}
	for _, m := range p.Roster.Parties {
		c.Parties = append(c.Parties, lodge.Server{Name: m.Name, Address: m.Address, Identity: m.Identity, TokenFile: p.Tokens[m.Identity]})
	}
	return c, p.Roster, nil
}

// WithHolders connects to all parties and calls f.
func (o *Operator) WithHolders(f func(*threshold.Client) error) error {
	c, err := o.holders()
	if err != nil {
		return err
	}
	defer c.Close()
	return FromClient(f(c))
}

// ThresholdKey finds threshold keys of an epoch at any of the holders. down holds the errors of the
// holders that could not be reached.
func ThresholdKey(ctx context.Context, c *threshold.Client, epoch uint64) (found *threshold.Key, down map[int]error, err error) {
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
			"the parties that respond have no threshold keys of epoch %d; %s could not be reached", epoch, strings.Join(away, ", "))
	}
	return nil, down, rpc.Errorf(rpc.NotFound, "`lodge keys list` lists the epochs, `lodge keys generate` makes threshold keys",
		"no party has threshold keys of epoch %d", epoch)
}

// PartyList parses names or indexes of parties and returns the indexes in ascending order.
func PartyList(flag string, words, names []string) ([]uint32, error) {
	var list []uint32
	for _, w := range words {
		i := slices.Index(names, w)
		if n, err := strconv.Atoi(w); i < 0 && err == nil && n >= 0 && n < len(names) {
			i = n
		}
		if i < 0 {
			return nil, Invalid("use names or indexes of "+strings.Join(names, ", "), "--%s: there is no party %q", flag, w)
		}
		if slices.Contains(list, uint32(i)) {
			return nil, Invalid("name each party once", "--%s names %s twice", flag, names[i])
		}
		list = append(list, uint32(i))
	}
	slices.Sort(list)
	return list, nil
}

// Quorums returns the subsets of k elements of a list, in order. It stops after one more than the
// number of jobs that a command submits.
func Quorums(of []uint32, k int) (all [][]uint32) {
	var next func(from int, have []uint32)
	next = func(from int, have []uint32) {
		if len(have) == k {
			all = append(all, slices.Clone(have))
			return
		}
		for i := from; i <= len(of)-k+len(have) && len(all) <= MaxSubmitted; i++ {
			next(i+1, append(have, of[i]))
		}
	}
	next(0, nil)
	return all
}

// PresentHolders returns the roster indexes of the key's holders that are still in the roster, in
// ascending order.
func PresentHolders(k *threshold.Key) (list []uint32) {
	for _, p := range k.Holders {
		if p >= 0 {
			list = append(list, uint32(p))
		}
	}
	slices.Sort(list)
	return list
}

// NameList returns the names of parties, separated by spaces.
func NameList[T int | uint32](list []T, names []string) string {
	out := make([]string, len(list))
	for i, p := range list {
		if out[i] = "-"; int(p) >= 0 && int(p) < len(names) {
			out[i] = names[p]
		}
	}
	return strings.Join(out, " ")
}

// ThresholdWords returns the names of the parameter sets for threshold keys.
func ThresholdWords() (names []string) {
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

// SetForThreshold returns the parameter set for threshold keys with this name.
func SetForThreshold(name string) (plan.Set, error) {
	const next = "`lodge params list` lists the sets for threshold keys"
	set, err := plan.Lookup(name)
	switch {
	case err != nil:
		return set, rpc.Errorf(rpc.Invalid, next, "there is no parameter set %q", name)
	case !set.Threshold:
		return set, rpc.Errorf(rpc.Invalid, next, "%s is a set for keys that only all parties together decrypt with", name)
	}
	return set, nil
}

// AllSetWords returns the names of all parameter sets.
func AllSetWords() []string { return append(ParamsWords(), ThresholdWords()...) }

func (o *Operator) CompleteThreshold() []string {
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

// CompleteList registers completions for the last element of a flag that is a comma-separated list.
func CompleteList(cmd *cobra.Command, flag string, parties func() []string) {
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
		panic(err) // the flag exists
	}
}
