package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/engine/params"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

var tupleKindsText = strings.Join(config.TupleKinds, ", ")

// classFlags say what tuples are and whose.
type classFlags struct {
	kind, params, field, tenant string
	shapeFlags
	inputParty  uint32
	noSacrifice bool
}

func (q *classFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.kind, "kind", "", "one of "+tupleKindsText)
	f.StringVar(&q.params, "params", params.Default, "parameter set")
	f.StringVar(&q.field, "field", "p128", "field: p64 to p4096")
	q.shapeFlags.flags(f, "shape", "")
	f.Uint32Var(&q.inputParty, "input-party", 0, "of input masks: the party that knows the values")
	f.BoolVar(&q.noSacrifice, "no-sacrifice", false, "of products: those that were made without a sacrifice, and only those")
	f.StringVar(&q.tenant, "tenant", devnet.Tenant, "whose tuples these are")
	_ = cmd.MarkFlagRequired("kind")
	complete(cmd, "kind", words(config.TupleKinds))
	complete(cmd, "params", paramsWords)
	complete(cmd, "field", fieldWords)
}

// class is what the flags say.
func (q *classFlags) class(f *pflag.FlagSet) (*tuplesv1.Class, error) {
	c := &tuplesv1.Class{Tenant: q.tenant, Kind: job.KindOf(q.kind), Params: q.params, Field: q.field, InputParty: q.inputParty, NoSacrifice: q.noSacrifice}
	switch {
	case !job.MakesTuples(c.Kind):
		return nil, rpc.Errorf(rpc.Invalid, "write "+tupleKindsText, "--kind %q", q.kind)
	case f.Changed("input-party") && !job.Owned(c.Kind):
		return nil, rpc.Errorf(rpc.Invalid, "only input masks are of one party", "--input-party with --kind %s", q.kind)
	case q.noSacrifice && !job.Multiplies(c.Kind):
		return nil, rpc.Errorf(rpc.Invalid, "leave it out: these tuples have no products", "--no-sacrifice with --kind %s", q.kind)
	case !f.Changed("input-party") && job.Owned(c.Kind):
		return nil, rpc.Errorf(rpc.Invalid, "name the party that knows the values", "no --input-party")
	}
	var err error
	if c.Shape, err = q.shapeFlags.of(c.Kind, f.Changed); err != nil {
		return nil, err
	}
	if err := checkNames(q.params, q.field); err != nil {
		return nil, err
	}
	return c, nil
}

// checkNames refuses a parameter set or a field that there is not: no party would make or have tuples of it.
func checkNames(set, field string) error {
	s, err := params.Lookup(set)
	if err != nil {
		return err
	}
	_, err = s.Field(field)
	return err
}

// epochText is what a policy of an epoch is for.
func epochText(epoch uint64) string {
	if epoch == 0 {
		return "the newest epoch"
	}
	return fmt.Sprintf("epoch %d", epoch)
}

// kindText is a class without its parameters, field and tenant: "scalar", "matrix 2x3x4", "input of 1", "masks exact of 0,1".
func kindText(c *tuplesv1.Class) string {
	text := job.KindName(c.GetKind())
	if c.GetKind() == jobv1.Kind_KIND_MASKS {
		return text + " " + job.FormName(c.GetForm()) + " of " + quorumText(c.GetQuorum())
	}
	if s := c.GetShape(); s != nil {
		text += " " + shapeText(s)
	}
	if job.Owned(c.GetKind()) {
		text += fmt.Sprintf(" of %d", c.GetInputParty())
	}
	if c.GetNoSacrifice() {
		text += " (no sacrifice)"
	}
	return text
}

// quorumText is a quorum by the places of its parties in the roster.
func quorumText(quorum []uint32) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(quorum), "[]"), " ", ",")
}

// stockCommand is `lodge stock`.
func stockCommand() *cobra.Command {
	o := &operator{}
	q := &stockv1.GetStockRequest{}
	var watch bool
	cmd := &cobra.Command{
		Use:   "stock",
		Short: "Show what tuples there are, and the policies that keep the stock",
		Long: "Show what can be reserved at all parties, by class and epoch of keys, and what jobs are making. While a party is\n" +
			"away nothing can be reserved, and the numbers are the last known ones. Masks are shown for each quorum that can spend\n" +
			"them, by the places of its parties in the roster.\n" +
			"RATE is what is made and what is reserved in a second, as of the last minutes.\n\n" + connecting,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return o.watchStock(cmd, q.GetEpoch())
			}
			return o.call(cmd, func(ctx context.Context, c *client) error {
				r, err := c.stock.GetStock(ctx, q)
				if err != nil {
					return err
				}
				if o.json {
					return writeIndented(cmd.OutOrStdout(), stockJSON(r))
				}
				return printStock(cmd.OutOrStdout(), r, time.Now())
			})
		},
	}
	o.flags(cmd)
	cmd.Flags().Uint64Var(&q.Epoch, "epoch", 0, "only this epoch of keys")
	cmd.Flags().BoolVar(&watch, "watch", false, "go on: write the stock at every change")
	cmd.AddCommand(o.policiesCommand())
	return cmd
}

