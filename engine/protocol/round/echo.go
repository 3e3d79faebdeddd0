package round

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Echo broadcast. After a round of broadcasts every party sends all others the digests of the broadcasts
// it received and of its own. They are compared before the round steps, so before anything that depends
// on the broadcasts is sent. With two parties a broadcast has one recipient and no echo is needed.
//
// A report that differs from what this party saw says that its reporter or the party reported about
// lies. Where these are one party, or where the report is about this party, the reporter is
// named for certain. Otherwise the signatures decide that go with the digests: the party reported about has signed two
// versions, which proves it to anybody, or the reporter has nothing to show for what it says. Both are suspects without
// Signatures, in tests; and where two versions are signed before the session has an ID of its own: a party that was
// restarted before that begins again, with the same terms and another nonce.

// Signatures are what a driver knows of the signatures of broadcasts. Their length is fixed.
type Signatures interface {
	Size() int
	// Sign gives this party's signature, the one that its broadcast has.
	Sign(b Signed) []byte
	// Verify reports whether a signature is that of b.From.
	Verify(b Signed, signature []byte) bool
}

// Signed is a broadcast as its sender signs it. The session is the driver's.
type Signed struct {
	From       Party
	Round      int // as Machine counts
	Name       string
	Transcript Digest // of the chain, up to the round before
	Digest     Digest
}

// Conflict is one report that differs from what this party saw.
type Conflict struct {
	Reporter, About Party
	Round           int
	Name            string // of the broadcast
	Transcript      Digest
	Seen, Reported  Digest // zero where there was no broadcast
	// The signatures of About that came with these. That of Reported is nil if it is not one.
	SeenSignature, ReportedSignature []byte
}

// EchoName is the name of all echoes.
const EchoName = "echo"

// broadcasts are one round's broadcasts, by name and party; with a zero digest for a party that sends none of this name.
type broadcasts map[string][]sent

type sent struct {
	digest    Digest
	signature []byte // of others
}

func (b broadcasts) names() []string { return slices.Sorted(maps.Keys(b)) }

// set notes a digest; the zero digest only makes the place.
func (b broadcasts) set(parties int, name string, p Party, d Digest, signature []byte) {
	if b[name] == nil {
		b[name] = make([]sent, parties)
	}
	b[name][p] = sent{d, signature}
}

// agreed is Agreed of each name.
func (b broadcasts) agreed(sid Digest) map[string]Digest {
	out := make(map[string]Digest, len(b))
	for name := range b {
		out[name] = Agreed(sid, name, b.digests(name))
	}
	return out
}

// digests are those of one name by party.
func (b broadcasts) digests(name string) []Digest {
	digests := make([]Digest, len(b[name]))
	for p := range digests {
		digests[p] = b[name][p].digest
	}
	return digests
}

// echo is the check of the broadcasts of one round.
type echo struct {
	session    Session
	broadcasts broadcasts
	round      int
	transcript Transcript
}

// signed is a broadcast with this digest, as p would have signed it.
func (e echo) signed(p Party, name string, d Digest) Signed {
	return Signed{From: p, Round: e.round, Name: name, Transcript: Digest(e.transcript), Digest: d}
}

// signatureSize is the length in bytes of a signature in a report.
func (s Session) signatureSize() int {
	if s.Signatures == nil {
		return 0
	}
	return s.Signatures.Size()
}

// Report is one entry of an echo: what its sender says that a party broadcast. The digest is zero where there was nothing.
type Report struct {
	Name      string
	About     Party
	Digest    Digest
	Signature []byte
}

