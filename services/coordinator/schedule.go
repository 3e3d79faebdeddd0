package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// This file holds the scheduler's decisions as pure functions of values, without network, clock or
// disk.

const (
	pending    = jobv1.JobState_JOB_STATE_PENDING
	preparing  = jobv1.JobState_JOB_STATE_PREPARING
	storing    = jobv1.JobState_JOB_STATE_STORING
	activating = jobv1.JobState_JOB_STATE_ACTIVATING
	completed  = jobv1.JobState_JOB_STATE_COMPLETED
	failed     = jobv1.JobState_JOB_STATE_FAILED
	cancelled  = jobv1.JobState_JOB_STATE_CANCELLED
	timedOut   = jobv1.JobState_JOB_STATE_TIMED_OUT
)

// Outcomes of failures that the coordinator distinguishes; parties use the same strings.
const (
	outcomeBlame     = "blame"
	outcomeAbort     = "abort"
	outcomePeerAbort = "peer_abort"
	outcomeTimeout   = "timeout"
	outcomeCancelled = "cancelled"
	outcomeRefused   = "refused"
	outcomeInternal  = "internal"
)

// step is the next action for a job.
type step int

const (
	stepNone     step = iota // the job has ended
	stepLead                 // start its session at all parties
	stepActivate             // unlock its result at all parties
	stepAbandon              // an earlier process stopped while the job ran: its sessions have no leader
)

// nextStep returns the next step of a job in state s that no goroutine works on.
func nextStep(s jobv1.JobState) step {
	switch {
	case job.Final(s):
		return stepNone
	case s == pending:
		return stepLead
	case s == activating:
		return stepActivate
	}
	return stepAbandon
}

// slot identifies a MAC key: parties hold one MAC key per slot at a time.
type slot struct {
	epoch         uint64
	field, tenant string
}

// slotOf returns the slot whose MAC key a job needs; ok reports whether it needs one.
func slotOf(q *coordinatorv1.JobRequest) (s slot, ok bool) {
	return slot{q.GetEpoch(), q.GetField(), q.GetTenant()}, job.MakesTuples(q.GetKind())
}

// keyed returns the slots that have a MAC key as far as the records show: the last ended job of the
// slot completed. A failed job may have burnt the key.
func keyed(jobs []*coordinatorv1.Job) map[slot]bool {
	last := map[slot]time.Time{}
	has := map[slot]bool{}
	for _, j := range jobs {
		s, ok := slotOf(j.GetRequest())
		at := j.GetEnded().AsTime()
		if !ok || !job.Final(j.GetState()) || j.GetOrdinal() == 0 || at.Before(last[s]) {
			continue // another kind, unfinished, or ended before any party received it
		}
		last[s], has[s] = at, j.GetState() == completed
	}
	return has
}

// refusal is the reason why a job waits after parties refused it because of concurrent jobs.
type refusal int

const (
	refusedNever      refusal = iota // never refused, or a job has ended since
	refusedRunning                   // waits until one of the concurrent jobs has ended
	refusedActivating                // waits until a job of its slot is active at all parties
)

// task holds the scheduler's view of an unfinished job.
type task struct {
	job     *coordinatorv1.Job
	step    step
	begun   bool // this process works on it
	starts  bool // parties are being asked, and some have not accepted it yet
	refused refusal
}

// due returns the indices of the tasks to begin now. Tasks are in the order of submission and at
// most places of them run concurrently; results are activated concurrently. Jobs begin in order and
// one at a time, because otherwise a later job could take the capacity for which an earlier one was
// refused. While a job waits for another job to become active, jobs of other slots may overtake it,
// except jobs of its slot, because of which parties may refuse it again. No job overtakes a
// job that makes keys, which runs exclusively, or a job that parties refused for lack of capacity.
func due(tasks []task, places int, keyed map[slot]bool) (begin []int) {
	running, closed := 0, false
	locked, taken, waited := map[uint64]bool{}, map[slot]bool{}, map[slot]bool{}
	occupy := func(q *coordinatorv1.JobRequest) {
		if s, ok := slotOf(q); ok {
			taken[s] = true
		}
	}
	for i, t := range tasks {
		q := t.job.GetRequest()
		switch {
		case t.step == stepAbandon:
			closed = true // its remaining sessions use the parties' capacity
		case t.step == stepActivate:
			locked[t.job.GetEpoch()] = locked[t.job.GetEpoch()] || job.MakesEpoch(q.GetKind())
			occupy(q)
		case t.begun:
			running++
			closed = closed || t.starts || job.MakesEpoch(q.GetKind())
			occupy(q)
		}
		if !t.begun && t.step != stepLead {
			begin = append(begin, i)
		}
	}
	if closed || running >= places {
		return begin
	}
	for i, t := range tasks {
		if t.begun || t.step != stepLead {
			continue
		}
		q := t.job.GetRequest()
		keys := job.MakesEpoch(q.GetKind())
		if keys && running > 0 || t.refused == refusedRunning {
			break
		}
		if s, ok := slotOf(q); ok {
			if waited[s] = waited[s] || t.refused == refusedActivating; waited[s] || taken[s] && !keyed[s] {
				continue
			}
		}
		if !keys && locked[q.GetEpoch()] {
			continue
		}
		return append(begin, i)
	}
	return begin
}