// watchStock writes the stock at every change. It outlives a restart of the coordinator.
func (o *operator) watchStock(cmd *cobra.Command, epoch uint64) error {
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	w, p := cmd.OutOrStdout(), terminal.NewProgress(cmd.ErrOrStderr())
	defer p.Done()
	screen := terminal.Is(w)
	var heard time.Time
	for {
		stream, err := c.stock.WatchStock(cmd.Context(), &stockv1.WatchStockRequest{Epoch: epoch})
		for err == nil {
			var r *stockv1.WatchStockResponse
			if r, err = stream.Recv(); err != nil {
				break
			}
			switch {
			case o.json:
				err = writeLine(w, stockJSON(r))
			case screen:
				fmt.Fprint(w, "\x1b[H\x1b[2J") // the cursor to the corner, and all of it cleared
				err = printStock(w, r, time.Now())
			default:
				if !heard.IsZero() {
					fmt.Fprintln(w)
				}
				err = printStock(w, r, time.Now())
			}
			heard = time.Now()
		}
		err = c.explain(err)
		switch {
		case cmd.Context().Err() != nil:
			return nil // whoever watches has seen enough
		case !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) && !errors.Is(err, io.EOF) || time.Since(heard) > lostTime:
			return err
		}
		p.Say("the coordinator cannot be reached; trying again")
		time.Sleep(200 * time.Millisecond)
	}
}

