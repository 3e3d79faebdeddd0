package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// epochText names the epoch of a policy.
func epochText(epoch uint64) string {
	if epoch == 0 {
		return "the newest epoch"
	}
	return fmt.Sprintf("epoch %d", epoch)
}

// stockCommand returns `lodge stock`.
func stockCommand() *cobra.Command {
	o := &cli.Operator{}
	q := &stockv1.GetStockRequest{}
	var watch bool
	cmd := cli.Command("stock", func(cmd *cobra.Command, _ []string) error {
		if watch {
			return watchStock(o, cmd, q.GetEpoch())
		}
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			r, err := c.Stock.GetStock(ctx, q)
			if err != nil {
				return err
			}
			return cli.Write(cmd, stockJSON(r), func(w io.Writer) error { return printStock(w, r, time.Now()) })
		})
	})
	o.Flags(cmd)
	cmd.Flags().Uint64Var(&q.Epoch, "epoch", 0, "show only this epoch of keys")
	cmd.Flags().BoolVar(&watch, "watch", false, "keep running and write the stock at every change")
	cmd.AddCommand(policiesCommand(o))
	return cmd
}

// watchStock writes the stock at every change. It reconnects when the coordinator restarts.
func watchStock(o *cli.Operator, cmd *cobra.Command, epoch uint64) error {
	c, err := o.Dial()
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	w, p := cmd.OutOrStdout(), terminal.NewProgress(cmd.ErrOrStderr())
	defer p.Done()
	screen := terminal.Is(w)
	var heard time.Time
	for {
		stream, err := c.Stock.WatchStock(cmd.Context(), &stockv1.WatchStockRequest{Epoch: epoch})
		for err == nil {
			var r *stockv1.WatchStockResponse
			if r, err = stream.Recv(); err != nil {
				break
			}
			switch {
			case cli.JSON(cmd):
				err = cli.WriteJSONLine(w, stockJSON(r))
			case screen:
				fmt.Fprint(w, "\x1b[H\x1b[2J") // move the cursor to the corner and clear the screen
				err = printStock(w, r, time.Now())
			default:
				if !heard.IsZero() {
					fmt.Fprintln(w)
				}
				err = printStock(w, r, time.Now())
			}
			heard = time.Now()
		}
		err = c.Explain(err)
		switch {
		case cmd.Context().Err() != nil:
			return nil // the user ended the watch
		case !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) && !errors.Is(err, io.EOF) || time.Since(heard) > cli.LostTime:
			return err
		}
		p.Say("the coordinator is unreachable; retrying")
		time.Sleep(200 * time.Millisecond)
	}
}

// printStock writes the stock as a table. If parties are unavailable, it first writes the age of
// the numbers.
func printStock(w io.Writer, r stockAnswer, now time.Time) error {
	if who := awayText(r.GetAway()); who != "" {
		what := "the stock is unknown, because the coordinator has not heard from all parties since it started"
		if r.GetAsOf() != nil {
			what = fmt.Sprintf("the numbers are %s old", now.Sub(r.GetAsOf().AsTime()).Round(time.Second))
		}
		fmt.Fprintf(w, "nothing can be reserved while these are unavailable: %s; %s\n", who, what)
		if len(r.GetStock()) == 0 {
			return nil
		}
		fmt.Fprintln(w)
	}
	if len(r.GetStock()) == 0 {
		_, err := fmt.Fprintln(w, "no tuples; `lodge jobs submit` makes tuples, `lodge stock policies set` keeps a stock")
		return err
	}
	t := cli.NewTable(w)
	fmt.Fprintln(t, "KIND\tFIELD\tPARAMS\tTENANT\tEPOCH\tAVAILABLE\tRESERVED\tCONSUMED\tLOST\tMAKING\tRATE\tEMPTY IN\tPOLICY\tHELD BACK")
	for _, s := range r.GetStock() {
		c, epoch, known := s.GetClass(), "newest", "?\t?\t?\t?"
		if s.GetEpoch() != 0 {
			epoch = strconv.FormatUint(s.GetEpoch(), 10)
		}
		if !unknown(r) {
			known = fmt.Sprintf("%d\t%d\t%d\t%d", s.GetAvailable(), s.GetReserved(), s.GetConsumed(), s.GetLost())
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", cli.ClassText(c), cli.OrDash(c.GetField()), c.GetParams(), cli.OrDash(c.GetTenant()), epoch,
			known, s.GetInProduction(), rates(s), span(s.GetTimeToEmpty()), policyText(s.GetPolicy()), cli.OrDash(cli.OneLine(s.GetHeldBack())))
	}
	return t.Flush()
}

// unknown reports whether the response contains no numbers.
func unknown(r stockAnswer) bool { return len(r.GetAway()) > 0 && r.GetAsOf() == nil }

// awayText lists the unavailable parties.
func awayText(away []*stockv1.AwayParty) string {
	var names []string
	for _, p := range away {
		names = append(names, fmt.Sprintf("party %d (%s)", p.GetParty(), p.GetName()))
	}
	return strings.Join(names, ", ")
}

// rates formats the numbers of tuples made and reserved in a second.
func rates(s *stockv1.Stock) string {
	if s.GetMadePerSecond() == 0 && s.GetReservedPerSecond() == 0 {
		return "-"
	}
	return fmt.Sprintf("+%.3g -%.3g", s.GetMadePerSecond(), s.GetReservedPerSecond())
}

// span formats the time until an event.
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

// The JSON records of the stock: names as in flags, times in RFC 3339, durations in seconds.

type stockRecord struct {
	cli.ClassRecord
	Epoch       uint64        `json:"epoch"` // 0 means the newest, which is unknown
	*StockLevel               // nil: unknown
	Making      uint64        `json:"in_production"`
	Made        float64       `json:"made_per_second"`
	Taken       float64       `json:"reserved_per_second"`
	TimeToEmpty *float64      `json:"time_to_empty_seconds,omitempty"`
	TimeToFull  *float64      `json:"time_to_full_seconds,omitempty"`
	Policy      *PolicyRecord `json:"policy,omitempty"`
	HeldBack    string        `json:"held_back,omitempty"`
}

// StockLevel holds the numbers of tuples of a class. The JSON record omits them if they are
// unknown.
type StockLevel struct {
	Available uint64 `json:"available"`
	Reserved  uint64 `json:"reserved"`
	Consumed  uint64 `json:"consumed"`
	Lost      uint64 `json:"lost"`
}

type StockList struct {
	Stock []stockRecord `json:"stock"`
	AsOf  string        `json:"as_of,omitempty"` // if parties are unavailable: the last time that all were available
	Away  []awayRecord  `json:"away,omitempty"`
}

type awayRecord struct {
	Party  uint32 `json:"party"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// stockJSON returns the JSON record of a response of GetStock or WatchStock.
func stockJSON(r stockAnswer) StockList {
	list := StockList{Stock: []stockRecord{}, AsOf: cli.Time(r.GetAsOf())}
	for _, p := range r.GetAway() {
		list.Away = append(list.Away, awayRecord{p.GetParty(), p.GetName(), cli.OneLine(p.GetReason())})
	}
	for _, s := range r.GetStock() {
		x := stockRecord{
			ClassRecord: cli.ClassJSON(s.GetClass()), Epoch: s.GetEpoch(), Making: s.GetInProduction(), Made: s.GetMadePerSecond(), Taken: s.GetReservedPerSecond(),
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
