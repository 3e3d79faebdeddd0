package oidc

import (
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func TestTokens(t *testing.T) {
	i := newIssuer(t)
	rs, es, ed := newKey(t, "rs", jose.RS256), newKey(t, "es", jose.ES256), newKey(t, "ed", jose.EdDSA)
	p384, ps := newKey(t, "p384", jose.ES384), newKey(t, "ps", jose.PS256)
	i.publish(rs, es, ed, p384, ps)
	v, clock, log := i.verifier()
	now := clock.now()
	claims := func(change map[string]any) map[string]any { return i.claims(now, change) }
	with := func(id string, k key) key { k.id = id; return k }
	hs256 := func(secret []byte) func(string) []byte {
		return func(signed string) []byte {
			m := hmac.New(sha256.New, secret)
			m.Write([]byte(signed))
			return m.Sum(nil)
		}
	}
	none := func(string) []byte { return nil }
	good := sign(t, rs, claims(nil))
	other := sign(t, rs, claims(map[string]any{"sub": "sub-root"}))
	swapped := strings.Split(good, ".")[0] + "." + strings.Split(other, ".")[1] + "." + strings.Split(good, ".")[2]
	stranger := newKey(t, "rs", jose.RS256)
	for _, c := range []struct {
		name, token string
		refused     string // empty: good
	}{
		{"RS256", good, ""},
		{"ES256", sign(t, es, claims(nil)), ""},
		{"EdDSA", sign(t, ed, claims(nil)), ""},
		{"many audiences", sign(t, es, claims(map[string]any{"aud": []string{"x", audience}})), ""},
		{"no key named", sign(t, with("", es), claims(nil)), ""},
		{"no nbf", sign(t, es, claims(map[string]any{"nbf": nil})), ""},
		{"a clock that is ahead", sign(t, es, claims(map[string]any{"nbf": now.Add(50 * time.Second).Unix()})), ""},
		{"expired", sign(t, es, claims(map[string]any{"exp": now.Add(-time.Second).Unix()})), "it has expired"},
		{"no exp", sign(t, es, claims(map[string]any{"exp": nil})), "has no expiry time"},
		{"not yet valid", sign(t, es, claims(map[string]any{"nbf": now.Add(2 * time.Minute).Unix()})), "not valid yet"},
		{"long not valid", sign(t, es, claims(map[string]any{"nbf": now.Add(time.Hour).Unix()})), "not valid yet"},
		{"wrong issuer", sign(t, es, claims(map[string]any{"iss": "https://other.example"})), "issued by another issuer"},
		{"issuer with a slash", sign(t, es, claims(map[string]any{"iss": i.url() + "/"})), "issued by another issuer"},
		{"no issuer", sign(t, es, claims(map[string]any{"iss": nil})), "issued by another issuer"},
		{"wrong audience", sign(t, es, claims(map[string]any{"aud": "lodge-bob"})), "for another audience"},
		{"no audience", sign(t, es, claims(map[string]any{"aud": nil})), "for another audience"},
		{"no subject", sign(t, es, claims(map[string]any{"sub": nil})), "has no subject"},
		{"long subject", sign(t, es, claims(map[string]any{"sub": strings.Repeat("s", maxSubject+1)})), "has no subject"},
		{"wrong key", sign(t, stranger, claims(nil)), "not signed by the issuer"},
		{"wrong key of another name", sign(t, with("stranger", stranger), claims(nil)), "publishes no such key"},
		{"wrong key of no name", sign(t, with("", stranger), claims(nil)), "not signed by the issuer"},
		{"key of another algorithm", sign(t, with("rs", es), claims(nil)), "not signed by the issuer"},
		{"body of another token", swapped, "not signed by the issuer"},
		{"ES384", sign(t, p384, claims(nil)), "algorithm is not one of"},
		{"PS256", sign(t, ps, claims(nil)), "algorithm is not one of"},
		{"RS512", sign(t, key{"rs", jose.RS512, rs.private}, claims(nil)), "algorithm is not one of"},
		{"none", assemble(t, map[string]string{"alg": "none", "kid": "rs"}, claims(nil), none), "compact form"},
		{"none with a signature", assemble(t, map[string]string{"alg": "none", "kid": "rs"}, claims(nil), hs256(nil)), "algorithm is not one of"},
		{"NONE", assemble(t, map[string]string{"alg": "NONE", "kid": "rs"}, claims(nil), hs256(nil)), "algorithm is not one of"},
		{"HS256 with the public key", assemble(t, map[string]string{"alg": "HS256", "kid": "rs"}, claims(nil), hs256(publicPEM(t, rs))), "algorithm is not one of"},
		{"HS256 with its modulus", assemble(t, map[string]string{"alg": "HS256", "kid": "rs"}, claims(nil), hs256(rs.private.Public().(*rsa.PublicKey).N.Bytes())), "algorithm is not one of"},
		{"no algorithm", assemble(t, map[string]string{"kid": "rs"}, claims(nil), hs256(nil)), "algorithm is not one of"},
		{"a key of its own", assemble(t, map[string]any{"alg": "ES256", "jwk": newKey(t, "own", jose.ES256).public()}, claims(nil), hs256(nil)), "not signed by the issuer"},
		{"unknown critical header", assemble(t, map[string]any{"alg": "RS256", "kid": "rs", "crit": []string{"x"}, "x": 1}, claims(nil), hs256(nil)), "not signed by the issuer"},
		{"no signature", good[:strings.LastIndex(good, ".")+1], "compact form"},
		{"JSON form", `{"payload":"e30","signatures":[]}`, "compact form"},
		{"encrypted form", "a.b.c.d.e", "compact form"},
		{"other text", "secret.secret.secret", "not a JSON Web Token"},
		{"claims of a list", sign(t, es, []string{"x"}), "not a JSON Web Token"},
		{"oversized", sign(t, es, claims(map[string]any{"x": strings.Repeat("secret", rpc.MaxToken)})), "compact form"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, refused := v.Verify(t.Context(), c.token)
			if c.refused == "" {
				if refused != nil || got.Subject != "sub-mpc" || fmt.Sprint(got.Claims["groups"]) != "[mpc]" {
					t.Fatalf("got %+v, %v", got, refused)
				}
				return
			}
			if refused == nil || refused.Code != rpc.Unauthenticated || !strings.Contains(refused.What, c.refused) || refused.Next == "" || got.Subject != "" {
				t.Fatalf("got %+v, %v", got, refused)
			}
			if strings.Contains(refused.Error(), "secret") || strings.Contains(refused.Error(), "sub-") || len(c.token) > 100 && strings.Contains(refused.Error(), strings.Split(c.token, ".")[0]) {
				t.Errorf("the error shows of the token: %v", refused)
			}
		})
	}
	if log.text() != "" {
		t.Errorf("logged %s", log.text())
	}
	if n := i.fetches.Load(); n > 2 { // one at the start; unknown keys within moments of it cause none
		t.Errorf("%d fetches", n)
	}
}

