package round

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/secret"
)

//lodge:tests binding TestEveryTerm|TestPrelude|TestOther|TestCoin|TestAgreement|TestTranscripts|TestDigest|TestHash

// Session is one run of one protocol, as one party sees it. Every commitment, challenge and
// transcript of the run includes its ID.
type Session struct {
	ID      Digest
	Self    Party
	Parties int
	// Nonces are the parties' nonces, from which the ID is derived. They are nil until the prelude
	// ends.
	Nonces []Digest
	// Secrets collects the secrets that the driver erases when the run ends. It is nil if the
	// driver erases nothing.
	Secrets *Secrets
	// Signatures let the echo check identify the cheating party. They are nil if the driver does
	// not sign messages.
	Signatures Signatures
	// Hooks let tests make a party cheat. They are empty outside engine/protocol.
	Hooks byzantine.Hooks
}

// Each returns one copy of w for every other party.
func (s Session) Each(w Want) []Want { return Each(s.Self, s.Parties, w) }

// Secrets collects values that a run must erase however it ends. Values that a run returns as its
// result are not in the collection. A nil *Secrets ignores all values.
type Secrets struct {
	mu   sync.Mutex
	list []secret.Wiper
}

// Own adds values that are erased at the end of the run.
func (s *Secrets) Own(list ...secret.Wiper) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, list...)
}

// Wipe erases all collected values. No round of the run may be running.
func (s *Secrets) Wipe() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.list {
		w.Wipe()
	}
	s.list = nil
}

// check returns an error if the caller built an invalid session.
func (s Session) check() error {
	if s.Parties < 2 || s.Self < 0 || int(s.Self) >= s.Parties {
		return errors.New("round: session without this party or without peers")
	}
	return nil
}

// Terms are the facts on which the parties of a session must agree before it begins.
type Terms struct {
	Version  uint64
	Protocol string
	Params   Digest // of the parameter instance: set, field, bounds, sizes
	Roster   Digest // of the ordered parties and their keys
	Epoch    uint64 // of the key that the session uses or generates
	Job      Digest // of the job's description
}

// ID identifies the session before the parties' nonces are known. Only Prelude uses it.
func (t Terms) ID() Digest {
	//lodge:check round/terms/version [drop=Uint(t.Version)] [run=@binding] parties with different
	//  versions join one session
	//lodge:check round/terms/protocol [drop=[]byte(t.Protocol)] [run=@binding] a session does not
	//  bind its protocol
	//lodge:check round/terms/params [drop=t.Params[:]] [run=@binding] a session does not bind its
	//  parameters
	//lodge:check round/terms/roster [drop=t.Roster[:]] [run=@binding] a session does not bind its
	//  roster
	//lodge:check round/terms/epoch [drop=Uint(t.Epoch)] [run=@binding] a session does not bind its
	//  epoch
	//lodge:check round/terms/job [drop=t.Job[:]] [run=@binding] a session does not bind its job
	return Hash("lodge terms", Uint(t.Version), []byte(t.Protocol), t.Params[:], t.Roster[:], Uint(t.Epoch), t.Job[:])
}

const nonceName = "prelude/nonce"

// Prelude returns the first chain of a session: every party broadcasts a fresh nonce, and the
// session's ID becomes the hash of the terms and all nonces. No two runs of an honest party share
// an ID. The session s has the ID of the terms; the result has the final ID. Parties with different
// terms derive different IDs, so every later step between them fails.
func Prelude(s Session, random io.Reader) (Transition[Session], error) {
	nonce, err := newNonce(random)
	if err != nil {
		return Transition[Session]{}, err
	}
	return Next(Round[Session](prelude{s, nonce}), Broadcast(nonceName, nonce)), nil
}

type prelude struct {
	Session
	nonce []byte
}

func (r prelude) Wants() []Want {
	return r.Each(Want{Name: nonceName, MaxBytes: NonceSize, Broadcast: true})
}

func (r prelude) Step(_ context.Context, in Inbox) (Transition[Session], error) {
	nonces := make([]Digest, r.Parties)
	for p := range Party(r.Parties) {
		nonce := r.nonce
		if p != r.Self {
			//lodge:check round/session/nonce-length [swap=len(nonce) != NonceSize=>len(nonce) >
			//  NonceSize] [run=@binding|@faults] a truncated nonce is accepted
			if nonce = in.Bytes(p, nonceName); len(nonce) != NonceSize {
				return Transition[Session]{}, Malformed(p, errLength)
			}
		}
		//lodge:check round/session/own-nonce [as=if p != r.Self { copy(nonces[p][:], nonce) }]
		//  [run=@binding|TestPreludeMakes] the session does not depend on the party's own nonce
		copy(nonces[p][:], nonce)
	}
	s := r.Session
	s.ID, s.Nonces = sessionID(r.ID, nonces), nonces
	return Done(s), nil
}

// SessionID returns the ID of the session with these terms and the parties' nonces, in the order of
// the roster.
func SessionID(t Terms, nonces []Digest) Digest { return sessionID(t.ID(), nonces) }

func sessionID(terms Digest, nonces []Digest) Digest {
	//lodge:check round/session/terms [drop=terms[:]] [run=@binding] parties with different terms
	//  join one session
	//lodge:check round/session/parties [drop=Uint(uint64(len(nonces)))] [run=@binding] a session
	//  does not bind its number of parties
	fields := [][]byte{terms[:], Uint(uint64(len(nonces)))}
	//lodge:check round/session/nonces [swap=nonces=>nonces[:1]] [run=@binding] a session depends on
	//  one party's nonce, so an honest party can enter it twice
	for i := range nonces {
		fields = append(fields, nonces[i][:])
	}
	return Hash("lodge session", fields...)
}
