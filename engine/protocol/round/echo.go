package round

import (
	"fmt"
	"maps"
	"slices"
)

// Echo broadcast. After a round of broadcasts every party sends all others the digests of the broadcasts
// it received and of its own. They are compared before the round steps, so before anything that depends
// on the broadcasts is sent. With two parties a broadcast has one recipient and no echo is needed.
//
// A report that differs from what this party saw says that its reporter or the party reported about
// lies, not which. Where these are one party, or where the report is about this party, the reporter is
// named for certain, to this party: links deliver what was sent. A proof for others takes two signed
// digests, which the driver holds.

// Conflict is one report that differs from what this party saw.
type Conflict struct {
	Reporter, About Party
	Name            string // of the broadcast
	Seen, Reported  Digest // zero where there was no broadcast
}

const echoName = "echo"

// broadcasts are the digests of one round's broadcasts, by name and party, zero for a party that sends
// none of this name.
type broadcasts map[string][]Digest

func (b broadcasts) names() []string { return slices.Sorted(maps.Keys(b)) }

// set notes a digest; the zero digest only makes the place.
func (b broadcasts) set(parties int, name string, p Party, d Digest) {
	if b[name] == nil {
		b[name] = make([]Digest, parties)
	}
	b[name][p] = d
}

// report is the content of the echo message: all digests, names in ascending order, then parties.
func (b broadcasts) report() []byte {
	var out []byte
	for _, name := range b.names() {
		for _, d := range b[name] {
			out = append(out, d[:]...)
		}
	}
	return out
}

// agreed is Agreed of each name.
func (b broadcasts) agreed(sid Digest) map[string]Digest {
	out := make(map[string]Digest, len(b))
	for name, digests := range b {
		fields := [][]byte{sid[:], []byte(name)}
		for i := range digests {
			fields = append(fields, digests[i][:])
		}
		out[name] = Hash("lodge broadcast", fields...)
	}
	return out
}

// compare checks the reports of all others against b.
func (b broadcasts) compare(self Party, parties int, report func(Party) []byte) error {
	var conflicts []Conflict
	for from := range Party(parties) {
		if from == self {
			continue
		}
		r := report(from)
		if len(r) != len(b)*parties*len(Digest{}) {
			return Malformed(from, errLength)
		}
		for _, name := range b.names() {
			for about, seen := range b[name] {
				reported := Digest(r[:len(seen)])
				r = r[len(seen):]
				if reported != seen {
					conflicts = append(conflicts, Conflict{from, Party(about), name, seen, reported})
				}
			}
		}
	}
	return judge(self, conflicts)
}

// judge names the liar where it is certain, and the suspects otherwise.
func judge(self Party, conflicts []Conflict) error {
	if len(conflicts) == 0 {
		return nil
	}
	abort := &Abort{Check: CheckEcho, Reason: "parties report different broadcasts", Conflicts: conflicts}
	for _, c := range conflicts {
		switch c.About {
		case self:
			return &Blame{Party: c.Reporter, Check: CheckEcho, Reason: fmt.Sprintf("reports another %s than this party sent", c.Name), Cause: abort}
		case c.Reporter:
			return &Blame{Party: c.Reporter, Check: CheckEcho, Reason: fmt.Sprintf("reports another %s of its own than it sent here", c.Name), Cause: abort}
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
