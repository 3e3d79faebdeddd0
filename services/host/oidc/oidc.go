// Package oidc verifies bearer tokens of an OpenID Connect issuer: JSON Web Tokens (RFC 7519) whose
// signature, issuer, audience and times are checked with go-oidc, against the keys that the issuer
// publishes (OpenID Connect Discovery 1.0, RFC 7517). It authenticates a token's subject; package
// rpc maps the subject to a client and its permissions.
package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	jose "github.com/go-jose/go-jose/v4"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// algorithms lists the accepted signature algorithms: only asymmetric ones, whatever the issuer
// publishes.
//
//lodge:check oidc/algorithms [swap=jose.EdDSA=>jose.EdDSA, jose.RS512] [run=TestTokens|TestServer] tokens with an unwanted signature algorithm are accepted
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}

// skew is how far the issuer's clock may be ahead. An expired token has no such grace.
const skew = time.Minute

// maxSubject bounds a subject in bytes (OpenID Connect Core 1.0, section 2).
const maxSubject = 255

// Options configure a verifier.
type Options struct {
	Issuer   string           // https URL, exactly as tokens name it
	Audience string           // audience that tokens must name
	CA       string           // PEM file of the authorities of the issuer's certificate; empty means the system's
	Now      func() time.Time // nil means the machine's clock
	Log      *slog.Logger     // nil discards all messages
}

// Verifier implements rpc.Tokens.
type Verifier struct {
	opts     Options
	keys     *keySet
	verifier *gooidc.IDTokenVerifier
}

var _ rpc.Tokens = (*Verifier)(nil)

// ValidIssuer reports whether discovery works for an issuer: an https URL without user, query or
// fragment.
func ValidIssuer(issuer string) bool {
	u, err := url.Parse(issuer)
	//lodge:check oidc/issuer/url [drop=u.Scheme == "https"] [run=TestOptions] the issuer is
	//  contacted without TLS
	//lodge:check oidc/issuer/host [drop=u.Host != ""] [run=TestOptions] an issuer without a host is
	//  accepted
	//lodge:check oidc/issuer/user [drop=u.User == nil] [run=TestOptions] the issuer's URL holds a
	//  password, which messages would show
	//lodge:check oidc/issuer/query [drop=u.RawQuery == ""] [drop=u.Fragment == ""]
	//  [drop=!strings.ContainsAny(issuer, "?#")] [run=TestOptions] one issuer has several names
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && !strings.ContainsAny(issuer, "?#")
}

// New returns a verifier and starts to fetch the issuer's keys. It does not wait for them: the
// issuer may be unavailable when a process starts, and callers with certificates do not need it.
func New(o Options) (*Verifier, error) {
	if !ValidIssuer(o.Issuer) {
		return nil, fmt.Errorf("oidc: issuer %q is not an https URL without query", o.Issuer)
	}
	//lodge:check oidc/no-audience [run=TestOptions] tokens for any audience are accepted
	if o.Audience == "" {
		return nil, errors.New("oidc: no audience: tokens for every audience would be accepted")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	roots, err := authorities(o.CA)
	if err != nil {
		return nil, err
	}
	v := &Verifier{opts: o, keys: &keySet{
		issuer: o.Issuer, log: o.Log, now: o.Now,
		client: &http.Client{
			Timeout: fetchTime,
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment,
				//lodge:check oidc/issuer/certificate [swap=RootCAs: roots=>RootCAs: roots,
				//  InsecureSkipVerify: true] [run=TestIssuerCertificate] the issuer's certificate
				//  is not verified
				TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
				MaxIdleConns:    1, IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				//lodge:check oidc/issuer/redirection
				//  [swap=errors.New("it answers with a redirection; name the issuer where it is")=>nil]
				//  [run=TestBadIssuers] the issuer's keys are fetched from a redirected address
				return errors.New("it answers with a redirection; name the issuer where it is")
			},
		},
	}}
	var names []string
	for _, a := range algorithms {
		names = append(names, string(a))
	}
	//lodge:check oidc/signature [swap=Now: o.Now=>Now: o.Now, InsecureSkipSignatureCheck: true]
	//  [run=TestTokens|TestServer] a token that the issuer did not sign is accepted
	v.verifier = gooidc.NewVerifier(o.Issuer, v.keys, &gooidc.Config{ClientID: o.Audience, SupportedSigningAlgs: names, Now: o.Now})
	v.keys.refresh()
	return v, nil
}

