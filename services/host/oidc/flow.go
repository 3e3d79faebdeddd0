package oidc

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/secretfile"
)

// FlowTime is how long a sign-in at the issuer may take.
const FlowTime = 10 * time.Minute

// maxTicket limits the ticket of a sign-in in bytes.
const maxTicket = 1 << 10

// FlowOptions configure sign-in with the issuer of a verifier.
type FlowOptions struct {
	Redirect   string   // address to which the issuer sends the browser back
	SecretFile string   // file with the client's secret; empty for a public client
	Scopes     []string // in addition to openid
}

// Flow signs browsers in with the authorisation-code flow (OpenID Connect Core 1.0, section 3.1)
// and PKCE (RFC 7636). The client is the audience of the verifier. ID tokens are verified like
// bearer tokens. Methods are safe for concurrent use.
type Flow struct {
	verifier *Verifier
	opts     FlowOptions
	secret   string
	tickets  cipher.AEAD

	mu       sync.Mutex
	endpoint oauth2.Endpoint // empty until discovery has succeeded
	tried    time.Time       // when the last discovery began
}

// NewFlow returns a flow. It contacts the issuer when the first browser signs in.
func NewFlow(v *Verifier, o FlowOptions) (*Flow, error) {
	f := &Flow{verifier: v, opts: o}
	if o.SecretFile != "" {
		info, err := os.Stat(o.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("oidc: client secret: %w", err)
		}
		//lodge:check oidc/flow/secret-file [run=TestFlowSecret] other users of the machine can read
		//  the client's secret
		if secretfile.Exposed(info) {
			return nil, fmt.Errorf("oidc: client secret %s can be read by others; chmod 600 it", o.SecretFile)
		}
		b, err := os.ReadFile(o.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("oidc: client secret: %w", err)
		}
		if f.secret = strings.TrimSpace(string(b)); f.secret == "" {
			return nil, fmt.Errorf("oidc: client secret: %s is empty", o.SecretFile)
		}
	}
	var key [32]byte
	rand.Read(key[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	f.tickets, err = cipher.NewGCM(block)
	return f, err
}

// ticket is the state of a sign-in, which the browser keeps, encrypted, while it is at the issuer.
// The server therefore keeps nothing for browsers that have not signed in.
type ticket struct {
	State, Nonce, Verifier string
	Expires                time.Time
}

// Begin returns the address at the issuer to which to send a browser, and a ticket for Finish. The
// caller keeps the ticket in a cookie of that browser.
func (f *Flow) Begin(ctx context.Context) (address, ticketText string, refused *rpc.Error) {
	c, refused := f.config(ctx)
	if refused != nil {
		return "", "", refused
	}
	t := ticket{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Expires: f.verifier.opts.Now().Add(FlowTime)}
	sealed, err := f.seal(t)
	if err != nil {
		return "", "", rpc.Errorf(rpc.Internal, "", "%v", err)
	}
	return c.AuthCodeURL(t.State, gooidc.Nonce(t.Nonce), oauth2.S256ChallengeOption(t.Verifier)), sealed, nil
}

// seal encrypts a ticket.
func (f *Flow) seal(t ticket) (string, error) {
	b, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, f.tickets.NonceSize())
	rand.Read(nonce)
	return base64.RawURLEncoding.EncodeToString(f.tickets.Seal(nonce, nonce, b, nil)), nil
}

// open decrypts a ticket.
func (f *Flow) open(text string) (t ticket, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) > maxTicket || len(b) < f.tickets.NonceSize() {
		return t, false
	}
	n := f.tickets.NonceSize()
	b, err = f.tickets.Open(nil, b[:n], b[n:], nil)
	if err != nil || json.Unmarshal(b, &t) != nil {
		return t, false
	}
	//lodge:check oidc/flow/late [run=TestFlow] a browser completes a sign-in that it began long ago
	if !f.verifier.opts.Now().Before(t.Expires) {
		return t, false
	}
	return t, true
}

// Tokens are the tokens of a sign-in.
type Tokens struct {
	ID      string    // verified ID token
	Subject string    // its subject
	Expires time.Time // its expiry
	Refresh string    // token with which to renew it; may be empty
}

// Finish completes a sign-in: it exchanges the code that the issuer has sent with the browser for
// an ID token, and verifies the token. The state and the ticket show that this browser began the
// sign-in here.
func (f *Flow) Finish(ctx context.Context, state, code, ticketText string) (Tokens, *rpc.Error) {
	t, ok := f.open(ticketText)
	if !ok {
		return Tokens{}, rpc.Errorf(rpc.Unauthenticated, "sign in again", "this browser has not begun a sign-in in the last %s", FlowTime)
	}
	//lodge:check oidc/flow/state [run=TestFlow] a page of another site signs a browser in as another
	//  client
	if subtle.ConstantTimeCompare([]byte(state), []byte(t.State)) != 1 {
		return Tokens{}, rpc.Errorf(rpc.Unauthenticated, "sign in again", "the sign-in was begun elsewhere")
	}
	c, refused := f.config(ctx)
	if refused != nil {
		return Tokens{}, refused
	}
	answer, err := c.Exchange(gooidc.ClientContext(ctx, f.verifier.keys.client), code, oauth2.VerifierOption(t.Verifier))
	if err != nil {
		return Tokens{}, f.failed(err)
	}
	//lodge:check oidc/flow/nonce [swap=t.Nonce=>""] [run=TestFlowNonce] a stolen ID token signs a browser in
	return f.read(ctx, answer, t.Nonce, "")
}