// A new key is fetched when a token names it, at a limited rate. A withdrawn key is trusted only
// for a short time.
func TestKeyRotation(t *testing.T) {
	i := newIssuer(t)
	first, second := newKey(t, "1", jose.ES256), newKey(t, "2", jose.EdDSA)
	i.publish(first)
	v, clock, _ := i.verifier()
	token := func(k key) string { return sign(t, k, i.claims(clock.now(), nil)) }
	verify := func(k key) *rpc.Error {
		_, refused := v.Verify(t.Context(), token(k))
		return refused
	}
	if refused := verify(first); refused != nil {
		t.Fatal(refused)
	}
	i.publish(first, second)
	if refused := verify(second); refused == nil || !strings.Contains(refused.What, "no such key") || i.fetches.Load() != 1 {
		t.Fatalf("moments after a fetch: %v, %d fetches", refused, i.fetches.Load())
	}
	clock.add(retryEvery)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if refused := verify(second); refused != nil {
				t.Error(refused)
			}
		})
	}
	all.Wait()
	if n := i.fetches.Load(); n != 2 {
		t.Errorf("%d fetches", n)
	}
	for range 50 { // tokens with an unknown key cause no further fetches
		clock.add(time.Second)
		if refused := verify(newKey(t, "3", jose.EdDSA)); refused == nil || refused.Code != rpc.Unauthenticated {
			t.Fatal(refused)
		}
	}
	if n := i.fetches.Load(); n > 2+6 {
		t.Errorf("%d fetches in 50 s", n)
	}
	i.publish(second)
	clock.add(refreshEvery + time.Second)
	if refused := verify(first); refused != nil { // still in the cache, which is refreshed in the background
		t.Fatal(refused)
	}
	for deadline := time.Now().Add(5 * time.Second); verify(first) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a key that is gone is believed")
		}
	}
	if refused := verify(second); refused != nil {
		t.Error(refused)
	}
	i.publish(first) // while no token comes
	clock.add(2*refreshEvery + time.Second)
	if refused := verify(second); refused == nil || refused.Code != rpc.Unauthenticated {
		t.Errorf("a key that went while nobody asked: %v", refused)
	}
}

