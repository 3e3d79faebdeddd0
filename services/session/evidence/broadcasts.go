package evidence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// Judges of the accusations that need only digests and signatures.

// equivocation judges two signed broadcasts of one name in one round of a session, which no honest
// party signs. Both must belong to a session, whose identifier contains a nonce of the accused
// party, and not to its prelude: a party that restarts may run the prelude of a spec again.
func (r *referee) equivocation() (check, reason string, err error) {
	//lodge:check evidence/equivocation/two [drop=len(r.list) != 2] [run=TestRefereeOfVersions] a
	//  file with one version crashes the judge
	//lodge:check evidence/equivocation/alone [drop=len(r.history) > 0] [run=TestRefereeOfVersions]
	//  one cheat can be filed many times with an unused history
	if len(r.list) != 2 || len(r.history) > 0 {
		return "", "", unreadable("the accusation must contain exactly two messages")
	}
	a, b := r.list[0], r.list[1]
	switch {
	//lodge:check evidence/equivocation/signed [drop=len(r.st.GetMessages()[1].GetSignature()) == 0]
	//  [run=TestRefereeOfVersions] the second version needs no signature
	//lodge:check evidence/equivocation/sender [drop=a.From != b.From] [run=TestRefereeOfVersions]
	//  messages of two parties count as equivocation
	//lodge:check evidence/equivocation/round [drop=a.Round != b.Round] [run=TestRefereeOfVersions]
	//  messages of two rounds count as equivocation
	//lodge:check evidence/equivocation/name [drop=a.Name != b.Name] [run=TestRefereeOfVersions]
	//  messages of two names count as equivocation
	case len(r.st.GetMessages()[1].GetSignature()) == 0 || a.From != b.From || a.Round != b.Round || a.Name != b.Name:
		return "", "", unproven("the messages are not two versions of one message")
	//lodge:check evidence/equivocation/differs [run=TestRefereeOfVersions] the same message twice
	//  counts as equivocation
	case a.Digest == b.Digest:
		return "", "", unproven("both versions of %s are the same", a.Name)
	}
	return round.CheckEcho, "has signed two versions of " + a.Name, nil
}

// wrongOpening judges an opening that differs from its commitment, which no honest party sends. The
// commitment is the last entry of the history, because no round lies between the rounds of a step.
func (r *referee) wrongOpening() (check, reason string, err error) {
	//lodge:check evidence/opening/heard [drop=len(r.history) == 0] [run=TestRefereeOfOpenings] an
	//  opening is judged without the commitment that all parties heard
	if len(r.list) != 2 || len(r.history) == 0 {
		return "", "", unreadable("not an opening and a commitment")
	}
	open, commit, last := r.list[0], r.list[1], r.history[len(r.history)-1]
	step, ok := strings.CutSuffix(open.Name, round.OpenName(""))
	switch {
	//lodge:check evidence/opening/is-one [drop=!ok] [run=TestRefereeOfOpenings] another message is
	//  judged as an opening
	//lodge:check evidence/opening/step [drop=commit.Name != round.CommitName(step)]
	//  [run=TestRefereeOfOpenings] an opening is judged against the commitment of another step
	//lodge:check evidence/opening/sender [drop=commit.From != open.From]
	//  [run=TestRefereeOfOpenings] an opening is judged against another party's commitment
	//lodge:check evidence/opening/round-of-commitment [drop=commit.Round != sent(last)]
	//  [run=TestRefereeOfOpenings] an opening is judged against a commitment of another round
	case !ok || commit.Name != round.CommitName(step) || commit.From != open.From || commit.Round != sent(last):
		return "", "", unproven("%s of round %d does not open %s of round %d", open.Name, open.Round, commit.Name, commit.Round)
	//lodge:check evidence/opening/round [run=TestRefereeOfOpenings] an opening of a later round is
	//  judged
	case open.Round != r.next(last):
		return "", "", unproven("%s is not sent in the round after %s", open.Name, commit.Name)
	//lodge:check evidence/opening/commitment [drop=commit.Digest != last.Digests[commit.From]]
	//  [run=TestRefereeOfOpenings] an opening is judged against a commitment that not all parties
	//  heard
	//lodge:check evidence/opening/name-of-commitment [drop=last.Name != commit.Name]
	//  [run=TestRefereeOfOpenings] an opening is judged against a broadcast of another name
	case commit.Digest != last.Digests[commit.From] || last.Name != commit.Name:
		return "", "", unproven("the commitment differs from the one in the history")
	}
	c, err := r.whole(1, len(round.Digest{}))
	switch {
	case err != nil:
		return "", "", err
	//lodge:check evidence/opening/length [run=TestRefereeOfOpenings] a commitment of the wrong
	//  length is judged
	case len(c) != len(round.Digest{}):
		return "", "", unproven("a commitment of %d bytes", len(c))
	//lodge:check evidence/opening/wrong [run=TestRefereeOfOpenings] a party that opened its
	//  commitment correctly is convicted
	case round.Digest(c) == round.Commitment(r.session, step, open.From, open.Digest):
		return "", "", unproven("the opening matches the commitment")
	}
	return round.CheckCommitment, "opening does not match the commitment of " + step, nil
}