// Refresh returns new tokens for those of an earlier sign-in. It returns an error if the issuer has
// ended the sign-in there.
func (f *Flow) Refresh(ctx context.Context, old Tokens) (Tokens, *rpc.Error) {
	c, refused := f.config(ctx)
	if refused != nil {
		return Tokens{}, refused
	}
	ctx = gooidc.ClientContext(ctx, f.verifier.keys.client)
	answer, err := c.TokenSource(ctx, &oauth2.Token{RefreshToken: old.Refresh, Expiry: time.Unix(1, 0)}).Token()
	if err != nil {
		return Tokens{}, f.failed(err)
	}
	fresh, refused := f.read(ctx, answer, "", old.Subject)
	if fresh.Refresh == "" {
		fresh.Refresh = old.Refresh
	}
	return fresh, refused
}

// read verifies the ID token of a response. A nonce or a subject that is not empty must be that of
// the token.
func (f *Flow) read(ctx context.Context, answer *oauth2.Token, nonce, subject string) (Tokens, *rpc.Error) {
	raw, _ := answer.Extra("id_token").(string)
	if raw == "" {
		return Tokens{}, rpc.Errorf(rpc.Unauthenticated, "have the issuer's administrator grant the scope openid", "the issuer %s returned no ID token", f.verifier.Issuer())
	}
	t, refused := f.verifier.Verify(ctx, raw)
	if refused != nil {
		return Tokens{}, refused
	}
	if got, _ := t.Claims["nonce"].(string); nonce != "" && subtle.ConstantTimeCompare([]byte(got), []byte(nonce)) != 1 {
		return Tokens{}, rpc.Errorf(rpc.Unauthenticated, "sign in again", "the ID token is not for this sign-in")
	}
	//lodge:check oidc/flow/subject [run=TestFlowRefresh] a renewed token turns a session into that of
	//  another client
	if subject != "" && t.Subject != subject {
		return Tokens{}, rpc.Errorf(rpc.Unauthenticated, "sign in again", "the renewed ID token has another subject")
	}
	exp, _ := t.Claims["exp"].(float64)
	return Tokens{ID: raw, Subject: t.Subject, Expires: time.Unix(int64(exp), 0), Refresh: answer.RefreshToken}, nil
}

// failed returns the error for a failed request to the token endpoint. It does not show the
// issuer's response, which may repeat the code.
func (f *Flow) failed(err error) *rpc.Error {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response.StatusCode < 500 {
		return rpc.Errorf(rpc.Unauthenticated, "sign in again", "the issuer %s refused the sign-in: %.100q", f.verifier.Issuer(), e.ErrorCode)
	}
	f.verifier.opts.Log.Warn("the token issuer does not answer", "issuer", f.verifier.Issuer(), "error", err)
	return f.unavailable()
}

func (f *Flow) unavailable() *rpc.Error {
	return rpc.Errorf(rpc.Unavailable, "try again, or see that the issuer can be reached from here", "the issuer %s cannot be reached", f.verifier.Issuer())
}

// config returns the client's configuration, with the endpoints that the issuer publishes.
func (f *Flow) config(ctx context.Context) (*oauth2.Config, *rpc.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.endpoint.AuthURL == "" {
		now := f.verifier.opts.Now()
		//lodge:check oidc/flow/discovery [run=TestFlowEndpoints] strangers make the process flood the
		//  issuer with requests
		if since := now.Sub(f.tried); !f.tried.IsZero() && since >= 0 && since < retryEvery {
			return nil, f.unavailable()
		}
		f.tried = now
		ctx, cancel := context.WithTimeout(ctx, fetchTime)
		defer cancel()
		p, err := gooidc.NewProvider(gooidc.ClientContext(ctx, f.verifier.keys.client), f.verifier.Issuer())
		if err != nil {
			f.verifier.opts.Log.Warn("the token issuer cannot be discovered", "issuer", f.verifier.Issuer(), "error", err)
			return nil, f.unavailable()
		}
		e := p.Endpoint()
		//lodge:check oidc/flow/tls [run=TestFlowEndpoints] codes and secrets are sent without TLS
		if !ValidIssuer(strings.SplitN(e.AuthURL, "?", 2)[0]) || !ValidIssuer(e.TokenURL) {
			return nil, rpc.Errorf(rpc.Unavailable, "have the issuer publish https addresses", "the issuer %s publishes addresses that are not https", f.verifier.Issuer())
		}
		f.endpoint = e
	}
	scopes := append([]string{gooidc.ScopeOpenID}, f.opts.Scopes...)
	slices.Sort(scopes)
	return &oauth2.Config{
		ClientID: f.verifier.opts.Audience, ClientSecret: f.secret, Endpoint: f.endpoint, RedirectURL: f.opts.Redirect, Scopes: slices.Compact(scopes),
	}, nil
}
