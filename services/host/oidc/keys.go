package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// Limits on fetching and keeping the issuer's keys.
const (
	fetchTime    = 5 * time.Second  // limit of a fetch of both documents
	waitTime     = 2 * time.Second  // longest wait of a call for a fetch
	refreshEvery = 5 * time.Minute  // age at which keys are fetched again in the background; at twice that age a token waits for the fetch
	retryEvery   = 10 * time.Second // shortest time between two fetches
	staleAfter   = 24 * time.Hour   // age at which keys are no longer trusted
	maxDocument  = 1 << 20          // largest document of the issuer in bytes
	maxKeys      = 64
	minRSA       = 2048 // bits
)

// Reasons why no key verified a token. They bypass go-oidc, which passes on only their text.
var (
	errUnavailable = errors.New("oidc: the issuer's keys are unavailable")
	errUnknownKey  = errors.New("oidc: the issuer has no such key")
	errSignature   = errors.New("oidc: the signature is wrong")
)

type reasonKey struct{}

// keySet caches the issuer's keys.
type keySet struct {
	issuer string
	client *http.Client
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	fetched time.Time     // time of the last successful fetch; zero means never
	failed  bool          // whether the last fetch did
	tried   time.Time     // when the last fetch began
	running chan struct{} // closed when the running fetch has ended; nil if none runs
}

// VerifySignature implements gooidc.KeySet. It checks the algorithm against the list again.
func (k *keySet) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	payload, err := k.verify(ctx, raw)
	if why, ok := ctx.Value(reasonKey{}).(*error); ok {
		*why = err
	}
	return payload, err
}

func (k *keySet) verify(ctx context.Context, raw string) ([]byte, error) {
	token, err := jose.ParseSignedCompact(raw, algorithms)
	if err != nil || len(token.Signatures) != 1 {
		return nil, errSignature
	}
	id := token.Signatures[0].Header.KeyID
	//lodge:check oidc/old [run=TestKeyRotation] a key that the issuer withdrew while no token came
	//  is trusted
	if k.old() {
		k.renew(ctx)
	}
	keys, _ := k.current()
	payload, known := try(token, keys, id)
	if payload == nil && (!known || id == "") { // a named key that is known and fails needs no fetch: names are unique
		var heard bool
		k.renew(ctx)
		keys, heard = k.current()
		if payload, known = try(token, keys, id); payload == nil && !heard {
			return nil, errUnavailable
		}
	}
	switch {
	case payload != nil:
		return payload, nil
	case known:
		return nil, errSignature
	}
	return nil, errUnknownKey
}

// try verifies a token with the keys of its key ID, or with all keys if it names none. known
// reports whether there were any.
func try(token *jose.JSONWebSignature, keys []jose.JSONWebKey, id string) (payload []byte, known bool) {
	for i := range keys {
		//lodge:check oidc/key-name [run=TestTokens|TestServer] a token is verified with another key
		//  than it names
		if id != "" && keys[i].KeyID != id {
			continue
		}
		known = true
		//lodge:check oidc/key-algorithm [run=TestTokens|TestServer] [redundant=each accepted
		//  algorithm has its own type of key] a key is used with another algorithm than it is for
		if keys[i].Algorithm != "" && keys[i].Algorithm != token.Signatures[0].Header.Algorithm {
			continue
		}
		if payload, err := token.Verify(&keys[i]); err == nil {
			return payload, true
		}
	}
	return nil, known
}

// current returns the trusted keys, and whether the last fetch succeeded. It starts a background
// fetch for keys of some age.
func (k *keySet) current() (keys []jose.JSONWebKey, heard bool) {
	k.mu.Lock()
	age := k.now().Sub(k.fetched)
	//lodge:check oidc/stale [drop=age < staleAfter] [run=TestIssuerDown] the keys of an unreachable
	//  issuer are trusted forever
	if !k.fetched.IsZero() && age < staleAfter {
		keys, heard = k.keys, !k.failed && k.running == nil
	}
	k.mu.Unlock()
	//lodge:check oidc/refreshed [run=TestKeyRotation] a withdrawn key stays trusted
	if keys != nil && age > refreshEvery {
		k.refresh()
	}
	return keys, heard
}

// old reports whether the keys are so old that the issuer may have withdrawn one, and a fetch is
// possible now.
func (k *keySet) old() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.fetched.IsZero() && !k.failed && k.now().Sub(k.fetched) > 2*refreshEvery
}

// renew fetches the keys or waits for a running fetch. It starts none shortly after the last one.
func (k *keySet) renew(ctx context.Context) {
	running := k.refresh()
	if running == nil {
		return
	}
	over := time.NewTimer(waitTime)
	defer over.Stop()
	select {
	case <-running:
	case <-over.C:
	case <-ctx.Done():
	}
}