// full reports whether a failure only means that a party refuses the job because of its concurrent
// sessions.
func full(f *jobv1.Failure) bool {
	return f.GetOutcome() == outcomeRefused && f.GetCheck() == string(rpc.Busy)
}

// progressOf returns the progress of one of the job's parties.
func progressOf(j *coordinatorv1.Job, party int) *coordinatorv1.PartyProgress {
	i := slices.IndexFunc(j.GetParties(), func(p *coordinatorv1.PartyProgress) bool { return int(p.GetParty()) == party })
	return j.GetParties()[i]
}

// observe merges a party's status into a job. The job's state is that of the party furthest behind,
// and at most STORING: the coordinator decides the later states.
func observe(j *coordinatorv1.Job, party int, st *jobv1.SessionStatus, parties uint32) {
	at := progressOf(j, party)
	at.Status, at.Reachable = heard(st, parties), true
	//lodge:check coordinator/result/state [swap=storing=>completed] [run=TestObserve] the word of a
	//  party completes a job
	state := storing
	for _, p := range j.Parties {
		state = min(state, max(preparing, p.GetStatus().GetState()))
	}
	if job.MayFollow(j.State, state) {
		j.State = state
	}
}

// heard sanitises a party's status before it is recorded and shown to every client: sizes are
// bounded, text is valid UTF-8, and only existing parties are named. Unknown fields are dropped.
func heard(st *jobv1.SessionStatus, parties uint32) *jobv1.SessionStatus {
	list := func(named []uint32) (known []uint32) {
		//lodge:check coordinator/heard/list [swap=named[:min(len(named), int(parties))]=>named]
		//  [run=TestWhatIsHeard] a party's list of parties takes any amount of memory
		for _, p := range named[:min(len(named), int(parties))] {
			//lodge:check coordinator/heard/suspects [swap=p < parties=>true] [run=TestWhatIsHeard]
			//  a party suspects an index outside the roster
			if p < parties {
				known = append(known, p)
			}
		}
		return known
	}
	out := &jobv1.SessionStatus{
		Ref: &jobv1.SessionRef{JobId: word(st.GetRef().GetJobId()), Ordinal: st.GetRef().GetOrdinal()}, State: st.GetState(),
		//lodge:check coordinator/heard/digest [swap=st.GetDigest()[:min(len(st.GetDigest()),
		//  64)]=>st.GetDigest()] [run=TestWhatIsHeard] a party's digest takes any amount of memory
		Digest: st.GetDigest()[:min(len(st.GetDigest()), 64)], Epoch: st.GetEpoch(), BatchId: word(st.GetBatchId()), Count: st.GetCount(),
		Started: moment(st.GetStarted()), Ended: moment(st.GetEnded()), Rounds: st.GetRounds(), PeakRssBytes: st.GetPeakRssBytes(),
		KeygenSecurity: word(st.GetKeygenSecurity()), StatisticalSecurityBits: st.GetStatisticalSecurityBits(),
	}
	if g := st.GetProgress(); g != nil {
		out.Progress = &jobv1.Progress{
			Round: word(g.GetRound()), RoundIndex: g.GetRoundIndex(), WaitingFor: list(g.GetWaitingFor()), Since: moment(g.GetSince()),
			SentBytes: g.GetSentBytes(), ReceivedBytes: g.GetReceivedBytes(), RoundReceivedBytes: g.GetRoundReceivedBytes(),
			RoundLimitBytes: g.GetRoundLimitBytes(), WorkDone: g.GetWorkDone(), WorkTotal: g.GetWorkTotal(),
		}
	}
	if f := st.GetFailure(); f != nil {
		out.Failure = &jobv1.Failure{
			Outcome: word(f.GetOutcome()), Round: word(f.GetRound()), RoundIndex: f.GetRoundIndex(), Check: word(f.GetCheck()),
			Reason: text(f.GetReason(), maxReason), Suspects: list(f.GetSuspects()), Reporter: f.GetReporter(),
		}
		//lodge:check coordinator/heard/blame [drop=b.GetParty() < parties] [run=TestWhatIsHeard] a
		//  party blames an index outside the roster
		if b := f.GetBlame(); b != nil && f.GetOutcome() == outcomeBlame && b.GetParty() < parties {
			out.Failure.Blame = &jobv1.Blame{Party: b.GetParty(), Check: word(b.GetCheck()), Reason: text(b.GetReason(), maxReason)}
		}
	}
	return out
}