// While the issuer is unreachable, no new key is trusted, and the error gives the reason. Known
// keys continue to work, for a day.
func TestIssuerDown(t *testing.T) {
	i := newIssuer(t)
	k := newKey(t, "1", jose.ES256)
	i.publish(k)
	i.change(func() { i.status = http.StatusServiceUnavailable })
	v, clock, log := i.verifier()
	verify := func(k key) *rpc.Error {
		_, refused := v.Verify(t.Context(), sign(t, k, i.claims(clock.now(), nil)))
		return refused
	}
	down := func(refused *rpc.Error) bool {
		return refused != nil && refused.Code == rpc.Unavailable && strings.Contains(refused.What, "cannot be fetched") && strings.Contains(refused.What, i.url()) && refused.Retry > 0
	}
	if refused := verify(k); !down(refused) {
		t.Fatalf("issuer down at the start: %v", refused)
	}
	if text := log.text(); !strings.Contains(text, "503") {
		t.Errorf("logged %s", text)
	}
	i.change(func() { i.status = http.StatusOK })
	if refused := verify(k); !down(refused) {
		t.Fatalf("moments later: %v", refused)
	}
	clock.add(retryEvery)
	if refused := verify(k); refused != nil {
		t.Fatalf("issuer up: %v", refused)
	}

	i.server.Close()
	for _, step := range []time.Duration{retryEvery, refreshEvery, time.Hour, 22 * time.Hour} {
		clock.add(step)
		if refused := verify(k); refused != nil {
			t.Fatalf("%s after the issuer went down: %v", step, refused)
		}
		if refused := verify(newKey(t, "2", jose.ES256)); !down(refused) {
			t.Fatalf("a new key while the issuer is down: %v", refused)
		}
		_, refused := v.Verify(t.Context(), sign(t, newKey(t, "1", jose.ES256), i.claims(clock.now(), nil)))
		if refused == nil || refused.Code != rpc.Unauthenticated {
			t.Fatalf("a wrong key while the issuer is down: %v", refused)
		}
	}
	clock.add(time.Hour)
	if refused := verify(k); !down(refused) {
		t.Fatalf("after a day: %v", refused)
	}
}

// A slow issuer delays a call only briefly, and a cancelled call does not end the fetch for others.
func TestSlowIssuer(t *testing.T) {
	i := newIssuer(t)
	k := newKey(t, "1", jose.ES256)
	i.publish(k)
	answer := make(chan struct{})
	i.change(func() { i.wait = answer })
	v, clock, _ := i.verifier()
	token := sign(t, k, i.claims(clock.now(), nil))
	start := time.Now()
	if _, refused := v.Verify(t.Context(), token); refused == nil || refused.Code != rpc.Unavailable {
		t.Errorf("got %v", refused)
	}
	if took := time.Since(start); took < waitTime || took > 2*waitTime {
		t.Errorf("held for %s", took)
	}
	close(answer)
	if _, refused := v.Verify(t.Context(), token); refused != nil {
		t.Error(refused)
	}
	if n := i.fetches.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
}

// Invalid responses of an issuer yield no keys.
func TestBadIssuers(t *testing.T) {
	k := newKey(t, "1", jose.RS256)
	small := jose.JSONWebKey{Key: &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 1023), E: 65537}, KeyID: "1"}
	for name, c := range map[string]struct {
		discovery map[string]any
		published any
		want      string // in the log
	}{
		"another issuer":    {discovery: map[string]any{"issuer": "https://other.example"}, want: "names the issuer"},
		"keys without TLS":  {discovery: map[string]any{"jwks_uri": "http://127.0.0.1/keys"}, want: "not https"},
		"keys in a file":    {discovery: map[string]any{"jwks_uri": "file:///etc/keys"}, want: "not https"},
		"keys elsewhere":    {discovery: map[string]any{"jwks_uri": "ELSEWHERE"}, want: "redirection"},
		"no keys":           {published: map[string]any{"keys": []any{}}, want: "no key for"},
		"no set":            {published: []string{"x"}, want: "not the expected JSON"},
		"secret key":        {published: map[string]any{"keys": []any{map[string]any{"kty": "oct", "kid": "1", "k": "c2VjcmV0"}}}, want: "no key for"},
		"private key":       {published: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: k.private, KeyID: "1"}}}, want: "no key for"},
		"encryption key":    {published: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: k.private.Public(), KeyID: "1", Use: "enc"}}}, want: "no key for"},
		"another curve":     {published: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{newKey(t, "1", jose.ES384).public()}}, want: "no key for"},
		"small key":         {published: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{small}}, want: "no key for"},
		"too many keys":     {published: map[string]any{"keys": make([]int, maxKeys+1)}, want: "at most 64"},
		"too large":         {published: strings.Repeat("x", maxDocument), want: "larger than"},
		"unknown key types": {published: map[string]any{"keys": []any{map[string]any{"kty": "PQ"}, 7, nil}}, want: "no key for"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			if c.discovery["jwks_uri"] == "ELSEWHERE" {
				c.discovery["jwks_uri"] = i.url() + "/elsewhere"
			}
			i.publish(k)
			i.change(func() { i.discovery, i.published = c.discovery, c.published })
			v, clock, log := i.verifier()
			_, refused := v.Verify(t.Context(), sign(t, k, i.claims(clock.now(), nil)))
			if refused == nil || refused.Code != rpc.Unavailable {
				t.Errorf("got %v", refused)
			}
			if text := log.text(); !strings.Contains(text, c.want) || len(text) > 1000 {
				t.Errorf("logged %.1000s", text)
			}
		})
	}
}

