package process

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/doctor"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// statusCommand returns `lodge status`.
func statusCommand() *cobra.Command {
	o := &cli.Operator{}
	cmd := cli.Command("status", func(cmd *cobra.Command, _ []string) error { return fetchStatus(o, cmd) })
	o.Flags(cmd)
	return cmd
}

func fetchStatus(o *cli.Operator, cmd *cobra.Command) error {
	p, err := o.Places()
	if err != nil {
		return err
	}
	credentials, err := p.Credentials()
	if err != nil {
		return err
	}
	answers := doctor.Ask(cmd.Context(), p.Roster, credentials, p.Options)
	reached := false
	for _, a := range answers {
		defer a.Close()
		reached = reached || a.Reached()
	}
	if !reached {
		return rpc.Errorf(rpc.Unavailable, "check that they run; `lodge doctor` prints details", "no process of the cluster responds")
	}
	jobs, err := waiting(cmd.Context(), answers[0])
	return cli.Write(cmd, statusJSON(answers, jobs), func(w io.Writer) error {
		now := time.Now()
		if werr := printStatus(w, answers, now); werr != nil {
			return werr
		}
		switch {
		case err != nil:
			fmt.Fprintf(cmd.ErrOrStderr(), "jobs: %s\n", cli.OneLine(err.Error()))
		case len(jobs) == 0:
			_, err := fmt.Fprintln(w, "\n"+
				"no jobs are queued or running")
			return err
		default:
			fmt.Fprintln(w)
			return cli.PrintJobs(w, jobs, now)
		}
		return nil
	})
}

// maxWaiting is the largest number of unfinished jobs shown.
const maxWaiting = 100

// waiting returns the coordinator's unfinished jobs, each with the reason why it waits.
func waiting(ctx context.Context, a *doctor.Answer) ([]*coordinatorv1.Job, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	ctx, cancel := context.WithTimeout(ctx, cli.CallTime)
	defer cancel()
	q := &coordinatorv1.ListJobsRequest{Limit: maxWaiting}
	for n := range jobv1.JobState_name {
		if s := jobv1.JobState(n); s != 0 && !job.Final(s) {
			q.States = append(q.States, s)
		}
	}
	r, err := coordinatorv1.NewCoordinatorServiceClient(a.Conn).ListJobs(ctx, q)
	if err != nil {
		return nil, rpc.FromError(err)
	}
	return r.GetJobs(), nil
}

// stateOf returns the state of a process in one or two words.
func stateOf(a *doctor.Answer) string {
	switch {
	case a.Err != nil && a.Reached():
		return "refuses"
	case a.Err != nil:
		return "away"
	case a.Status.GetStore().GetQuarantine() != "":
		return "quarantine"
	case a.Status.GetStore().GetFault() != "":
		return "fault"
	case a.Status.GetConduct().GetRefusal() != "":
		return "stopped"
	case !a.Status.GetReady():
		return "not ready"
	}
	return "ready"
}

// note returns details that do not fit in a column: why a process does not respond, or which links
// are missing.
func note(a *doctor.Answer) string {
	if a.Err != nil {
		return a.Err.Error()
	}
	if s := a.Status.GetStore(); s.GetQuarantine()+s.GetFault() != "" {
		return s.GetQuarantine() + s.GetFault()
	}
	for _, v := range a.Status.GetVolumes() {
		if v.GetLow() {
			return fmt.Sprintf("disk low: %s has %s free and needs %s; new work is rejected", v.GetName(), cli.Size(float64(v.GetFreeBytes())), cli.Size(float64(v.GetMinFreeBytes())))
		}
	}
	if f := a.Status.GetAudit().GetFault(); f != "" {
		return f
	}
	if c := a.Status.GetConduct().GetRefusal(); c != "" {
		return c
	}
	for _, d := range a.Status.GetLinear() {
		if d.GetLogSpent() > d.GetLogBudget()-1 { // more than half
			return fmt.Sprintf("products of clients %s and %s have used a statistical distance of 2^%.2f of 2^%.4g", d.GetClient(), d.GetWith(), d.GetLogSpent(), d.GetLogBudget())
		}
	}
	var missing []string
	for _, l := range a.Status.GetLinks() {
		if l.GetState() != statusv1.LinkState_LINK_STATE_CONNECTED {
			missing = append(missing, l.GetName())
		}
	}
	if len(missing) > 0 {
		return "not connected to " + strings.Join(missing, ", ")
	}
	return ""
}

