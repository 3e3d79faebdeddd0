package round

// Transcript is a running hash over the broadcasts of one chain.
type Transcript Digest

// NewTranscript returns the transcript of a session before its first broadcast.
func NewTranscript(session Digest, parties int) Transcript {
	return Transcript(Hash("lodge transcript", session[:], Uint(uint64(parties))))
}

// With returns t extended by the broadcasts of one name in a round, whose digest is agreed (see
// Agreed). The broadcasts of one round are added in the order of their names.
func (t Transcript) With(round int, name string, agreed Digest) Transcript {
	return Transcript(Hash("lodge transcript round", t[:], Uint(uint64(round)), []byte(name), agreed[:]))
}

// Agreement lists the digests of all parties' broadcasts of one name, as a transcript includes them.
type Agreement struct {
	Round   int
	Name    string
	Digests []Digest // by party
}

// After returns the transcript after these agreements.
func (t Transcript) After(session Digest, list ...Agreement) Transcript {
	for _, a := range list {
		t = t.With(a.Round, a.Name, Agreed(session, a.Name, a.Digests))
	}
	return t
}

// Agreed returns one hash over the broadcasts of one name by all parties. The digests are in the order
// of the roster, and zero for parties that do not send this name.
func Agreed(session Digest, name string, digests []Digest) Digest {
	fields := [][]byte{session[:], []byte(name)}
	for i := range digests {
		fields = append(fields, digests[i][:])
	}
	return Hash("lodge broadcast", fields...)
}
