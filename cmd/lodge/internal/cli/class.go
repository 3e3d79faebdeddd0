package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lodge-mpc/lodge/engine/params"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

var tupleKindsText = strings.Join(config.TupleKinds, ", ")

// ClassFlags are the flags that select a class of tuples and their owner.
type ClassFlags struct {
	Kind, Params, field, tenant string
	ShapeFlags
	inputParty  uint32
	noSacrifice bool
}

func (q *ClassFlags) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.Kind, "kind", "", "one of "+tupleKindsText)
	f.StringVar(&q.Params, "params", params.Default, "parameter set")
	f.StringVar(&q.field, "field", "p128", "field: p64 to p4096")
	q.ShapeFlags.Flags(f, "shape", "")
	f.Uint32Var(&q.inputParty, "input-party", 0, "for input masks: the party that knows the values")
	f.BoolVar(&q.noSacrifice, "no-sacrifice", false, "for products: only tuples that were made without a sacrifice")
	f.StringVar(&q.tenant, "tenant", devnet.Tenant, "tenant that owns the tuples")
	_ = cmd.MarkFlagRequired("kind")
	Complete(cmd, "kind", Words(config.TupleKinds))
	Complete(cmd, "params", ParamsWords)
	Complete(cmd, "field", FieldWords)
}

// Class returns the class that the flags select.
func (q *ClassFlags) Class(f *pflag.FlagSet) (*tuplesv1.Class, error) {
	c := &tuplesv1.Class{Tenant: q.tenant, Kind: job.KindOf(q.Kind), Params: q.Params, Field: q.field, InputParty: q.inputParty, NoSacrifice: q.noSacrifice}
	switch {
	case !job.MakesTuples(c.Kind):
		return nil, rpc.Errorf(rpc.Invalid, "write "+tupleKindsText, "--kind %q", q.Kind)
	case f.Changed("input-party") && !job.Owned(c.Kind):
		return nil, rpc.Errorf(rpc.Invalid, "remove it: only input masks belong to one party", "--input-party with --kind %s", q.Kind)
	case q.noSacrifice && !job.Multiplies(c.Kind):
		return nil, rpc.Errorf(rpc.Invalid, "remove it: these tuples contain no products", "--no-sacrifice with --kind %s", q.Kind)
	case !f.Changed("input-party") && job.Owned(c.Kind):
		return nil, rpc.Errorf(rpc.Invalid, "name the party that knows the values with --input-party", "no --input-party")
	}
	var err error
	if c.Shape, err = q.ShapeFlags.Of(c.Kind, f.Changed); err != nil {
		return nil, err
	}
	if err := CheckNames(q.Params, q.field); err != nil {
		return nil, err
	}
	return c, nil
}

// CheckNames returns an error if the parameter set or its field does not exist: no party could make
// or store such tuples.
func CheckNames(set, field string) error {
	s, err := params.Lookup(set)
	if err != nil {
		return err
	}
	_, err = s.Field(field)
	return err
}

// ClassText describes a class without its parameters, field and tenant: "scalar", "matrix 2x3x4",
// "input of 1", "masks exact of 0,1".
func ClassText(c *tuplesv1.Class) string {
	text := job.KindName(c.GetKind())
	if c.GetKind() == jobv1.Kind_KIND_MASKS {
		return text + " " + job.FormName(c.GetForm()) + " of " + quorumText(c.GetQuorum())
	}
	if s := c.GetShape(); s != nil {
		text += " " + ShapeText(s)
	}
	if job.Owned(c.GetKind()) {
		text += fmt.Sprintf(" of %d", c.GetInputParty())
	}
	if c.GetNoSacrifice() {
		text += " (no sacrifice)"
	}
	return text
}

// quorumText lists a quorum by the roster indexes of its parties.
func quorumText(quorum []uint32) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(quorum), "[]"), " ", ",")
}

type ClassRecord struct {
	Kind        string             `json:"kind"`
	Params      string             `json:"params"`
	Field       string             `json:"field"`
	Shape       []uint32           `json:"shape,omitempty"` // rows, inner, columns
	Convolution *convolutionRecord `json:"convolution,omitempty"`
	InputParty  *uint32            `json:"input_party,omitempty"`
	NoSacrifice bool               `json:"no_sacrifice,omitempty"`
	Quorum      []uint32           `json:"quorum,omitempty"` // for masks: roster indexes
	Form        string             `json:"form,omitempty"`   // for masks
	Tenant      string             `json:"tenant"`
}

func ClassJSON(c *tuplesv1.Class) ClassRecord {
	r := ClassRecord{Kind: job.KindName(c.GetKind()), Params: c.GetParams(), Field: c.GetField(), NoSacrifice: c.GetNoSacrifice(), Tenant: c.GetTenant()}
	r.Shape, r.Convolution = shapeJSON(c.GetShape())
	if c.GetKind() == jobv1.Kind_KIND_MASKS {
		r.Quorum, r.Form = c.GetQuorum(), job.FormName(c.GetForm())
	}
	if owner := c.GetInputParty(); job.Owned(c.GetKind()) {
		r.InputParty = &owner
	}
	return r
}