func printStatus(w io.Writer, answers []*doctor.Answer, now time.Time) error {
	t := cli.NewTable(w)
	fmt.Fprintln(t, "PROCESS\tADDRESS\tSTATE\tVERSION\tPROTOCOL\tROSTER\tPARAMS\tCERTIFICATE\tUP\tSESSIONS\tMEMORY\tDISK FREE\tGENERATION\tCLOCK\tNOTE")
	for _, a := range answers {
		s := a.Status
		cells := []string{a.Name, a.Address, stateOf(a), "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"}
		if s != nil {
			var pins []string
			for _, p := range s.GetParams() {
				pins = append(pins, p.GetName())
			}
			copy(cells[3:], []string{
				cli.OrDash(s.GetVersion()), fmt.Sprint(s.GetProtocolVersion()), fmt.Sprintf("%.4x", s.GetRosterHash()), cli.OrDash(strings.Join(pins, ",")),
				fmt.Sprintf("%dd", int(s.GetCertificateNotAfter().AsTime().Sub(now).Hours()/24)), now.Sub(s.GetStarted().AsTime()).Round(time.Second).String(),
				fmt.Sprint(s.GetActiveSessions()), cli.Size(float64(s.GetRssBytes())), "-", "-", signed(a.ClockAhead, a.ClockError),
			})
			if st := s.GetStore(); st != nil {
				cells[12] = fmt.Sprint(st.GetGeneration())
				if st.GetDiskTotalBytes() > 0 {
					cells[11] = cli.Size(float64(st.GetDiskFreeBytes()))
				}
			}
		}
		for i, c := range cells {
			cells[i] = cli.OneLine(c)
		}
		fmt.Fprintf(t, "%s\t%s\n", strings.Join(cells, "\t"), cli.OrDash(cli.OneLine(note(a))))
	}
	return t.Flush()
}

// signed formats the offset of a clock, as far as it is known.
func signed(ahead, by time.Duration) string {
	return fmt.Sprintf("%+.1f±%.1fms", float64(ahead)/1e6, float64(by)/1e6)
}

// The JSON records of the status: times in RFC 3339, durations in seconds, hashes in hexadecimal.

type statusReport struct {
	Processes []processRecord `json:"processes"`
	Jobs      []cli.JobRecord `json:"jobs"` // unfinished
}

type processRecord struct {
	Name        string            `json:"name"`
	Address     string            `json:"address"`
	State       string            `json:"state"`
	Error       string            `json:"error,omitempty"`
	Party       *int              `json:"party,omitempty"`
	Version     string            `json:"version,omitempty"`
	Protocol    uint32            `json:"protocol_version,omitempty"`
	Roster      string            `json:"roster,omitempty"`
	Params      map[string]string `json:"params,omitempty"` // hash by name
	Certificate string            `json:"certificate_not_after,omitempty"`
	Started     string            `json:"started,omitempty"`
	Sessions    uint32            `json:"active_sessions"`
	RSS         uint64            `json:"rss_bytes,omitempty"`
	MaxMemory   uint64            `json:"max_memory_bytes,omitempty"`
	RoundTrip   float64           `json:"round_trip_seconds,omitempty"`
	ClockAhead  float64           `json:"clock_ahead_seconds"`
	ClockError  float64           `json:"clock_error_seconds"`
	Links       map[string]string `json:"links,omitempty"` // state by party
	Store       *storeRecord      `json:"store,omitempty"`
	Audit       *auditRecord      `json:"audit,omitempty"`
	Volumes     []volumeRecord    `json:"volumes,omitempty"`
	Conduct     *conductRecord    `json:"conduct,omitempty"`
	Linear      []distanceRecord  `json:"linear,omitempty"`
}