// authorities loads the roots for the issuer's certificate; nil means the system's.
func authorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("oidc: authority: %w", err)
	}
	roots := x509.NewCertPool()
	//lodge:check oidc/issuer/authority [run=TestOptions] an unreadable authority file falls back to
	//  the system's authorities
	if !roots.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("oidc: authority %s holds no certificate", path)
	}
	return roots, nil
}

// Issuer returns the issuer's URL.
func (v *Verifier) Issuer() string { return v.opts.Issuer }

// Verify verifies a token and returns its content. It waits at most waitTime for keys.
func (v *Verifier) Verify(ctx context.Context, raw string) (rpc.Token, *rpc.Error) {
	//lodge:check oidc/form [drop=!compact(raw)] [run=TestTokens|TestServer] a token has several
	//  forms
	//lodge:check oidc/length [drop=len(raw) > rpc.MaxToken] [run=TestTokens|TestServer] a token
	//  takes any amount of memory
	if len(raw) > rpc.MaxToken || !compact(raw) {
		return rpc.Token{}, v.refuse("it is not a JSON Web Token in compact form")
	}
	var why error // error of the key set; go-oidc passes on only its text
	token, err := v.verifier.Verify(context.WithValue(ctx, reasonKey{}, &why), raw)
	switch {
	case errors.Is(why, errUnavailable):
		e := rpc.Errorf(rpc.Unavailable, "try again, or see that the issuer can be reached from here",
			"the token cannot be checked: the keys of the issuer %s cannot be fetched", v.opts.Issuer)
		e.Retry = retryEvery
		return rpc.Token{}, e
	case errors.Is(why, errUnknownKey):
		return rpc.Token{}, v.refuse("the issuer " + v.opts.Issuer + " publishes no such key")
	//lodge:check oidc/refused [swap=err != nil=>err != nil && token != nil]
	//  [run=TestTokens|TestServer] an invalid token is accepted
	case err != nil:
		return rpc.Token{}, v.refuse(v.reason(raw))
	}
	t, err := v.read(token)
	if err != nil {
		return rpc.Token{}, v.refuse(err.Error())
	}
	return t, nil
}

// read returns the content of a token with a verified signature.
func (v *Verifier) read(token *gooidc.IDToken) (rpc.Token, error) {
	var body json.RawMessage
	if token.Claims(&body) != nil {
		return rpc.Token{}, errClaims
	}
	claims, err := parseClaims(body)
	if err != nil {
		return rpc.Token{}, err
	}
	r, err := parseRegistered(claims)
	if err != nil {
		return rpc.Token{}, err
	}
	//lodge:check oidc/registered run=TestClaims|TestTokens what go-oidc read under another name is believed
	if err := r.valid(v.opts.Issuer, v.opts.Audience, v.opts.Now()); err != nil {
		return rpc.Token{}, err
	}
	return rpc.Token{Subject: r.subject, Claims: claims}, nil
}

func (v *Verifier) refuse(reason string) *rpc.Error {
	return rpc.Errorf(rpc.Unauthenticated, "get a token of "+v.opts.Issuer+" for the audience "+v.opts.Audience, "the token is refused: %s", reason)
}

// compact reports whether raw looks like a signed token: three base64url parts.
func compact(raw string) bool {
	parts := strings.Split(raw, ".")
	return len(parts) == 3 && !slices.ContainsFunc(parts, func(p string) bool {
		return p == "" || strings.ContainsFunc(p, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
		})
	})
}

// reason guesses, for the message only, why a token was rejected. It uses unverified claims and
// does not reveal them.
func (v *Verifier) reason(raw string) string {
	const malformed = "it is not a JSON Web Token"
	parts := strings.Split(raw, ".")
	var header struct {
		Algorithm jose.SignatureAlgorithm `json:"alg"`
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil || json.Unmarshal(b, &header) != nil {
		return malformed
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return malformed
	}
	claims, err := parseClaims(body)
	if errors.Is(err, errClaims) {
		return malformed
	}
	if !slices.Contains(algorithms, header.Algorithm) {
		return "its signature algorithm is not one of RS256, ES256 and EdDSA"
	}
	if err != nil {
		return err.Error()
	}
	r, err := parseRegistered(claims)
	if err == nil {
		err = r.valid(v.opts.Issuer, v.opts.Audience, v.opts.Now())
	}
	if err != nil {
		return err.Error()
	}
	return "it is not signed by the issuer " + v.opts.Issuer
}
