package cli

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// maxReason is the largest number of characters of a reason in a table.
const maxReason = 72

// PrintJobs writes a table of jobs.
func PrintJobs(w io.Writer, jobs []*coordinatorv1.Job, now time.Time) error {
	return PrintTable(w, "no jobs", "ID\tKIND\tFIELD\tSTATE\tAGE\tPROGRESS\tREASON", jobs, func(j *coordinatorv1.Job) []any {
		reason := []rune(OneLine(j.GetReason()))
		if len(reason) > maxReason {
			reason = append(reason[:maxReason-1], '…')
		}
		return []any{j.GetId(), job.KindName(j.GetRequest().GetKind()), j.GetRequest().GetField(), Word(j.GetState()),
			now.Sub(j.GetCreated().AsTime()).Round(time.Second), achieved(j), string(reason)}
	})
}

// achieved describes the progress of a job: the result, or the round of the slowest party.
func achieved(j *coordinatorv1.Job) string {
	if j.GetState() == jobv1.JobState_JOB_STATE_COMPLETED {
		if n := result(j).GetCount(); n > 0 {
			return fmt.Sprintf("%d made", n)
		}
		return fmt.Sprintf("epoch %d", j.GetEpoch())
	}
	var behind *jobv1.Progress
	for _, p := range j.GetParties() {
		if g := p.GetStatus().GetProgress(); g != nil && (behind == nil || g.GetRoundIndex() < behind.GetRoundIndex()) {
			behind = g
		}
	}
	if behind == nil {
		return "-"
	}
	return place(behind)
}

// result returns the status of a completed job. All parties report the same.
func result(j *coordinatorv1.Job) *jobv1.SessionStatus {
	if len(j.GetParties()) == 0 {
		return nil
	}
	return j.GetParties()[0].GetStatus()
}

// place describes the round of a party and the share of the round's data that it received.
func place(g *jobv1.Progress) string {
	if g == nil {
		return "-"
	}
	text := fmt.Sprintf("round %d %s", g.GetRoundIndex(), OneLine(g.GetRound()))
	if got, limit := g.GetRoundReceivedBytes(), g.GetRoundLimitBytes(); got > 0 && got < limit {
		text += fmt.Sprintf(" %d%%", 100*got/limit)
	}
	return text
}

// printJob writes the details of a job as text.
func printJob(w io.Writer, j *coordinatorv1.Job, now time.Time) error {
	t := NewTable(w)
	line := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" && text != "0" {
			fmt.Fprintf(t, "%s\t%s\n", name, OneLine(text))
		}
	}
	q := j.GetRequest()
	line("job", "%s", j.GetId())
	line("state", "%s", Word(j.GetState()))
	if j.GetFailure() == nil { // otherwise it is part of the failure
		line("reason", "%s", j.GetReason())
	}
	line("kind", "%s", job.KindName(q.GetKind()))
	line("purpose", "%s", job.PurposeName(q.GetPurpose()))
	line("parameters", "%s", q.GetParams())
	line("field", "%s", q.GetField())
	if s := q.GetShape(); s != nil {
		text := fmt.Sprintf("%d x %d x %d", s.GetRows(), s.GetInner(), s.GetColumns())
		if s.GetConvolution() != nil {
			text = ShapeText(s)
		}
		line("shape", "%s", text)
	}
	if job.Owned(q.GetKind()) {
		line("known to", "party %d", q.GetInputParty())
	}
	if q.GetNoSacrifice() {
		line("sacrifice", "none: malformed evaluation keys would go undetected")
	}
	if t := q.GetThreshold(); t > 0 {
		line("threshold", "any %d of %d decrypt", t+1, holderCount(j))
	}
	line("parties", "%s", strings.Trim(fmt.Sprint(q.GetGroup()), "[]"))
	line("masks", "%s", job.FormName(q.GetForm()))
	if q.GetFromEpoch() > 0 {
		line("from", "epoch %d", q.GetFromEpoch())
	}
	line("block", "%d", q.GetDim())
	line("asked", "%d", q.GetCount())
	if j.GetState() == jobv1.JobState_JOB_STATE_COMPLETED {
		if n := result(j).GetCount(); n < q.GetCount() && job.MakesTuples(q.GetKind()) {
			line("made", "%d, the largest number for one job", n)
		} else {
			line("made", "%d", n)
		}
		line("key generation", "%s", result(j).GetKeygenSecurity())
	}
	line("epoch", "%d", j.GetEpoch())
	line("batch", "%s", j.GetBatchId())
	line("tenant", "%s", q.GetTenant())
	line("submitted", "%s ago by %s", now.Sub(j.GetCreated().AsTime()).Round(time.Second), j.GetSubmittedBy())
	if j.GetStarted() != nil {
		end := now
		if j.GetEnded() != nil {
			end = j.GetEnded().AsTime()
		}
		line("took", "%s", end.Sub(j.GetStarted().AsTime()).Round(time.Millisecond))
	}
	line("digest", "%x", j.GetDigest())
	if err := t.Flush(); err != nil {
		return err
	}
	if err := printFailure(w, j); err != nil {
		return err
	}
	return printParties(w, j)
}