// An unusable key in a set does not affect the usable keys.
func TestOtherKeysAreLeftOut(t *testing.T) {
	i := newIssuer(t)
	k := newKey(t, "1", jose.ES256)
	i.change(func() {
		i.published = map[string]any{"keys": []any{map[string]any{"kty": "PQ", "kid": "0"}, k.public(), map[string]any{"kty": "oct", "kid": "1", "k": "c2VjcmV0"}}}
	})
	v, clock, _ := i.verifier()
	if _, refused := v.Verify(t.Context(), sign(t, k, i.claims(clock.now(), nil))); refused != nil {
		t.Error(refused)
	}
}

// The issuer's certificate is verified.
func TestIssuerCertificate(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	if i.server.Certificate().Equal(other.server.Certificate()) { // httptest has one certificate: do not use it
		other.caFile = ""
	}
	k := newKey(t, "1", jose.ES256)
	i.publish(k)
	log := &logged{}
	v, err := New(Options{Issuer: i.url(), Audience: audience, CA: other.caFile, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, refused := v.Verify(t.Context(), sign(t, k, i.claims(time.Now(), nil)))
	if refused == nil || refused.Code != rpc.Unavailable || !strings.Contains(log.text(), "certificate") {
		t.Errorf("got %v, logged %s", refused, log.text())
	}
}

func TestOptions(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.pem")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"no TLS":      {Issuer: "http://issuer.example", Audience: "a"},
		"no issuer":   {Audience: "a"},
		"no server":   {Issuer: "https:///realm", Audience: "a"},
		"query":       {Issuer: "https://issuer.example?x=1", Audience: "a"},
		"fragment":    {Issuer: "https://issuer.example/#", Audience: "a"},
		"user":        {Issuer: "https://u:p@issuer.example", Audience: "a"},
		"no audience": {Issuer: "https://issuer.example"},
		"no file":     {Issuer: "https://issuer.example", Audience: "a", CA: filepath.Join(dir, "none")},
		"junk":        {Issuer: "https://issuer.example", Audience: "a", CA: junk},
	} {
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), "oidc: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Options{Issuer: "https://issuer.example", Audience: "a", CA: filepath.Join(dir, "none")}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Every malformed token is rejected without a panic.
func FuzzToken(f *testing.F) {
	i := newIssuer(f)
	k := newKey(f, "1", jose.ES256)
	i.publish(k)
	v, clock, _ := i.verifier()
	f.Add(sign(f, newKey(f, "1", jose.ES256), i.claims(clock.now(), nil)))
	f.Add(assemble(f, map[string]any{"alg": "none"}, i.claims(clock.now(), nil), func(string) []byte { return []byte("x") }))
	f.Add("a.b.c")
	f.Add("")
	f.Fuzz(func(t *testing.T, raw string) {
		if got, refused := v.Verify(t.Context(), raw); refused == nil {
			t.Errorf("%q is %+v", raw, got)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	i := newIssuer(b)
	for _, alg := range algorithms {
		k := newKey(b, "1", alg)
		i.publish(k)
		v, clock, _ := i.verifier()
		token := sign(b, k, i.claims(clock.now(), nil))
		b.Run(string(alg), func(b *testing.B) {
			for b.Loop() {
				if _, refused := v.Verify(b.Context(), token); refused != nil {
					b.Fatal(refused)
				}
			}
		})
	}
}