// refresh starts a fetch unless one runs or the last one was moments ago. The returned channel is
// closed when the fetch ends; it is nil if there is none.
func (k *keySet) refresh() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running != nil {
		return k.running
	}
	now := k.now()
	//lodge:check oidc/fetches [drop=since >= 0] [swap=retryEvery=>0]
	//  [run=TestKeyRotation|TestTokens] tokens with unknown keys make the party flood the issuer
	//  with requests
	if since := now.Sub(k.tried); !k.tried.IsZero() && since >= 0 && since < retryEvery {
		return nil
	}
	k.tried, k.running = now, make(chan struct{})
	go k.fetch()
	return k.running
}

// fetch replaces the keys. If it fails, the present keys stay.
func (k *keySet) fetch() {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	keys, err := k.get(ctx)
	if err != nil {
		k.log.Warn("the keys of the token issuer cannot be fetched", "issuer", k.issuer, "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = err != nil
	if err == nil {
		k.keys, k.fetched = keys, k.now()
	}
	close(k.running)
	k.running = nil
}

// get fetches the discovery document and the keys.
func (k *keySet) get(ctx context.Context) ([]jose.JSONWebKey, error) {
	var discovery struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := k.document(ctx, strings.TrimSuffix(k.issuer, "/")+"/.well-known/openid-configuration", &discovery); err != nil {
		return nil, err
	}
	//lodge:check oidc/issuer/itself [run=TestBadIssuers] the keys of another issuer are used
	if discovery.Issuer != k.issuer {
		return nil, fmt.Errorf("oidc: the discovery document names the issuer %.200q", discovery.Issuer)
	}
	//lodge:check oidc/issuer/keys-over-tls [run=TestBadIssuers] keys are fetched without TLS
	if !strings.HasPrefix(discovery.Keys, "https://") {
		return nil, fmt.Errorf("oidc: the keys are at %.200q, which is not https", discovery.Keys)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.document(ctx, discovery.Keys, &set); err != nil {
		return nil, err
	}
	//lodge:check oidc/issuer/keys [run=TestBadIssuers] a key set takes any amount of memory
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("oidc: %d keys; at most %d", len(set.Keys), maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && usable(&key) { // unsupported keys are ignored: RFC 7517, section 5
			keys = append(keys, key)
		}
	}
	//lodge:check oidc/issuer/none [run=TestBadIssuers] an empty key set replaces the known keys
	if len(keys) == 0 {
		return nil, errors.New("oidc: the issuer publishes no key for RS256, ES256 or EdDSA")
	}
	return keys, nil
}

// usable reports whether a key is a public key for one of the accepted algorithms.
func usable(key *jose.JSONWebKey) bool {
	//lodge:check oidc/key/use [drop=key.Use != "" && key.Use != "sig"] [run=TestBadIssuers] a key
	//  for another use signs tokens
	//lodge:check oidc/key/valid [drop=!key.Valid()] [run=TestBadIssuers] [redundant=an invalid key
	//  is rejected when it is parsed] a malformed key is accepted
	if key.Use != "" && key.Use != "sig" || !key.Valid() {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		//lodge:check oidc/key/size [swap=public.N.BitLen() >= minRSA=>public != nil]
		//  [run=TestBadIssuers] a short RSA key is accepted
		return public.N.BitLen() >= minRSA
	case *ecdsa.PublicKey:
		//lodge:check oidc/key/curve [swap=public.Curve == elliptic.P256()=>public.Curve !=
		//  elliptic.P224()] [run=TestBadIssuers|TestTokens] a key of another curve is accepted
		return public.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return true
	}
	//lodge:check oidc/key/other [swap=false=>true] [run=TestBadIssuers] a symmetric key that was
	//  published signs tokens
	return false
}

// document fetches a JSON document of the issuer.
func (k *keySet) document(ctx context.Context, url string, out any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("oidc: %w", err)
	}
	r.Header.Set("Accept", "application/json")
	answer, err := k.client.Do(r)
	if err != nil {
		return fmt.Errorf("oidc: %w", err)
	}
	defer answer.Body.Close()
	//lodge:check oidc/issuer/status [run=TestIssuerDown] an error page of the issuer is read as a
	//  document
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("oidc: %s answers %s", url, answer.Status)
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	switch {
	case err != nil:
		return fmt.Errorf("oidc: %w", err)
	//lodge:check oidc/issuer/document [run=TestBadIssuers] a document takes any amount of memory
	case len(b) > maxDocument:
		return fmt.Errorf("oidc: %s is larger than %d bytes", url, maxDocument)
	case json.Unmarshal(b, out) != nil:
		return fmt.Errorf("oidc: %s is not the expected JSON", url)
	}
	return nil
}