// next returns the round after that of an agreement, as numbered in signatures: with three or more
// parties there is an echo round between them.
func (r *referee) next(a round.Agreement) uint32 {
	if len(r.who.Keys) == 2 {
		return sent(a) + 1
	}
	return sent(a) + 2
}

// falseEcho judges an echo that reports a broadcast without a valid signature. An honest party has
// checked the signature of every broadcast that it reports. The reported signature covers the same
// transcript as the echo, because the broadcasts of one round enter the transcript together.
func (r *referee) falseEcho() (check, reason string, err error) {
	echo := r.list[0]
	//lodge:check evidence/echo/alone [drop=len(r.list) != 1] [run=TestRefereeOfEchoes] one cheat
	//  can be filed many times with unused messages
	//lodge:check evidence/echo/is-one [drop=echo.Name != round.EchoName] [run=TestRefereeOfEchoes]
	//  another message is judged as an echo
	//lodge:check evidence/echo/no-names [drop=len(r.st.GetNames()) == 0] [run=TestReferee] an echo
	//  about nothing is judged
	if len(r.list) != 1 || len(r.history) > 0 || echo.Name != round.EchoName || len(r.st.GetNames()) == 0 {
		return "", "", unreadable("the accusation must contain exactly one echo")
	}
	names := r.st.GetNames()
	//lodge:check evidence/echo/names [drop=len(names) > maxNames] [run=TestNames] an echo has any
	//  number of names
	//lodge:check evidence/echo/names-in-order [drop=!slices.IsSorted(names)] [run=TestNames] an
	//  echo is judged with its names out of order
	//lodge:check evidence/echo/names-once [drop=len(slices.Compact(slices.Clone(names))) <
	//  len(names)] [run=TestNames] an echo is judged with repeated names
	if len(names) > maxNames || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) < len(names) || names[0] == "" {
		return "", "", unreadable("names that the broadcasts of one round cannot have")
	}
	b, err := r.whole(0, (len(names)*len(r.who.Keys)+1)*echoEntry)
	if err != nil {
		return "", "", err
	}
	list, err := round.Reports(b, names, len(r.who.Keys), signatureSize)
	//lodge:check evidence/echo/reports [run=TestRefereeOfEchoes] [redundant=without reports there
	//  is nothing to judge] an echo is judged with names that it was not made for
	if err != nil {
		return "", "", unproven("the echo does not match the names: %v", err)
	}
	for _, report := range list {
		if err := r.ctx.Err(); err != nil {
			return "", "", err
		}
		//lodge:check evidence/echo/nothing [run=TestRefereeOfEchoes] a party that reports that it
		//  heard nothing is convicted
		if (report.Digest == round.Digest{}) {
			continue // an absent broadcast has no signature
		}
		e := exchange.Envelope{
			Protocol: echo.Protocol, Version: echo.Version, Session: echo.Session, Round: echo.Round - 1, Name: report.Name,
			From: report.About, To: round.All, Transcript: echo.Transcript, Digest: report.Digest,
		}
		//lodge:check evidence/echo/signed [swap=!e.Verify(r.who.Keys[report.About],
		//  report.Signature)=>e.Name != ""] [run=TestRefereeOfEchoes] a party that reports a signed
		//  version is convicted
		if !e.Verify(r.who.Keys[report.About], report.Signature) {
			return round.CheckEcho, fmt.Sprintf("reports a %s of %s that its sender has not signed", report.Name, r.who.Names[report.About]), nil
		}
	}
	return "", "", unproven("all that the echo reports is signed")
}

// maxNames bounds the number of broadcast names in one round.
const maxNames = 16

// signatureSize is the length of a signature in bytes, and echoEntry that of an echo's entry for
// one broadcast.
const (
	signatureSize = 64
	echoEntry     = len(round.Digest{}) + signatureSize
)