// distanceRecord is the statistical distance that products on shares have used.
type distanceRecord struct {
	Client    string  `json:"client"`
	With      string  `json:"with"` // the client with the matrices
	LogSpent  float64 `json:"log_spent"`
	LogBudget float64 `json:"log_budget"`
	Products  uint64  `json:"products"`
	Lost      bool    `json:"lost,omitempty"` // the store was restored from a backup
}

type conductRecord struct {
	Refusal     string   `json:"refusal,omitempty"` // why no session starts
	Excluded    []string `json:"excluded,omitempty"`
	Failures    uint32   `json:"failures"` // failures without blame
	MaxFailures uint32   `json:"max_failures"`
}

type storeRecord struct {
	ID         string `json:"id"`
	Generation uint64 `json:"generation"`
	Quarantine string `json:"quarantine,omitempty"`
	Fault      string `json:"fault,omitempty"`
	Postgres   bool   `json:"postgres"`
	DiskFree   uint64 `json:"disk_free_bytes,omitempty"`
	DiskTotal  uint64 `json:"disk_total_bytes,omitempty"`
}

type auditRecord struct {
	Sequence uint64 `json:"sequence"`
	Hash     string `json:"hash"`
	Fault    string `json:"fault,omitempty"` // why nothing can be appended
}

// volumeRecord describes a file system that the process writes to.
type volumeRecord struct {
	Name    string `json:"name"`
	Free    uint64 `json:"free_bytes"`
	Total   uint64 `json:"total_bytes"`
	MinFree uint64 `json:"min_free_bytes"`
	Low     bool   `json:"low"` // new work is rejected
}

func statusJSON(answers []*doctor.Answer, jobs []*coordinatorv1.Job) statusReport {
	return statusReport{cli.Each(answers, processJSON), cli.Each(jobs, cli.JobJSON)}
}

func processJSON(a *doctor.Answer) processRecord {
	x := processRecord{Name: a.Name, Address: a.Address, State: stateOf(a)}
	if a.Party >= 0 {
		x.Party = &a.Party
	}
	s := a.Status
	if s == nil {
		x.Error = a.Err.Error()
		return x
	}
	x.Version, x.Protocol, x.Roster, x.Params = s.GetVersion(), s.GetProtocolVersion(), hex.EncodeToString(s.GetRosterHash()), map[string]string{}
	for _, p := range s.GetParams() {
		x.Params[p.GetName()] = hex.EncodeToString(p.GetHash())
	}
	x.Certificate, x.Started, x.Sessions = cli.Time(s.GetCertificateNotAfter()), cli.Time(s.GetStarted()), s.GetActiveSessions()
	x.RSS, x.MaxMemory = s.GetRssBytes(), s.GetMaxMemoryBytes()
	x.RoundTrip, x.ClockAhead, x.ClockError = a.RoundTrip.Seconds(), a.ClockAhead.Seconds(), a.ClockError.Seconds()
	if len(s.GetLinks()) > 0 {
		x.Links = map[string]string{}
		for _, l := range s.GetLinks() {
			x.Links[l.GetName()] = cli.Word(l.GetState())
		}
	}
	if st := s.GetStore(); st != nil {
		x.Store = &storeRecord{
			hex.EncodeToString(st.GetId()), st.GetGeneration(), st.GetQuarantine(), st.GetFault(), st.GetPostgres(), st.GetDiskFreeBytes(), st.GetDiskTotalBytes(),
		}
	}
	if c := s.GetConduct(); c != nil {
		x.Conduct = &conductRecord{c.GetRefusal(), c.GetExcluded(), c.GetFailures(), c.GetMaxFailures()}
	}
	for _, d := range s.GetLinear() {
		x.Linear = append(x.Linear, distanceRecord{d.GetClient(), d.GetWith(), d.GetLogSpent(), d.GetLogBudget(), d.GetProducts(), d.GetLost()})
	}
	if h := s.GetAudit(); h != nil {
		x.Audit = &auditRecord{h.GetSequence(), hex.EncodeToString(h.GetHash()), h.GetFault()}
	}
	for _, v := range s.GetVolumes() {
		x.Volumes = append(x.Volumes, volumeRecord{v.GetName(), v.GetFreeBytes(), v.GetTotalBytes(), v.GetMinFreeBytes(), v.GetLow()})
	}
	return x
}