// printStock writes a table, and before it of what time the numbers are if that is not now.
func printStock(w io.Writer, r stockAnswer, now time.Time) error {
	if who := awayText(r.GetAway()); who != "" {
		what := "what there is is not known, as the coordinator has not heard all parties since it started"
		if r.GetAsOf() != nil {
			what = fmt.Sprintf("the numbers are of %s ago", now.Sub(r.GetAsOf().AsTime()).Round(time.Second))
		}
		fmt.Fprintf(w, "nothing can be reserved while these are away: %s; %s\n", who, what)
		if len(r.GetStock()) == 0 {
			return nil
		}
		fmt.Fprintln(w)
	}
	if len(r.GetStock()) == 0 {
		_, err := fmt.Fprintln(w, "no tuples; `lodge jobs submit` makes some, `lodge stock policies set` keeps some")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tFIELD\tPARAMS\tTENANT\tEPOCH\tAVAILABLE\tRESERVED\tCONSUMED\tLOST\tMAKING\tRATE\tEMPTY IN\tPOLICY\tHELD BACK")
	for _, s := range r.GetStock() {
		c, epoch, known := s.GetClass(), "newest", "?\t?\t?\t?"
		if s.GetEpoch() != 0 {
			epoch = strconv.FormatUint(s.GetEpoch(), 10)
		}
		if !unknown(r) {
			known = fmt.Sprintf("%d\t%d\t%d\t%d", s.GetAvailable(), s.GetReserved(), s.GetConsumed(), s.GetLost())
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", kindText(c), orDash(c.GetField()), c.GetParams(), orDash(c.GetTenant()), epoch,
			known, s.GetInProduction(), rates(s), span(s.GetTimeToEmpty()), policyText(s.GetPolicy()), orDash(oneLine(s.GetHeldBack())))
	}
	return t.Flush()
}

// unknown reports whether an answer says nothing of what there is.
func unknown(r stockAnswer) bool { return len(r.GetAway()) > 0 && r.GetAsOf() == nil }

// awayText names parties that are away.
func awayText(away []*stockv1.AwayParty) string {
	var names []string
	for _, p := range away {
		names = append(names, fmt.Sprintf("party %d (%s)", p.GetParty(), p.GetName()))
	}
	return strings.Join(names, ", ")
}

// rates are what is made and reserved in a second.
func rates(s *stockv1.Stock) string {
	if s.GetMadePerSecond() == 0 && s.GetReservedPerSecond() == 0 {
		return "-"
	}
	return fmt.Sprintf("+%.3g -%.3g", s.GetMadePerSecond(), s.GetReservedPerSecond())
}

// span is a time to come, rounded for people.
func span(d *durationpb.Duration) string {
	if d == nil {
		return "-"
	}
	v := d.AsDuration()
	switch {
	case v >= 48*time.Hour:
		return strconv.Itoa(int(v/(24*time.Hour))) + "d"
	case v >= time.Hour:
		return v.Round(time.Minute).String()
	}
	return v.Round(time.Second).String()
}

func policyText(p *stockv1.Policy) string {
	if p == nil {
		return "-"
	}
	text := fmt.Sprintf("%d to %d", p.GetLow(), p.GetHigh())
	if p.GetPaused() {
		text += " (paused)"
	}
	return text
}

// The JSON of stock: names as flags have them, times in RFC 3339, spans in seconds.

type classRecord struct {
	Kind        string             `json:"kind"`
	Params      string             `json:"params"`
	Field       string             `json:"field"`
	Shape       []uint32           `json:"shape,omitempty"` // rows, inner, columns
	Convolution *convolutionRecord `json:"convolution,omitempty"`
	InputParty  *uint32            `json:"input_party,omitempty"`
	NoSacrifice bool               `json:"no_sacrifice,omitempty"`
	Quorum      []uint32           `json:"quorum,omitempty"` // of masks: places in the roster
	Form        string             `json:"form,omitempty"`   // of masks
	Tenant      string             `json:"tenant"`
}

func classJSON(c *tuplesv1.Class) classRecord {
	r := classRecord{Kind: job.KindName(c.GetKind()), Params: c.GetParams(), Field: c.GetField(), NoSacrifice: c.GetNoSacrifice(), Tenant: c.GetTenant()}
	r.Shape, r.Convolution = shapeJSON(c.GetShape())
	if c.GetKind() == jobv1.Kind_KIND_MASKS {
		r.Quorum, r.Form = c.GetQuorum(), job.FormName(c.GetForm())
	}
	if owner := c.GetInputParty(); job.Owned(c.GetKind()) {
		r.InputParty = &owner
	}
	return r
}

type stockRecord struct {
	classRecord
	Epoch       uint64        `json:"epoch"` // 0: the newest, which is not known
	*StockLevel               // nil: not known
	Making      uint64        `json:"in_production"`
	Made        float64       `json:"made_per_second"`
	Taken       float64       `json:"reserved_per_second"`
	TimeToEmpty *float64      `json:"time_to_empty_seconds,omitempty"`
	TimeToFull  *float64      `json:"time_to_full_seconds,omitempty"`
	Policy      *policyRecord `json:"policy,omitempty"`
	HeldBack    string        `json:"held_back,omitempty"`
}

// StockLevel is what there is of a class. JSON has it beside the class, where it is known.
type StockLevel struct {
	Available uint64 `json:"available"`
	Reserved  uint64 `json:"reserved"`
	Consumed  uint64 `json:"consumed"`
	Lost      uint64 `json:"lost"`
}

type stockList struct {
	Stock []stockRecord `json:"stock"`
	AsOf  string        `json:"as_of,omitempty"` // while parties are away the last time that none was
	Away  []awayRecord  `json:"away,omitempty"`
}

type awayRecord struct {
	Party  uint32 `json:"party"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// stockJSON is the record of an answer of GetStock or WatchStock.
func stockJSON(r stockAnswer) stockList {
	list := stockList{Stock: []stockRecord{}, AsOf: when(r.GetAsOf())}
	for _, p := range r.GetAway() {
		list.Away = append(list.Away, awayRecord{p.GetParty(), p.GetName(), oneLine(p.GetReason())})
	}
	for _, s := range r.GetStock() {
		x := stockRecord{
			classRecord: classJSON(s.GetClass()), Epoch: s.GetEpoch(), Making: s.GetInProduction(), Made: s.GetMadePerSecond(), Taken: s.GetReservedPerSecond(),
			TimeToEmpty: seconds(s.GetTimeToEmpty()), TimeToFull: seconds(s.GetTimeToFull()), HeldBack: s.GetHeldBack(),
		}
		if !unknown(r) {
			x.StockLevel = &StockLevel{s.GetAvailable(), s.GetReserved(), s.GetConsumed(), s.GetLost()}
		}
		if s.GetPolicy() != nil {
			p := policyJSON(s.GetPolicy())
			x.Policy = &p
		}
		list.Stock = append(list.Stock, x)
	}
	return list
}

func seconds(d *durationpb.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.AsDuration().Seconds()
	return &s
}