// Reports reads an echo about broadcasts of these names, which are in ascending order, whose signatures have this length. An
// echo binds its sender to the names.
func Reports(b []byte, names []string, parties, signatureSize int) ([]Report, error) {
	size := len(Digest{}) + signatureSize
	if len(b) != len(names)*parties*size+len(Digest{}) {
		return nil, errLength
	}
	if about := namesDigest(names); Digest(b[len(b)-len(about):]) != about {
		return nil, errNames
	}
	var list []Report
	for _, name := range names {
		for p := range Party(parties) {
			list = append(list, Report{name, p, Digest(b[:len(Digest{})]), b[len(Digest{}):size]})
			b = b[size:]
		}
	}
	return list, nil
}

var errNames = errors.New("reports broadcasts of other names")

func namesDigest(names []string) Digest {
	fields := make([][]byte, len(names))
	for i, name := range names {
		fields[i] = []byte(name)
	}
	return Hash("lodge echo names", fields...)
}

// report is the content of the echo message: names in ascending order, then parties; of each broadcast its digest and its
// sender's signature, all zero where there is none; and at the end the digest of the names.
func (e echo) report() []byte {
	var out []byte
	for _, name := range e.broadcasts.names() {
		for p, b := range e.broadcasts[name] {
			out = append(out, b.digest[:]...)
			signatures := e.session.Signatures
			if signatures == nil {
				continue
			}
			place := make([]byte, signatures.Size())
			switch {
			case b.digest == Digest{}:
			case Party(p) == e.session.Self:
				copy(place, signatures.Sign(e.signed(Party(p), name, b.digest)))
			default:
				copy(place, b.signature)
			}
			out = append(out, place...)
		}
	}
	about := namesDigest(e.broadcasts.names())
	return append(out, about[:]...)
}

// compare checks the reports of all others.
func (e echo) compare(report func(Party) []byte) error {
	var conflicts []Conflict
	for from := range Party(e.session.Parties) {
		if from == e.session.Self {
			continue
		}
		list, err := Reports(report(from), e.broadcasts.names(), e.session.Parties, e.session.signatureSize())
		if err != nil {
			return Malformed(from, err)
		}
		for _, r := range list {
			if r.Digest != e.broadcasts[r.Name][r.About].digest {
				conflicts = append(conflicts, e.conflict(from, r.About, r.Name, r.Digest, r.Signature))
			}
		}
	}
	return e.judge(conflicts)
}

// conflict notes a report that differs from what this party saw.
func (e echo) conflict(from, about Party, name string, reported Digest, signature []byte) Conflict {
	seen := e.broadcasts[name][about]
	c := Conflict{
		Reporter: from, About: about, Round: e.round, Name: name, Transcript: Digest(e.transcript),
		Seen: seen.digest, Reported: reported, SeenSignature: seen.signature,
	}
	if s := e.session.Signatures; s != nil && s.Verify(e.signed(about, name, reported), signature) {
		c.ReportedSignature = signature
	}
	return c
}

// judge names the liar where it is certain, and the suspects otherwise.
func (e echo) judge(conflicts []Conflict) error {
	if len(conflicts) == 0 {
		return nil
	}
	abort := &Abort{Check: CheckEcho, Reason: "parties report different broadcasts", Conflicts: conflicts}
	blame := func(p Party, format, name string) error {
		return &Blame{Party: p, Check: CheckEcho, Reason: fmt.Sprintf(format, name), Cause: abort}
	}
	for _, c := range conflicts {
		switch {
		case c.About == e.session.Self:
			return blame(c.Reporter, "reports another %s than this party sent", c.Name)
		case c.About == c.Reporter:
			return blame(c.Reporter, "reports another %s of its own than it sent here", c.Name)
		case c.ReportedSignature != nil && e.session.Nonces != nil:
			return blame(c.About, "has signed two versions of %s", c.Name)
		case c.ReportedSignature == nil && e.session.Signatures != nil:
			return blame(c.Reporter, "reports another %s without its sender's signature", c.Name)
		}
		for _, p := range []Party{c.Reporter, c.About} {
			if !abort.Suspect(p) {
				abort.Suspects = append(abort.Suspects, p)
			}
		}
	}
	slices.Sort(abort.Suspects)
	return abort
}