// holderCount returns the number of holders of threshold keys: the named parties, or all
// participants.
func holderCount(j *coordinatorv1.Job) int {
	if n := len(j.GetRequest().GetGroup()); n > 0 {
		return n
	}
	return len(j.GetParties())
}

// printFailure writes the round and the reason of a failure, and the blamed or suspected parties.
func printFailure(w io.Writer, j *coordinatorv1.Job) error {
	f := j.GetFailure()
	if f == nil {
		return nil
	}
	text := "\noutcome: " + OneLine(f.GetOutcome())
	if f.GetRound() != "" {
		text += fmt.Sprintf(" in round %d (%s)", f.GetRoundIndex(), OneLine(f.GetRound()))
	}
	if f.GetCheck() != "" {
		text += ", check " + OneLine(f.GetCheck())
	}
	text += fmt.Sprintf(": %s\n", OneLine(f.GetReason()))
	switch b := f.GetBlame(); {
	case b != nil:
		text += fmt.Sprintf("to blame: party %d%s, check %s: %s\n", b.GetParty(), nameOf(j, b.GetParty()), OneLine(b.GetCheck()), OneLine(b.GetReason()))
	case len(f.GetSuspects()) > 0:
		text += "suspects, none of whom can be blamed with certainty:"
		for _, p := range f.GetSuspects() {
			text += fmt.Sprintf(" party %d%s", p, nameOf(j, p))
		}
		text += "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// nameOf returns the name of a party in brackets, if the job knows it.
func nameOf(j *coordinatorv1.Job, party uint32) string {
	for _, p := range j.GetParties() {
		if p.GetParty() == party {
			return " (" + p.GetName() + ")"
		}
	}
	return ""
}

// printParties writes a table with the last report of each party.
func printParties(w io.Writer, j *coordinatorv1.Job) error {
	if len(j.GetParties()) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return PrintTable(w, "", "PARTY\tNAME\tSTATE\tROUND\tWAITS FOR\tSENT\tRECEIVED\tMEMORY\tENDED BY", j.GetParties(), func(p *coordinatorv1.PartyProgress) []any {
		s := p.GetStatus()
		g := s.GetProgress()
		state := Word(s.GetState())
		if s == nil {
			state = "-" // and perhaps "(away)"
		}
		if !p.GetReachable() {
			state += " (away)"
		}
		waits := ""
		if !job.Final(s.GetState()) && len(g.GetWaitingFor()) > 0 {
			waits = strings.Trim(fmt.Sprint(g.GetWaitingFor()), "[]")
		}
		memory := ""
		if s.GetPeakRssBytes() > 0 {
			memory = Size(float64(s.GetPeakRssBytes()))
		}
		return []any{p.GetParty(), p.GetName(), state, place(g), waits, Size(float64(g.GetSentBytes())), Size(float64(g.GetReceivedBytes())),
			memory, accusation(s.GetFailure())}
	})
}

// accusation describes how a party's session ended.
func accusation(f *jobv1.Failure) string {
	if f == nil {
		return ""
	}
	text := f.GetOutcome()
	if f.GetBlame() != nil {
		text += fmt.Sprintf(" of party %d", f.GetBlame().GetParty())
	}
	if f.GetCheck() != "" {
		text += ", check " + OneLine(f.GetCheck())
	}
	return text
}

// The JSON records of jobs: names as in flags and tables, times in RFC 3339, bytes in hexadecimal.

type JobRecord struct {
	ID          string             `json:"id"`
	State       string             `json:"state"`
	Reason      string             `json:"reason,omitempty"`
	Kind        string             `json:"kind"`
	Purpose     string             `json:"purpose"`
	Params      string             `json:"params"`
	Field       string             `json:"field,omitempty"`
	Dim         uint32             `json:"dim,omitempty"`
	Shape       []uint32           `json:"shape,omitempty"` // rows, inner, columns
	Convolution *convolutionRecord `json:"convolution,omitempty"`
	InputParty  *uint32            `json:"input_party,omitempty"`
	NoSacrifice bool               `json:"no_sacrifice,omitempty"`
	Count       uint64             `json:"count,omitempty"` // requested
	Made        uint64             `json:"made,omitempty"`
	Tenant      string             `json:"tenant,omitempty"`
	Threshold   uint32             `json:"threshold,omitempty"` // for threshold keys
	Group       []uint32           `json:"group,omitempty"`     // holders, or the quorum of masks; empty means all parties
	Form        string             `json:"form,omitempty"`      // for masks
	FromEpoch   uint64             `json:"from_epoch,omitempty"`
	Timeout     float64            `json:"timeout_seconds,omitempty"`
	Epoch       uint64             `json:"epoch,omitempty"`
	Batch       string             `json:"batch,omitempty"`
	Digest      string             `json:"digest,omitempty"`
	Attempt     uint32             `json:"attempt,omitempty"`
	SubmittedBy string             `json:"submitted_by"`
	Created     string             `json:"created"`
	Started     string             `json:"started,omitempty"`
	Ended       string             `json:"ended,omitempty"`
	Failure     *failureRecord     `json:"failure,omitempty"`
	Parties     []partyRecord      `json:"parties,omitempty"`
}

type failureRecord struct {
	Outcome    string       `json:"outcome"`
	Round      string       `json:"round,omitempty"`
	RoundIndex uint32       `json:"round_index,omitempty"`
	Check      string       `json:"check,omitempty"`
	Reason     string       `json:"reason"`
	Blame      *blameRecord `json:"blame,omitempty"`
	Suspects   []uint32     `json:"suspects,omitempty"`
	Reporter   uint32       `json:"reporter"`
}

type blameRecord struct {
	Party  uint32 `json:"party"`
	Check  string `json:"check"`
	Reason string `json:"reason"`
}

type partyRecord struct {
	Party          uint32         `json:"party"`
	Name           string         `json:"name"`
	Reachable      bool           `json:"reachable"`
	State          string         `json:"state,omitempty"`
	Round          string         `json:"round,omitempty"`
	RoundIndex     uint32         `json:"round_index,omitempty"`
	WaitingFor     []uint32       `json:"waiting_for,omitempty"`
	SentBytes      uint64         `json:"sent_bytes"`
	ReceivedBytes  uint64         `json:"received_bytes"`
	PeakRSS        uint64         `json:"peak_rss_bytes,omitempty"`
	Rounds         uint32         `json:"rounds,omitempty"`
	KeygenSecurity string         `json:"keygen_security,omitempty"`
	Failure        *failureRecord `json:"failure,omitempty"`
}

type JobList struct {
	Jobs []JobRecord `json:"jobs"`
	Next string      `json:"next,omitempty"`
}

func ListJSON(r *coordinatorv1.ListJobsResponse) JobList {
	return JobList{Jobs: Each(r.GetJobs(), JobJSON), Next: r.GetNext()}
}

func JobJSON(j *coordinatorv1.Job) JobRecord {
	q := j.GetRequest()
	r := JobRecord{
		ID: j.GetId(), State: Word(j.GetState()), Reason: j.GetReason(), Kind: job.KindName(q.GetKind()), Purpose: job.PurposeName(q.GetPurpose()),
		Params: q.GetParams(), Field: q.GetField(), Dim: q.GetDim(), NoSacrifice: q.GetNoSacrifice(), Count: q.GetCount(), Tenant: q.GetTenant(),
		Timeout: q.GetTimeout().AsDuration().Seconds(), Epoch: j.GetEpoch(), Batch: j.GetBatchId(), Digest: hex.EncodeToString(j.GetDigest()),
		Attempt: j.GetOrdinal(), SubmittedBy: j.GetSubmittedBy(), Created: Time(j.GetCreated()), Started: Time(j.GetStarted()),
		Ended: Time(j.GetEnded()), Failure: failureJSON(j.GetFailure()),
		Threshold: q.GetThreshold(), Group: q.GetGroup(), Form: job.FormName(q.GetForm()), FromEpoch: q.GetFromEpoch(),
	}
	if r.Epoch == 0 {
		r.Epoch = q.GetEpoch()
	}
	r.Shape, r.Convolution = shapeJSON(q.GetShape())
	if owner := q.GetInputParty(); job.Owned(q.GetKind()) {
		r.InputParty = &owner
	}
	for _, p := range j.GetParties() {
		s := p.GetStatus()
		g := s.GetProgress()
		x := partyRecord{
			Party: p.GetParty(), Name: p.GetName(), Reachable: p.GetReachable(), Round: g.GetRound(), RoundIndex: g.GetRoundIndex(),
			WaitingFor: g.GetWaitingFor(), SentBytes: g.GetSentBytes(), ReceivedBytes: g.GetReceivedBytes(), PeakRSS: s.GetPeakRssBytes(),
			Rounds: s.GetRounds(), KeygenSecurity: s.GetKeygenSecurity(), Failure: failureJSON(s.GetFailure()),
		}
		if s != nil {
			x.State = Word(s.GetState())
		}
		r.Parties = append(r.Parties, x)
	}
	if j.GetState() == jobv1.JobState_JOB_STATE_COMPLETED {
		r.Made = result(j).GetCount()
	}
	return r
}

func failureJSON(f *jobv1.Failure) *failureRecord {
	if f == nil {
		return nil
	}
	r := &failureRecord{
		Outcome: f.GetOutcome(), Round: f.GetRound(), RoundIndex: f.GetRoundIndex(), Check: f.GetCheck(), Reason: f.GetReason(),
		Suspects: f.GetSuspects(), Reporter: f.GetReporter(),
	}
	if b := f.GetBlame(); b != nil {
		r.Blame = &blameRecord{b.GetParty(), b.GetCheck(), b.GetReason()}
	}
	return r
}
