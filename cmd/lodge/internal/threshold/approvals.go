package threshold

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// approvalRecord is the JSON form of a request for decryption and the parties that know it.
type approvalRecord struct {
	threshold.Approval
	Parties []string `json:"parties"`
}

type approvalsReport struct {
	Approvals []approvalRecord  `json:"approvals"`
	Away      map[string]string `json:"away,omitempty"` // parties that could not respond, with the reason
}

func (o *decrypter) approvalsCommand() *cobra.Command {
	return cli.Command("approvals", func(cmd *cobra.Command, _ []string) error {
		return o.do(func(c *threshold.Client) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), cli.CallTime)
			defer cancel()
			lists, errs := c.Approvals(ctx)
			r, err := approvalsOf(c.Parties(), lists, errs)
			if err != nil {
				return err
			}
			return cli.Write(cmd, r, func(w io.Writer) error {
				for name, why := range r.Away {
					fmt.Fprintf(cmd.ErrOrStderr(), "unavailable: %s: %s\n", name, cli.OneLine(why))
				}
				return printApprovals(w, r.Approvals)
			})
		})
	})
}

// approvalsOf merges the parties' reports: equal reports become one record. It returns an error if
// no party responds.
func approvalsOf(names []string, lists [][]threshold.Approval, errs []error) (*approvalsReport, error) {
	r := &approvalsReport{Approvals: []approvalRecord{}, Away: map[string]string{}}
	failed := 0
	for i, err := range errs {
		if err != nil {
			failed++
			r.Away[names[i]] = lodge.FromError(err).What
		}
	}
	if failed == len(errs) {
		return nil, errs[0]
	}
	for i, list := range lists {
		for _, a := range list {
			k := slices.IndexFunc(r.Approvals, func(b approvalRecord) bool {
				return a.Request == b.Request && a.Needed == b.Needed && a.Used == b.Used && slices.Equal(a.ApprovedBy, b.ApprovedBy)
			})
			if k < 0 {
				k, r.Approvals = len(r.Approvals), append(r.Approvals, approvalRecord{Approval: a})
			}
			r.Approvals[k].Parties = append(r.Approvals[k].Parties, names[i])
		}
	}
	slices.SortStableFunc(r.Approvals, func(a, b approvalRecord) int {
		return cmp.Or(a.Asked.Truncate(time.Second).Compare(b.Asked.Truncate(time.Second)), cmp.Compare(a.Request, b.Request))
	})
	return r, nil
}

func printApprovals(w io.Writer, list []approvalRecord) error {
	return cli.PrintTable(w, "no requests wait for approval", "REQUEST\tCLIENT\tEPOCH\tMESSAGES\tCIRCUIT\tAPPROVALS\tEXPIRES\tAT", list, func(a approvalRecord) []any {
		state := fmt.Sprintf("%d of %d", len(a.ApprovedBy), a.Needed)
		if len(a.ApprovedBy) > 0 {
			state += " (" + strings.Join(a.ApprovedBy, ", ") + ")"
		}
		if a.Used {
			state += ", used"
		}
		return []any{a.Request, a.Client, a.Epoch, a.Messages, a.Circuit, state, a.Expires.UTC().Format(time.RFC3339),
			strings.Join(a.Parties, " ")}
	})
}

// approvedReport is the JSON outcome of `lodge decrypt approve`.
type approvedReport struct {
	Request string            `json:"request"`
	Parties []string          `json:"parties"` // parties that have counted the approval
	Count   []int             `json:"approvals"`
	Needed  []uint32          `json:"needed"`
	Others  map[string]string `json:"others,omitempty"` // parties that have not, with the reason
}

func (o *decrypter) approveCommand() *cobra.Command {
	return cli.Command("approve", func(cmd *cobra.Command, args []string) error {
		request, err := hex.DecodeString(args[0])
		if err != nil || len(request) != 32 {
			return cli.Invalid("`lodge decrypt approvals` lists the requests", "%.80q is not 64 hexadecimal digits", args[0])
		}
		return o.do(func(c *threshold.Client) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), cli.CallTime)
			defer cancel()
			at, errs := c.Approve(ctx, request)
			r := approvedReport{Request: args[0], Parties: []string{}, Others: map[string]string{}}
			var failed error
			for i, name := range c.Parties() {
				if errs[i] == nil {
					r.Parties, r.Count, r.Needed = append(r.Parties, name), append(r.Count, len(at[i].ApprovedBy)), append(r.Needed, at[i].Needed)
					continue
				}
				r.Others[name] = lodge.FromError(errs[i]).What
				// a party without the request did not receive it, or is not in the quorum
				if failed == nil || lodge.FromError(failed).Code == lodge.NotFound {
					failed = errs[i]
				}
			}
			if len(r.Parties) == 0 {
				return failed
			}
			return cli.Write(cmd, r, func(w io.Writer) error {
				for i, name := range r.Parties {
					if _, err := fmt.Fprintf(w, "party %s: approved, %d of %d\n", name, r.Count[i], r.Needed[i]); err != nil {
						return err
					}
				}
				if e := (*lodge.Error)(nil); errors.As(failed, &e) && e.Code != lodge.NotFound {
					return rpc.Errorf(rpc.Code(e.Code), cmp.Or(e.Next, "run the command again: completed steps are not repeated"), "%s", e.What)
				}
				return nil
			})
		})
	})
}
