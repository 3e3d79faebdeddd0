package round

import "bytes"

// Compare checks that every other party's broadcast of this name in the inbox equals want, a digest
// of a public value that each party computed itself. If one differs, the messages do not show who
// is wrong: the *Abort suspects this party and all parties whose digest differs from its digest.
func Compare(s Session, in Inbox, name, check string, want Digest) error {
	var suspects []Party
	for p := range Party(s.Parties) {
		//lodge:check round/compare [tests=./engine/protocol/triple,./engine/protocol/keygen]
		//  [run=TestCheatsInABatch|TestCheatsAtEvery] parties continue although they computed
		//  different results
		if p != s.Self && !bytes.Equal(in.Bytes(p, name), want[:]) {
			suspects = append(suspects, p)
		}
	}
	if suspects == nil || s.Omits(check) {
		return nil
	}
	all := make([]Party, 0, len(suspects)+1)
	for p := range Party(s.Parties) {
		if p == s.Self || len(suspects) > 0 && p == suspects[0] {
			all = append(all, p)
			if p != s.Self {
				suspects = suspects[1:]
			}
		}
	}
	return &Abort{Check: check, Reason: "parties computed different values of " + name, Suspects: all}
}
