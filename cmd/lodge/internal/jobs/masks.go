package jobs

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/lwe"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

var (
	masksKind  = job.KindName(jobv1.Kind_KIND_MASKS)
	stockKinds = append(slices.Clone(config.TupleKinds), masksKind)
)

// policyFlags select the tuples, or the masks of a quorum, that a policy applies to.
type policyFlags struct {
	cli.ClassFlags
	quorum []string
	form   string
}

func (q *policyFlags) flags(o *cli.Operator, cmd *cobra.Command) {
	q.ClassFlags.Flags(cmd)
	f := cmd.Flags()
	f.Lookup("kind").Usage = "one of " + strings.Join(stockKinds, ", ")
	f.StringSliceVar(&q.quorum, "quorum", nil, "for masks: T+1 holders of the keys, by name or index")
	f.StringVar(&q.form, "form", cli.MaskForms[0], "of masks: "+strings.Join(cli.MaskForms, " or "))
	cli.CompleteList(cmd, "quorum", o.CompleteParties)
	cli.Complete(cmd, "form", cli.Words(cli.MaskForms))
}

// of returns the class that the flags select.
func (q *policyFlags) of(o *cli.Operator, cmd *cobra.Command) (*tuplesv1.Class, error) {
	f := cmd.Flags()
	if q.Kind != masksKind {
		for _, name := range []string{"quorum", "form"} {
			if f.Changed(name) {
				return nil, rpc.Errorf(rpc.Invalid, "remove it: it applies to masks only", "--%s with --kind %s", name, q.Kind)
			}
		}
		return q.Class(f)
	}
	for _, name := range []string{"field", "shape", "input-party", "no-sacrifice", "tenant", "block"} {
		if f.Changed(name) {
			return nil, rpc.Errorf(rpc.Invalid, "remove it: it does not apply to masks", "--%s with --kind %s", name, q.Kind)
		}
	}
	switch {
	case job.MaskForms[q.form] == 0:
		return nil, rpc.Errorf(rpc.Invalid, "write "+strings.Join(cli.MaskForms, " or "), "--form %q", q.form)
	case len(q.quorum) == 0:
		return nil, rpc.Errorf(rpc.Invalid, "name the parties that use the masks", "no --quorum")
	case !f.Changed("params"):
		q.Params = lwe.Default
	}
	if _, err := cli.SetForThreshold(q.Params); err != nil {
		return nil, err
	}
	p, err := o.Places()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range p.Roster.Parties {
		names = append(names, m.Name)
	}
	quorum, err := cli.PartyList("quorum", q.quorum, names)
	if err != nil {
		return nil, err
	}
	return &tuplesv1.Class{Kind: jobv1.Kind_KIND_MASKS, Params: q.Params, Quorum: quorum, Form: job.MaskForms[q.form]}, nil
}
