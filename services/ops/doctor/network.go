package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/disk"
)

const (
	clockWarn = time.Second // it affects leases and tokens
	clockFail = time.Minute // beyond the tolerance for tokens
	slowLink  = 1.25e6      // bytes per second: 10 Mbit/s
	longTrip  = 300 * time.Millisecond
	probeTime = 5 * time.Minute // for all links of a party
)

// network asks all processes for their status, and the parties for their connections.
func (e *examination) network(ctx context.Context) {
	e.asked = Ask(ctx, e.Roster, e.Credentials, e.Dial)
	for _, a := range e.asked {
		e.process(a)
	}
	e.versions()
	for _, a := range e.asked {
		if a.Party >= 0 && a.Status != nil {
			e.links(ctx, a)
		}
	}
}

// process reports the status of a process.
func (e *examination) process(a *Answer) {
	if a.Certificate != nil && a.Name != e.Self {
		e.expiry(a.Name, "served-certificate", a.Certificate)
	}
	if a.Err != nil {
		e.unanswered(a)
		return
	}
	e.ok(a.Name, "reach", "responds at %s, round trip %s", a.Address, a.RoundTrip.Round(10*time.Microsecond))
	s := a.Status
	if !s.GetReady() {
		e.warn(a.Name, "ready", "wait, or check its log", "it is not ready")
	}
	if hash, whose := e.digest(); !bytes.Equal(s.GetRosterHash(), hash) {
		e.fail(a.Name, "roster", "give every process the same roster and restart it", "its roster has the digest %.6x, but the one %s has %.6x", s.GetRosterHash(), whose, hash)
	} else {
		e.ok(a.Name, "roster", "digest %.6x, as %s", hash, whose)
	}
	if s.GetProtocolVersion() != job.ProtocolVersion {
		e.fail(a.Name, "protocol", "run builds with the same protocol version everywhere", "protocol version %d, but %d in this build", s.GetProtocolVersion(), job.ProtocolVersion)
	}
	e.servedPins(a)
	e.clock(a.Name, a.ClockAhead, a.ClockError)
	e.state(a)
}

// digest returns the digest that rosters must have, and its origin: the roster on this machine, or
// the first process that reported one.
func (e *examination) digest() (hash []byte, whose string) {
	if !e.Routes {
		sum := e.Roster.Hash()
		return sum[:], "here"
	}
	for _, a := range e.asked {
		if a.Status != nil {
			return a.Status.GetRosterHash(), "at " + a.Name
		}
	}
	return nil, ""
}

// unanswered reports why a process did not respond.
func (e *examination) unanswered(a *Answer) {
	what := oneLine(a.Err)
	switch {
	case errors.Is(a.Err, &rpc.Error{Code: rpc.Forbidden}) || errors.Is(a.Err, &rpc.Error{Code: rpc.Unauthenticated}):
		e.warn(a.Name, "reach", "", "responds at %s, but rejects this identity: %s", a.Address, what)
	case a.Address == "":
		e.warn(a.Name, "reach", errNowhere.Next, "%s", errNowhere.What)
	case a.Name == e.Self:
		e.warn(a.Name, "reach", "start it, or check that it listens there", "does not respond at %s: %s", a.Address, what)
	default:
		e.fail(a.Name, "reach", "check that it runs, listens there, and that no firewall blocks it", "does not respond at %s: %s", a.Address, what)
	}
}

// servedPins compares the parameter sets that a process pins with those of this build.
func (e *examination) servedPins(a *Answer) {
	good := 0
	for _, pin := range a.Status.GetParams() {
		set, err := plan.Lookup(pin.GetName())
		if err != nil {
			e.warn(a.Name, "params", "compare the builds", "it pins %s, which this build does not have", pin.GetName())
			continue
		}
		if hash := set.Hash; !bytes.Equal(hash[:], pin.GetHash()) {
			e.fail(a.Name, "params", "agree on one build and pin its hash", "it pins %s as %.6x, but this build has %.6x", pin.GetName(), pin.GetHash(), hash)
			continue
		}
		good++
	}
	if good > 0 {
		e.ok(a.Name, "params", "all %d sets that it pins match this build", good)
	}
}

// clock reports the difference between two clocks.
func (e *examination) clock(subject string, ahead, by time.Duration) {
	const next = "synchronise the clocks"
	text := fmt.Sprintf("%s ahead, ± %s", ahead.Round(10*time.Microsecond), by.Round(10*time.Microsecond))
	off := max(0, ahead.Abs()-by)
	e.grade(subject, "clock", next, text, off > clockFail, off > clockWarn)
}

// conduct reports a party's record of cheats and failures.
func (e *examination) conduct(subject string, c *statusv1.Conduct) {
	look := "review them with `lodge accusations list --party " + subject + "`"
	switch {
	case len(c.GetExcluded()) > 0:
		e.fail(subject, "conduct", look+"; remove the party from every roster, or pardon it", "%s", c.GetRefusal())
	case c.GetRefusal() != "":
		e.fail(subject, "conduct", look+", find the cause, and clear them", "%s", c.GetRefusal())
	case c.GetFailures() > 0:
		e.warn(subject, "conduct", look, "%d sessions failed without a named party; %d stop generation", c.GetFailures(), c.GetMaxFailures())
	default:
		e.ok(subject, "conduct", "no party is excluded, and no session failed without a named party")
	}
}

