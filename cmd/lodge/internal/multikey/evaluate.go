package multikey

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/multikey"
)

// evaluating holds the flags of `lodge mk evaluate`.
type evaluating struct {
	netlist, out string
	in           []string
	estimate     bool
}

// costRecord is the JSON form of the cost of an evaluation.
type costRecord struct {
	Gates           uint64   `json:"gates"`
	Levels          uint32   `json:"levels"`
	Bootstraps      uint64   `json:"bootstraps"`
	Rotations       uint64   `json:"rotations"`
	ByParties       []uint64 `json:"bootstraps_of_parties"`
	MemoryBytes     uint64   `json:"memory_bytes"`
	ResultBytes     uint64   `json:"result_bytes"`
	RotationSeconds float64  `json:"rotation_seconds"`
	Seconds         float64  `json:"seconds"`
}

// evaluationRecord is the JSON form of an evaluation.
type evaluationRecord struct {
	File    string     `json:"file,omitempty"`
	Request string     `json:"request"`
	State   string     `json:"state"`
	Done    uint64     `json:"gates_done"`
	Netlist string     `json:"netlist_digest"`
	Result  string     `json:"result_digest,omitempty"`
	Cost    costRecord `json:"cost"`
	Error   string     `json:"error_code,omitempty"`
	Seconds float64    `json:"seconds"`
}

func costJSON(c *multikeyv1.EvaluationCost) costRecord {
	return costRecord{c.GetGates(), c.GetLevels(), c.GetBootstraps(), c.GetRotations(), c.GetBootstrapsOfParties(), c.GetMemoryBytes(),
		c.GetResultBytes(), c.GetRotationSeconds(), c.GetSeconds()}
}

func evaluationJSON(j *multikeyv1.EvaluationJob) evaluationRecord {
	r := evaluationRecord{
		Request: hex.EncodeToString(j.GetRequestId()), State: cli.Word(j.GetState()), Done: j.GetDone(), Netlist: hex.EncodeToString(j.GetNetlistDigest()),
		Result: hex.EncodeToString(j.GetResultDigest()), Cost: costJSON(j.GetCost()), Error: j.GetCode(),
	}
	if j.GetEnded() != nil && j.GetStarted() != nil {
		r.Seconds = j.GetEnded().AsTime().Sub(j.GetStarted().AsTime()).Seconds()
	}
	return r
}

func mkEvaluateCommand(o *cli.Operator) *cobra.Command {
	q := &evaluating{}
	cmd := cli.Command("evaluate", func(cmd *cobra.Command, args []string) error {
		q.netlist = args[0]
		return mkEvaluate(o, cmd, q)
	})
	o.PartyFlag(cmd, "the party that computes, by name or index")
	f := cmd.Flags()
	f.StringArrayVar(&q.in, "in", nil, "`file` of ciphertexts, as `lodge mk` writes it; repeat the flag for the next inputs")
	f.StringVar(&q.out, "out", "", "file to create")
	f.BoolVar(&q.estimate, "estimate", false, "show the cost without computing")
	return cmd
}

// readMultikey reads files of ciphertexts.
func readMultikey(pinned *multikey.Context, paths []string) (groups []mkclient.Group, err error) {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		more, err := mkclient.Read(f, pinned.Scheme)
		f.Close()
		if err != nil {
			return nil, cli.Invalid("name a file that `lodge mk` wrote for this roster", "%s: %v", path, err)
		}
		groups = append(groups, more...)
	}
	return groups, nil
}

func mkEvaluate(o *cli.Operator, cmd *cobra.Command, q *evaluating) error {
	n, err := readNetlist(q.netlist)
	if err != nil {
		return err
	}
	if !q.estimate {
		if q.out == "" {
			return cli.Invalid("add --out FILE, or --estimate", "no output file")
		}
		if err := cli.CheckNewFile(q.out); err != nil {
			return err
		}
	}
	p, pinned, c, err := mkParty(o)
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	r := &mkclient.Request{Netlist: n}
	if r.Inputs, err = readMultikey(pinned, q.in); err != nil {
		return err
	}
	if q.estimate {
		cost, err := p.Estimate(cmd.Context(), r)
		if err != nil {
			return cli.FromClient(err)
		}
		return cli.Print(cmd, costJSON(cost), "%s\n", describeCost(cost))
	}
	progress := cli.ProgressOf(cmd)
	defer progress.Done()
	groups, j, err := p.Evaluate(cmd.Context(), r, func(j *multikeyv1.EvaluationJob) {
		progress.Show(fmt.Sprintf("%s: %d of %d gates, %d bootstraps in all", cli.Word(j.GetState()), j.GetDone(), j.GetCost().GetGates(), j.GetCost().GetBootstraps()), false)
	})
	progress.Done()
	if err != nil {
		return cli.FromClient(err)
	}
	if err := cli.WriteNewFile(q.out, 0o644, func(w io.Writer) error { return mkclient.Write(w, pinned.Scheme, groups) }); err != nil {
		return err
	}
	out := evaluationJSON(j)
	out.File = q.out
	return cli.Print(cmd, out, "%s: %d ciphertexts in %.1f s, digest %s\n", q.out, len(mkclient.Ciphertexts(groups)), out.Seconds, out.Result)
}

// describeCost describes the cost of an evaluation in one line.
func describeCost(c *multikeyv1.EvaluationCost) string {
	text := fmt.Sprintf("%d gates in %d levels: %d bootstraps, of", c.GetGates(), c.GetLevels(), c.GetBootstraps())
	for i, n := range c.GetBootstrapsOfParties() {
		if n > 0 {
			text += fmt.Sprintf(" %d parties %d,", i+1, n)
		}
	}
	return strings.TrimSuffix(text, ",") + fmt.Sprintf("; about %s, %s of memory, a result of %s",
		time.Duration(c.GetSeconds()*float64(time.Second)).Round(10*time.Millisecond), cli.Size(float64(c.GetMemoryBytes())), cli.Size(float64(c.GetResultBytes())))
}

func mkJobsCommand(o *cli.Operator) *cobra.Command {
	cmd := cli.Command("jobs", func(cmd *cobra.Command, _ []string) error {
		p, _, c, err := mkParty(o)
		if err != nil {
			return err
		}
		defer c.Conn.Close()
		jobs, err := p.Jobs(cmd.Context())
		if err != nil {
			return cli.FromClient(err)
		}
		list := []evaluationRecord{}
		for _, j := range jobs {
			list = append(list, evaluationJSON(j))
		}
		return cli.Write(cmd, map[string][]evaluationRecord{"evaluations": list}, func(w io.Writer) error {
			return cli.PrintTable(w, "", "REQUEST\tSTATE\tGATES\tBOOTSTRAPS\tRESULT", list, func(r evaluationRecord) []any {
				return []any{r.Request, r.State, fmt.Sprintf("%d/%d", r.Done, r.Cost.Gates), r.Cost.Bootstraps, r.Result}
			})
		})
	})
	o.PartyFlag(cmd, "the party, by name or index")
	return cmd
}
