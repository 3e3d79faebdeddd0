package round

// Transcript is a running hash over the broadcasts of one chain.
type Transcript Digest

// NewTranscript begins with the session's ID.
func NewTranscript(session Digest, parties int) Transcript {
	return Transcript(Hash("lodge transcript", session[:], Uint(uint64(parties))))
}

// With takes the broadcasts of one name in a round, of which Agreed is the digest. Those of one round are taken in the
// order of their names.
func (t Transcript) With(round int, name string, agreed Digest) Transcript {
	return Transcript(Hash("lodge transcript round", t[:], Uint(uint64(round)), []byte(name), agreed[:]))
}

// Agreement is what all parties have broadcast under one name, as a transcript takes it.
type Agreement struct {
	Round   int
	Name    string
	Digests []Digest // by party
}

// After is the transcript after these agreements.
func (t Transcript) After(session Digest, list ...Agreement) Transcript {
	for _, a := range list {
		t = t.With(a.Round, a.Name, Agreed(session, a.Name, a.Digests))
	}
	return t
}

// Agreed stands for the broadcasts of one name by all parties, whose digests come in the order of the roster, zero for
// those that send none.
func Agreed(session Digest, name string, digests []Digest) Digest {
	fields := [][]byte{session[:], []byte(name)}
	for i := range digests {
		fields = append(fields, digests[i][:])
	}
	return Hash("lodge broadcast", fields...)
}