// state reports the state of a running party.
func (e *examination) state(a *Answer) {
	s := a.Status
	if st := s.GetStore(); st != nil {
		switch {
		case st.GetQuarantine() != "":
			e.fail(a.Name, "store", "find out why, stop the party, and leave it with `lodge store quarantine --leave`", "in quarantine: %s", st.GetQuarantine())
		case st.GetFault() != "":
			e.fail(a.Name, "store", "check the disk or the database, and restart the party", "%s", st.GetFault())
		default:
			e.ok(a.Name, "store", "%.4x at generation %d, not in quarantine", st.GetId(), st.GetGeneration())
		}
		if st.GetDiskTotalBytes() > 0 {
			e.room(a.Name, disk.Space{Free: st.GetDiskFreeBytes(), Total: st.GetDiskTotalBytes()})
		}
	}
	if c := s.GetConduct(); c != nil {
		e.conduct(a.Name, c)
	}
	if limit := s.GetMaxMemoryBytes(); limit > 0 {
		text := fmt.Sprintf("%s of %s", size(float64(s.GetRssBytes())), size(float64(limit)))
		if s.GetRssBytes() > limit {
			e.warn(a.Name, "memory", "raise policy.max_memory, or reduce the number of sessions", "%s", text)
		} else {
			e.ok(a.Name, "memory", "%s, %d sessions", text, s.GetActiveSessions())
		}
	}
	if h := s.GetAudit(); h.GetSequence() > 0 {
		e.ok(a.Name, "audit-head", "entry %d, %.12s: keep it on another machine", h.GetSequence(), audit.Hash(h.GetHash()))
	}
}

// versions compares the builds of the processes.
func (e *examination) versions() {
	by := map[string]string{}
	first := ""
	for _, a := range e.asked {
		if a.Status == nil {
			continue
		}
		v := a.Status.GetVersion()
		if first == "" {
			first = v
		}
		if by[v] != "" {
			by[v] += ", "
		}
		by[v] += a.Name
	}
	switch {
	case first == "":
	case len(by) > 1:
		text := ""
		for v, who := range by {
			text += fmt.Sprintf("; %s: %s", who, v)
		}
		e.warn("cluster", "version", "run the same build everywhere", "%s", text[2:])
	case first != e.Version:
		e.warn("cluster", "version", "run doctor from the same build", "all processes run %s, but this is %s", first, e.Version)
	default:
		e.ok("cluster", "version", "all processes run %s", first)
	}
}

// links reports a party's connections to its peers, and lets the party measure them.
func (e *examination) links(ctx context.Context, a *Answer) {
	if a.Status.GetLinks() == nil {
		e.warn(a.Name, "links", "give this client the permission status at "+a.Name, "it does not report its connections")
		return
	}
	measured, err := e.probe(ctx, a)
	for _, l := range a.Status.GetLinks() {
		if l.GetName() == e.Self && e.away(e.Self) {
			continue // already reported as not running
		}
		if s := l.GetState(); s != statusv1.LinkState_LINK_STATE_CONNECTED && !measured[l.GetName()] {
			e.fail(a.Name+" to "+l.GetName(), "link", reconnect(a.Name, l.GetName()), "not connected: %s", linkText(s))
		}
	}
	refused := rpc.FromError(err)
	switch {
	case errors.Is(err, io.EOF):
	case refused.Code == rpc.Forbidden && e.Self != "" && a.Name != e.Self: // only a party's own clients may request this, not a peer
	case refused.Code == rpc.Forbidden:
		e.warn(a.Name, "links", "give this client the permission status at "+a.Name, "%s", refused.What)
	default:
		e.warn(a.Name, "links", refused.Next, "not measured: %s", refused.What)
	}
}

// probe lets a party measure its links. It returns the names of the measured peers, and the error
// that ended the measurement.
func (e *examination) probe(ctx context.Context, a *Answer) (measured map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	measured = map[string]bool{}
	stream, err := statusv1.NewProbeServiceClient(a.Conn).ProbePeers(ctx, &statusv1.ProbePeersRequest{Bytes: e.ProbeBytes})
	for err == nil {
		var r *statusv1.ProbePeersResponse
		if r, err = stream.Recv(); err == nil {
			e.link(a.Name, r)
			measured[r.GetName()] = true
		}
	}
	return measured, err
}

// away reports whether a process did not respond.
func (e *examination) away(name string) bool {
	return slices.ContainsFunc(e.asked, func(a *Answer) bool { return a.Name == name && a.Status == nil })
}

func reconnect(from, to string) string {
	return "see that " + to + " runs, and that " + from + " can connect to it"
}

// link reports a party's measurement of a link.
func (e *examination) link(from string, r *statusv1.ProbePeersResponse) {
	subject := from + " to " + r.GetName()
	if r.GetError() != "" {
		e.fail(subject, "link", reconnect(from, r.GetName()), "%s", r.GetError())
		return
	}
	trip := r.GetRoundTrip().AsDuration()
	text := "round trip " + trip.Round(10*time.Microsecond).String()
	if r.GetSentBytes() > 0 {
		text += fmt.Sprintf(", %s a second (%s sent)", size(r.GetBytesPerSecond()), size(float64(r.GetSentBytes())))
	}
	switch {
	case trip > longTrip:
		e.warn(subject, "link", "a session has about ten rounds, each of which waits for this", "%s", text)
	case r.GetSentBytes() > 0 && r.GetBytesPerSecond() < slowLink:
		e.warn(subject, "link", "docs/measurements/performance.md gives the traffic of a batch; a session ends if a peer is slower than limits.min_rate", "%s", text)
	default:
		e.ok(subject, "link", "%s", text)
	}
	if ahead, by := r.GetClockAhead().AsDuration(), r.GetClockError().AsDuration(); ahead.Abs()-by > clockWarn {
		e.clock(subject, ahead, by)
	}
}

func linkText(s statusv1.LinkState) string {
	switch s {
	case statusv1.LinkState_LINK_STATE_CONNECTING:
		return "still trying"
	case statusv1.LinkState_LINK_STATE_IDLE:
		return "not in use"
	}
	return "the last attempt failed"
}
