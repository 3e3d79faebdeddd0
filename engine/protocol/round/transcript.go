package round

// Transcript is a running hash over the broadcasts of one chain.
type Transcript Digest

// NewTranscript returns the transcript of a session before its first broadcast.
func NewTranscript(session Digest, parties int) Transcript {
	//lodge:check round/transcript/session [drop=session[:]] [run=@binding] the transcript does not
	//  bind the session
	//lodge:check round/transcript/parties [drop=Uint(uint64(parties))] [run=@binding] the
	//  transcript does not bind the number of parties
	return Transcript(Hash("lodge transcript", session[:], Uint(uint64(parties))))
}

// With returns t extended by the broadcasts of one name in a round, whose digest is agreed (see
// Agreed). The broadcasts of one round are added in the order of their names.
func (t Transcript) With(round int, name string, agreed Digest) Transcript {
	//lodge:check round/transcript/before [drop=t[:]] [run=@binding|TestChains|TestCommitOpenGives]
	//  the transcript forgets earlier rounds
	//lodge:check round/transcript/round [drop=Uint(uint64(round))]
	//  [run=@binding|TestChains|TestCommitOpenGives] the transcript does not say in which round a
	//  message was sent
	//lodge:check round/transcript/name [drop=[]byte(name)]
	//  [run=@binding|TestChains|TestCommitOpenGives] the transcript does not name its messages
	//lodge:check round/transcript/content [drop=agreed[:]]
	//  [run=@binding|TestChains|TestCommitOpenGives] the transcript does not bind the content of
	//  messages
	return Transcript(Hash("lodge transcript round", t[:], Uint(uint64(round)), []byte(name), agreed[:]))
}

// Agreement lists the digests of all parties' broadcasts of one name, as a transcript includes
// them.
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

// Agreed returns one hash over the broadcasts of one name by all parties. The digests are in the
// order of the roster, and zero for parties that do not send this name.
func Agreed(session Digest, name string, digests []Digest) Digest {
	//lodge:check round/agreed/session [drop=session[:]] [run=@binding] challenges do not bind the
	//  session
	//lodge:check round/agreed/name [drop=[]byte(name)] [run=@binding] [redundant=the hashed digests
	//  already bind the names of their messages] challenges do not bind the name of the message
	fields := [][]byte{session[:], []byte(name)}
	//lodge:check round/agreed/parties [swap=digests=>digests[:1]]
	//  [run=@binding|TestChains|TestCommitOpenGives] challenges bind the broadcast of one party
	//  only
	for i := range digests {
		fields = append(fields, digests[i][:])
	}
	return Hash("lodge broadcast", fields...)
}