// word returns a name of bounded length.
func word(s string) string { return text(s, 100) }

// text returns at most most bytes of s as valid UTF-8.
//
//lodge:check coordinator/heard/text [swap=s[:min(len(s), most)]=>s] [run=TestWhatIsHeard] a party's text takes any amount of memory
//lodge:check coordinator/heard/utf8 [swap=strings.ToValidUTF8(s[:min(len(s), most)], "?")=>s[:min(len(s), most)]] [run=TestWhatIsHeard] a party's invalid text makes the job's record unwritable
func text(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "?") }

// moment returns t, or nil if t is not a valid time.
func moment(t *timestamppb.Timestamp) *timestamppb.Timestamp {
	//lodge:check coordinator/heard/time [swap=!t.IsValid()=>t == nil] [run=TestWhatIsHeard] a
	//  party's invalid time is stored and shown
	if !t.IsValid() {
		return nil
	}
	return &timestamppb.Timestamp{Seconds: t.GetSeconds(), Nanos: t.GetNanos()}
}

// waiting describes why the sessions of a job wait, according to the party that is furthest
// behind; empty if they do not wait.
func waiting(parties []*coordinatorv1.PartyProgress, now time.Time) string {
	var behind *jobv1.Progress
	for _, p := range parties {
		if !p.GetReachable() {
			return fmt.Sprintf("party %d (%s) cannot be reached", p.GetParty(), p.GetName())
		}
		g := p.GetStatus().GetProgress()
		if p.GetStatus().GetState() >= storing || len(g.GetWaitingFor()) == 0 {
			continue
		}
		if behind == nil || g.GetRoundIndex() < behind.GetRoundIndex() ||
			g.GetRoundIndex() == behind.GetRoundIndex() && g.GetSince().AsTime().Before(behind.GetSince().AsTime()) {
			behind = g
		}
	}
	if behind == nil {
		return ""
	}
	return fmt.Sprintf("waiting for %s, round %d (%s), %d s", named(behind.GetWaitingFor()), behind.GetRoundIndex(), behind.GetRound(),
		max(0, int(now.Sub(behind.GetSince().AsTime()).Seconds())))
}

// named returns the parties as text, such as "party 1" or "parties 0, 2".
func named(parties []uint32) string {
	words := make([]string, len(parties))
	for i, p := range parties {
		words[i] = fmt.Sprint(p)
	}
	if len(words) == 1 {
		return "party " + words[0]
	}
	return "parties " + strings.Join(words, ", ")
}

// agreed returns how the results of the parties differ, or nil if all stored the same result.
func agreed(parties []*coordinatorv1.PartyProgress) *jobv1.Failure {
	first := parties[0].GetStatus()
	for _, p := range parties {
		s := p.GetStatus()
		switch {
		//lodge:check coordinator/result/form [run=TestAgreed] a result without a digest is accepted
		case len(s.GetDigest()) != 32:
			return &jobv1.Failure{Outcome: outcomeAbort, Check: "result", Suspects: []uint32{p.GetParty()},
				Reason: fmt.Sprintf("party %d (%s) reports a result without a digest", p.GetParty(), p.GetName())}
		//lodge:check coordinator/result/digest [drop=string(s.GetDigest()) !=
		//  string(first.GetDigest())] [run=TestAgreed] parties with different results complete a
		//  job
		//lodge:check coordinator/result/epoch [drop=s.GetEpoch() != first.GetEpoch()]
		//  [run=TestAgreed] parties with results of different epochs complete a job
		//lodge:check coordinator/result/count [drop=s.GetCount() != first.GetCount()]
		//  [run=TestAgreed] parties with different numbers of tuples complete a job
		case string(s.GetDigest()) != string(first.GetDigest()) || s.GetEpoch() != first.GetEpoch() ||
			//lodge:check coordinator/result/batch [run=TestAgreed] parties with differently named
			//  batches complete a job
			s.GetBatchId() != first.GetBatchId() || s.GetCount() != first.GetCount():
			return &jobv1.Failure{Outcome: outcomeAbort, Check: "result",
				Reason: fmt.Sprintf("parties %d and %d report different results; nothing was activated", parties[0].GetParty(), p.GetParty())}
		}
	}
	return nil
}

// ended describes how one party's session of a job ended, as the coordinator saw it.
type ended struct {
	party  int
	name   string
	status *jobv1.SessionStatus // in a final state without a result; nil otherwise
	err    error                // of a call to the party; nil otherwise
	begun  bool                 // whether the session had been started at the party
}

