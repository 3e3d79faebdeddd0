package round

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// Session is one run of one protocol, as one party sees it. Every commitment, challenge and transcript of the run
// includes its ID.
type Session struct {
	ID      Digest
	Self    Party
	Parties int
	// Nonces are those of the parties that the ID is made of; nil before the prelude has ended.
	Nonces []Digest
	// Secrets are what the driver erases when the run has ended; nil where nobody does.
	Secrets *Secrets
	// Signatures make the echo check name who cheats; nil where the driver has none.
	Signatures Signatures
	// Hooks are the cheats of tests; outside engine/protocol they are empty.
	Hooks byzantine.Hooks
}

// Each wants w from every other party.
func (s Session) Each(w Want) []Want { return Each(s.Self, s.Parties, w) }

// Secrets are what a run holds and must not outlive it, however it ends. What a run hands over as its result is no
// longer among them. A nil *Secrets takes note of nothing.
type Secrets struct {
	mu   sync.Mutex
	list []secret.Wiper
}

// Own has the end of the run erase these.
func (s *Secrets) Own(list ...secret.Wiper) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, list...)
}

// Wipe erases everything. No round of the run may be running.
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

// check reports an error in a session made by the caller.
func (s Session) check() error {
	if s.Parties < 2 || s.Self < 0 || int(s.Self) >= s.Parties {
		return errors.New("round: session without this party or without peers")
	}
	return nil
}

// Terms are what the parties of a session must hold in common before it begins.
type Terms struct {
	Version  uint64
	Protocol string
	Params   Digest // of the parameter instance: set, field, bounds, sizes
	Roster   Digest // of the ordered parties and their keys
	Epoch    uint64 // of the key that is used or made
	Job      Digest // of the job's description
}

// ID names the session before the parties' nonces are known. It is only good for Prelude.
func (t Terms) ID() Digest {
	return Hash("lodge terms", Uint(t.Version), []byte(t.Protocol), t.Params[:], t.Roster[:], Uint(t.Epoch), t.Job[:])
}

const nonceName = "prelude/nonce"

// Prelude is the first chain of a session: every party broadcasts a fresh nonce, and the session's ID
// becomes the hash of the terms and all nonces. No two runs of an honest party share an ID. The session s
// has the ID of the terms; the result has the final one. Parties with other terms end with another ID,
// so nothing that follows succeeds between them.
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
			if nonce = in.Bytes(p, nonceName); len(nonce) != NonceSize {
				return Transition[Session]{}, Malformed(p, errLength)
			}
		}
		copy(nonces[p][:], nonce)
	}
	s := r.Session
	s.ID, s.Nonces = sessionID(r.ID, nonces), nonces
	return Done(s), nil
}

// SessionID is the ID of the session of these terms whose parties, in the order of the roster, have broadcast these nonces.
func SessionID(t Terms, nonces []Digest) Digest { return sessionID(t.ID(), nonces) }

func sessionID(terms Digest, nonces []Digest) Digest {
	fields := [][]byte{terms[:], Uint(uint64(len(nonces)))}
	for i := range nonces {
		fields = append(fields, nonces[i][:])
	}
	return Hash("lodge session", fields...)
}
