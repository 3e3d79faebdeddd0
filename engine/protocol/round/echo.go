package round

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Echo broadcast. After a round of broadcasts every party sends all others the digests of the
// broadcasts that it received and sent. The parties compare these digests before the round steps,
// so before any party sends a message that depends on the broadcasts. With two parties a broadcast
// has one recipient and needs no echo.
//
// If a report contradicts the digest that this party saw, either the reporter or the sender of the
// broadcast lies. If the reporter is the sender, or if the report is about this party's broadcast,
// the reporter lies. Otherwise the signatures in the report decide: either the sender signed two
// versions, which proves its fault to anybody, or the reporter cannot show a signature for its
// claim. Without Signatures (in tests) both are suspects. Both are also suspects if two versions
// were signed before the session has its final ID, because an honest party that restarts then
// begins again with the same terms and another nonce.

// Signatures creates and verifies the signatures of broadcasts, which have a fixed length.
type Signatures interface {
	// Size returns the length of a signature in bytes.
	Size() int
	// Sign returns this party's signature of its broadcast b.
	Sign(b Signed) []byte
	// Verify reports whether the signature is that of b.From.
	Verify(b Signed, signature []byte) bool
}

// Signed is a broadcast as its sender signs it. The driver adds the session.
type Signed struct {
	From       Party
	Round      int // as Machine.Round counts
	Name       string
	Transcript Digest // of the chain, up to the round before
	Digest     Digest
}

// Conflict is one report that contradicts the broadcast that this party received.
type Conflict struct {
	Reporter, About Party
	Round           int
	Name            string // of the broadcast
	Transcript      Digest
	Seen, Reported  Digest // zero if there was no broadcast
	// The signatures by About of the two digests. ReportedSignature is nil if it is invalid.
	SeenSignature, ReportedSignature []byte
}

// EchoName is the name of all echoes.
const EchoName = "echo"

// broadcasts holds the broadcasts of one round, by name and party. A party that does not send this
// name has a zero digest.
type broadcasts map[string][]sent

type sent struct {
	digest    Digest
	signature []byte // nil for this party's broadcast
}

func (b broadcasts) names() []string { return slices.Sorted(maps.Keys(b)) }

// set records a digest. A zero digest reserves the entry.
func (b broadcasts) set(parties int, name string, p Party, d Digest, signature []byte) {
	if b[name] == nil {
		b[name] = make([]sent, parties)
	}
	b[name][p] = sent{d, signature}
}

// agreed returns Agreed for each name.
func (b broadcasts) agreed(sid Digest) map[string]Digest {
	out := make(map[string]Digest, len(b))
	for name := range b {
		out[name] = Agreed(sid, name, b.digests(name))
	}
	return out
}

// digests returns the digests of one name, by party.
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

// signed returns the broadcast that p would have signed for this digest.
func (e echo) signed(p Party, name string, d Digest) Signed {
	//lodge:check round/echo-signature/round [drop=Round: e.round] [run=TestEcho] a signature of
	//  another round counts as a second version
	//lodge:check round/echo-signature/name [drop=Name: name] [run=TestEcho] a signature of another
	//  message counts as a second version
	//lodge:check round/echo-signature/transcript [drop=Transcript: Digest(e.transcript)]
	//  [run=TestEcho] a signature after other broadcasts counts as a second version
	return Signed{From: p, Round: e.round, Name: name, Transcript: Digest(e.transcript), Digest: d}
}

// signatureSize returns the length in bytes of a signature in a report.
func (s Session) signatureSize() int {
	if s.Signatures == nil {
		return 0
	}
	return s.Signatures.Size()
}

// Report is one entry of an echo: the digest of a party's broadcast according to the sender of the
// echo. The digest is zero if there was no broadcast.
type Report struct {
	Name      string
	About     Party
	Digest    Digest
	Signature []byte
}

// Reports decodes an echo about broadcasts of these names, which must be in ascending order, with
// signatures of signatureSize bytes. An echo binds its sender to the names.
func Reports(b []byte, names []string, parties, signatureSize int) ([]Report, error) {
	size := len(Digest{}) + signatureSize
	//lodge:check round/echo-length [swap=len(b) != len(names)*parties*size+len(Digest{})=>len(b) <
	//  len(Digest{}) && parties*size >= 0] [run=TestReports] a report can leave out broadcasts
	if len(b) != len(names)*parties*size+len(Digest{}) {
		return nil, errLength
	}
	//lodge:check round/echo-names [run=TestReports] a report does not say which broadcasts it
	//  covers
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

// report returns the content of the echo message. For each name in ascending order and each party
// it contains the digest of the broadcast and the sender's signature, both zero if there is no
// broadcast. The digest of the names follows at the end.
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

// compare checks the reports of all other parties.
func (e echo) compare(report func(Party) []byte) error {
	var conflicts []Conflict
	for from := range Party(e.session.Parties) {
		if from == e.session.Self {
			continue
		}
		list, err := Reports(report(from), e.broadcasts.names(), e.session.Parties, e.session.signatureSize())
		//lodge:check round/echo-malformed [run=@faults] a malformed report is accepted
		if err != nil {
			return Malformed(from, err)
		}
		for _, r := range list {
			//lodge:check round/echo-compared [run=@faults] conflicting reports of a broadcast go
			//  unnoticed
			if r.Digest != e.broadcasts[r.Name][r.About].digest {
				conflicts = append(conflicts, e.conflict(from, r.About, r.Name, r.Digest, r.Signature))
			}
		}
	}
	return e.judge(conflicts)
}

// conflict records a report that contradicts the digest that this party saw.
func (e echo) conflict(from, about Party, name string, reported Digest, signature []byte) Conflict {
	seen := e.broadcasts[name][about]
	c := Conflict{
		Reporter: from, About: about, Round: e.round, Name: name, Transcript: Digest(e.transcript),
		Seen: seen.digest, Reported: reported, SeenSignature: seen.signature,
	}
	//lodge:check round/echo-signature [drop=s.Verify(e.signed(about, name, reported), signature)]
	//  [run=TestEcho] a party is blamed for a version of a broadcast that it never signed
	if s := e.session.Signatures; s != nil && s.Verify(e.signed(about, name, reported), signature) {
		c.ReportedSignature = signature
	}
	return c
}

// judge blames the lying party if it is certain, and lists the suspects otherwise.
func (e echo) judge(conflicts []Conflict) error {
	//lodge:check keygen/echo [swap=len(conflicts) == 0=>true] [tests=./engine/protocol/keygen]
	//  [run=TestEquivocation] a party can send different proofs to different parties
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
			return blame(c.Reporter, "reports a different %s from the one this party sent", c.Name)
		case c.About == c.Reporter:
			return blame(c.Reporter, "reports a different %s from the one it sent to this party", c.Name)
		case c.ReportedSignature != nil && e.session.Nonces != nil:
			return blame(c.About, "has signed two versions of %s", c.Name)
		case c.ReportedSignature == nil && e.session.Signatures != nil:
			return blame(c.Reporter, "reports a different %s without its sender's signature", c.Name)
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