// ok reports whether the party has a result.
func (e ended) ok() bool { return e.status == nil && e.err == nil }

// unreachable reports whether an error means that the party cannot be reached.
func unreachable(err error) bool {
	e := rpc.FromError(err)
	return e != nil && (e.Code == rpc.Unavailable || e.Code == rpc.TimedOut)
}

// failure describes the end; it returns nil if the party has a result.
func (e ended) failure() *jobv1.Failure {
	switch {
	case e.ok():
		return nil
	case e.status != nil && e.status.GetFailure() == nil:
		return &jobv1.Failure{Outcome: outcomeInternal, Reporter: uint32(e.party),
			Reason: fmt.Sprintf("party %d (%s) ended its session without saying why", e.party, e.name)}
	case e.status != nil:
		f := proto.CloneOf(e.status.GetFailure())
		switch f.Outcome { // outcomes whose reasons refer to "this party"
		case outcomeInternal, outcomeCancelled:
			f.Reason = fmt.Sprintf("party %d (%s): %s", e.party, e.name, f.Reason)
		case outcomeRefused:
			f.Reason = fmt.Sprintf("party %d (%s) refuses: %s", e.party, e.name, f.Reason)
		}
		return f
	}
	said := rpc.FromError(e.err)
	f := &jobv1.Failure{Outcome: outcomeRefused, Reporter: uint32(e.party)}
	switch {
	case unreachable(e.err):
		f.Outcome, f.Suspects = outcomeTimeout, []uint32{uint32(e.party)}
		f.Reason = fmt.Sprintf("party %d (%s) cannot be reached: %s; check that it runs and that its certificate matches the roster", e.party, e.name, said.What)
	case said.Code == rpc.Cancelled:
		f.Outcome, f.Reason = outcomeCancelled, said.What
	case said.Code == rpc.NotFound && e.begun:
		f.Outcome, f.Suspects = outcomeAbort, []uint32{uint32(e.party)}
		f.Reason = fmt.Sprintf("party %d (%s) has lost its session, as when it restarts", e.party, e.name)
	default:
		f.Check = string(said.Code)
		f.Reason = fmt.Sprintf("party %d (%s) refuses: %s", e.party, e.name, said.What)
		if said.Next != "" {
			f.Reason += " (" + said.Next + ")"
		}
	}
	return f
}

// weights orders outcomes by how much they say about the cause. A party blamed for certain comes
// first, then failed checks, then parties that refuse, fail or are unreachable, then timeouts, then
// consequences of other failures.
var weights = map[string]int{
	outcomePeerAbort: 2, outcomeCancelled: 3, outcomeTimeout: 4, outcomeRefused: 5, outcomeInternal: 5, outcomeAbort: 6, outcomeBlame: 7,
}

func (e ended) weight() int {
	switch {
	case e.ok():
		return 0
	case e.err != nil && rpc.FromError(e.err).Code == rpc.Cancelled:
		return 1 // the coordinator gave up
	case e.err != nil:
		return weights[outcomeRefused]
	}
	return max(2, weights[e.failure().GetOutcome()])
}

// verdict returns how a job ends given the ends of its sessions; it returns nil if every party has
// a result. If parties blame different parties, verdict names the party with the most votes and
// reports the others.
func verdict(ends []ended) (jobv1.JobState, *jobv1.Failure) {
	var worst *ended
	votes := map[uint32][]uint32{} // the parties that blame a party
	for i, e := range ends {
		if worst == nil || e.weight() > worst.weight() {
			worst = &ends[i]
		}
		if f := e.failure(); f.GetBlame() != nil {
			votes[f.GetBlame().GetParty()] = append(votes[f.GetBlame().GetParty()], uint32(e.party))
		}
	}
	if worst == nil || worst.ok() {
		return completed, nil
	}
	for _, e := range ends { // the most votes, then the lowest index
		f := e.failure()
		if f.GetBlame() == nil || worst.weight() != e.weight() {
			continue
		}
		now, best := f.GetBlame().GetParty(), worst.failure().GetBlame().GetParty()
		if len(votes[now]) > len(votes[best]) || len(votes[now]) == len(votes[best]) && now < best {
			worst = &e
		}
	}
	f := worst.failure()
	if f.GetBlame() != nil {
		for _, party := range slices.Sorted(maps.Keys(votes)) {
			if by := votes[party]; party != f.GetBlame().GetParty() {
				slices.Sort(by)
				f.Reason += fmt.Sprintf("; according to %s it is party %d", named(by), party)
			}
		}
	}
	state := failed
	if worst.status != nil && f.GetOutcome() == outcomeTimeout {
		state = timedOut
	}
	return state, f
}
