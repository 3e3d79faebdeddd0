package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/lodge-mpc/lodge/services/host/oidc"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Limits on sessions. The totals are in the configuration.
const (
	sessionsOne = 32 // sessions of one identity
	callsOne    = 32 // running requests and streams of one session
	callRate    = 50 // requests per second of a session, and at once
	callBurst   = 200
)

// sweepEvery is the interval at which sessions are checked whose browsers request nothing.
const sweepEvery = 2 * time.Second

// renewBefore is how long before its token expires a session is renewed at the issuer.
const renewBefore = time.Minute

// secretBytes is the length of the secrets in cookies and links.
const secretBytes = 32

// digest identifies a secret in memory, where the secret itself is not kept.
type digest [sha256.Size]byte

// newSecret returns a secret and its digest.
func newSecret() (string, digest) {
	b := make([]byte, secretBytes)
	rand.Read(b)
	text := base64.RawURLEncoding.EncodeToString(b)
	return text, digestOf(text)
}

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// way is how a browser signed in.
type way string

const (
	byCertificate way = "certificate"
	byOIDC        way = "oidc"
	byLink        way = "link"
)

// session is a browser that is signed in. It holds the proof of its identity, which is verified
// again for every request.
type session struct {
	way   way
	name  string // of the identity
	ends  time.Time
	calls *rate.Limiter

	ctx context.Context // done when the session has ended
	end context.CancelFunc

	mu      sync.Mutex
	proof   rpc.Proof
	tokens  oidc.Tokens // of sign-in at the issuer
	running int         // requests and streams
}

// holds returns the proof of the session's identity.
func (s *session) holds() rpc.Proof {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proof
}

// until returns when the session ends if nothing else ends it.
func (s *session) until() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := s.ends
	if t := s.proof.Until(); !t.IsZero() && t.Before(end) {
		end = t
	}
	if t := s.tokens.Expires; s.tokens.Refresh == "" && !t.IsZero() && t.Before(end) {
		end = t
	}
	return end
}

// sessions holds the signed-in browsers.
type sessions struct {
	most   int // sessions
	calls  int // running requests and streams
	span   time.Duration
	now    func() time.Time
	change func(sessions, running int) // called with the changes of these numbers

	mu      sync.Mutex
	list    map[digest]*session
	running int
}

// errBusy is the error for a limit that is reached.
func errBusy(next, format string, args ...any) *rpc.Error {
	e := rpc.Errorf(rpc.Busy, next, format, args...)
	e.Retry = time.Second
	return e
}

// add adds a session of an identity, and returns its secret.
func (ss *sessions) add(w way, p rpc.Principal, proof rpc.Proof, tokens oidc.Tokens) (string, *session, *rpc.Error) {
	secret, key := newSecret()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	own := 0
	for _, s := range ss.list {
		if s.name == p.Name {
			own++
		}
	}
	//lodge:check console/sessions/one [run=TestTooManySessions] one identity takes all sessions
	if own >= sessionsOne {
		return "", nil, errBusy("sign out elsewhere", "%s is signed in %d times", p.Name, own)
	}
	//lodge:check console/sessions/all [run=TestTooManySessions] sessions fill the memory
	if len(ss.list) >= ss.most {
		return "", nil, errBusy("sign out elsewhere, or raise console.max_sessions", "%d browsers are signed in", len(ss.list))
	}
	ctx, end := context.WithCancel(context.Background())
	s := &session{
		way: w, name: p.Name, ends: ss.now().Add(ss.span), calls: rate.NewLimiter(callRate, callBurst), ctx: ctx, end: end, proof: proof, tokens: tokens,
	}
	ss.list[key] = s
	ss.change(1, 0)
	return secret, s, nil
}

// find returns the session of a request's cookie, or nil.
func (ss *sessions) find(r *http.Request, cookie string) *session {
	c, err := r.Cookie(cookie)
	if err != nil {
		return nil
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.list[digestOf(c.Value)]
	//lodge:check console/sessions/expired [run=TestSessionEnds] a session never ends
	if s == nil || !ss.now().Before(s.until()) {
		return nil
	}
	return s
}

// stop ends a session, and with it its streams.
func (ss *sessions) stop(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for key, x := range ss.list {
		if x == s {
			delete(ss.list, key)
			ss.change(-1, 0)
		}
	}
	s.end()
}

// all returns the sessions.
func (ss *sessions) all() (list []*session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.list {
		list = append(list, s)
	}
	return list
}

// begin counts a request or stream of a session. The caller calls done once.
func (ss *sessions) begin(s *session) (done func(), refused *rpc.Error) {
	//lodge:check console/sessions/rate [run=TestTooManyRequests] a browser makes the process work
	//  without limit
	if !s.calls.Allow() {
		e := rpc.Errorf(rpc.RateLimited, "wait a moment", "a session may make %d requests a second", callRate)
		e.Retry = time.Second
		return nil, e
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	//lodge:check console/streams/one [run=TestTooManyStreams] one browser takes all streams
	if s.running >= callsOne {
		return nil, errBusy("close other pages", "the session has %d requests running", s.running)
	}
	//lodge:check console/streams/all [run=TestTooManyStreams|TestThousandPages] open pages fill the
	//  memory
	if ss.running >= ss.calls {
		return nil, errBusy("close other pages, or raise console.max_streams", "%d requests of the console run", ss.running)
	}
	s.running++
	ss.running++
	ss.change(0, 1)
	return func() {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
		ss.running--
		ss.change(0, -1)
	}, nil
}

// each calls f for every session from time to time until ctx is done.
func (c *Console) each(ctx context.Context, f func(*session)) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, s := range c.sessions.all() {
			f(s)
		}
	}
}

// sweep ends a session that has expired or whose identity is not valid any more. Its streams end
// too.
func (c *Console) sweep(ctx context.Context, s *session) {
	if _, refused := c.identify(ctx, s); refused == nil && !c.now().Before(s.until()) {
		c.sessions.stop(s)
	}
}

// identify returns the identity of a session now. It ends a session whose identity is not valid any
// more: because its certificate or token has expired, or its authority or issuer is not trusted, or
// the issuer has withdrawn its key.
func (c *Console) identify(ctx context.Context, s *session) (rpc.Principal, *rpc.Error) {
	p, refused := c.opts.Identify(ctx, s.holds())
	//lodge:check console/sessions/revoked [run=TestRevoked] the session of a revoked identity
	//  continues
	if refused != nil && (refused.Code == rpc.Unauthenticated || refused.Code == rpc.Forbidden) {
		c.opts.Log.Info("console session ended", "identity", s.name, "reason", refused.What)
		c.sessions.stop(s)
	}
	return p, refused
}

// renew renews the token of a session that signed in at the issuer, shortly before it expires.
func (c *Console) renew(ctx context.Context, s *session) {
	s.mu.Lock()
	old := s.tokens
	s.mu.Unlock()
	if old.Refresh == "" || c.flow == nil || c.now().Before(old.Expires.Add(-renewBefore)) {
		return
	}
	fresh, refused := c.flow.Refresh(ctx, old)
	switch {
	//lodge:check console/sessions/ended-at-issuer [run=TestIssuerEndsSession] a session continues
	//  that the issuer has ended
	case refused != nil && refused.Code == rpc.Unauthenticated:
		c.opts.Log.Info("console session ended by the issuer", "identity", s.name, "reason", refused.What)
		c.sessions.stop(s)
	case refused == nil:
		s.mu.Lock()
		s.tokens, s.proof = fresh, rpc.TokenProof(fresh.ID)
		s.mu.Unlock()
	}
}
