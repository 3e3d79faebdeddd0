package evidence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/exchange"
)

// What is proved by digests and signatures alone.

// equivocation: nobody signs two broadcasts of one name in a round of a session. That they are of a session, whose id has a
// nonce of the culprit's, and not of its prelude, matters: a party that restarts may run the prelude of a spec again.
func (r *referee) equivocation() (check, reason string, err error) {
	if len(r.list) != 2 || len(r.history) > 0 {
		return "", "", unreadable("not two messages alone")
	}
	a, b := r.list[0], r.list[1]
	switch {
	case len(r.st.GetMessages()[1].GetSignature()) == 0 || a.From != b.From || a.Round != b.Round || a.Name != b.Name:
		return "", "", unproven("the messages are not two versions of one")
	case a.Digest == b.Digest:
		return "", "", unproven("both versions of %s are the same", a.Name)
	}
	return round.CheckEcho, "has signed two versions of " + a.Name, nil
}

// wrongOpening: nobody opens something else than it committed to. The commitment is the last of the history, as there is
// nothing between the rounds of a step.
func (r *referee) wrongOpening() (check, reason string, err error) {
	if len(r.list) != 2 || len(r.history) == 0 {
		return "", "", unreadable("not an opening and a commitment")
	}
	open, commit, last := r.list[0], r.list[1], r.history[len(r.history)-1]
	step, ok := strings.CutSuffix(open.Name, round.OpenName(""))
	switch {
	case !ok || commit.Name != round.CommitName(step) || commit.From != open.From || commit.Round != sent(last):
		return "", "", unproven("%s of round %d does not open %s of round %d", open.Name, open.Round, commit.Name, commit.Round)
	case open.Round != r.next(last):
		return "", "", unproven("%s does not come in the round after %s", open.Name, commit.Name)
	case commit.Digest != last.Digests[commit.From] || last.Name != commit.Name:
		return "", "", unproven("the commitment is not the one that all parties have")
	}
	c, err := r.whole(1, len(round.Digest{}))
	switch {
	case err != nil:
		return "", "", err
	case len(c) != len(round.Digest{}):
		return "", "", unproven("a commitment of %d bytes", len(c))
	case round.Digest(c) == round.Commitment(r.session, step, open.From, open.Digest):
		return "", "", unproven("the opening is what was committed to")
	}
	return round.CheckCommitment, "opening does not match the commitment of " + step, nil
}

// next is the round after that of an agreement, as signatures count: with three or more parties there is an echo between.
func (r *referee) next(a round.Agreement) uint32 {
	if len(r.who.Keys) == 2 {
		return sent(a) + 1
	}
	return sent(a) + 2
}

// falseEcho: nobody reports a broadcast whose signature it has not checked. The signature is over the transcript that the echo
// has, as the broadcasts of one round come into it together.
func (r *referee) falseEcho() (check, reason string, err error) {
	echo := r.list[0]
	if len(r.list) != 1 || len(r.history) > 0 || echo.Name != round.EchoName || len(r.st.GetNames()) == 0 {
		return "", "", unreadable("not an echo alone")
	}
	names := r.st.GetNames()
	if len(names) > maxNames || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) < len(names) || names[0] == "" {
		return "", "", unreadable("names of broadcasts that no round has")
	}
	b, err := r.whole(0, (len(names)*len(r.who.Keys)+1)*echoEntry)
	if err != nil {
		return "", "", err
	}
	list, err := round.Reports(b, names, len(r.who.Keys), signatureSize)
	if err != nil {
		return "", "", unproven("an echo of other broadcasts: %v", err)
	}
	for _, report := range list {
		if err := r.ctx.Err(); err != nil {
			return "", "", err
		}
		if (report.Digest == round.Digest{}) {
			continue // that there was none is nothing that anybody signs
		}
		e := exchange.Envelope{
			Protocol: echo.Protocol, Version: echo.Version, Session: echo.Session, Round: echo.Round - 1, Name: report.Name,
			From: report.About, To: round.All, Transcript: echo.Transcript, Digest: report.Digest,
		}
		if !e.Verify(r.who.Keys[report.About], report.Signature) {
			return round.CheckEcho, fmt.Sprintf("reports a %s of %s that this has not signed", report.Name, r.who.Names[report.About]), nil
		}
	}
	return "", "", unproven("all that the echo reports is signed")
}

// maxNames bounds the names of the broadcasts of one round.
const maxNames = 16

// signatureSize is the length of a signature, and echoEntry of what an echo has of one broadcast.
const (
	signatureSize = 64
	echoEntry     = len(round.Digest{}) + signatureSize
)
