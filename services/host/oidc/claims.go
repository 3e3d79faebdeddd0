package oidc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// encoding/json, which go-oidc uses for claims, ignores the case of names and uses the last of
// several: a token whose body has "sub" and "SUB" has the subject in "SUB". An issuer that lets its
// users choose further claims would thus let them choose their identity. This file parses the body
// of a verified token again, by exact name.

// maxDepth limits the nesting of claims.
const maxDepth = 16

// Reasons to reject claims. The texts reveal nothing about the token.
var (
	errClaims = errors.New("its claims cannot be read")
	errTwice  = errors.New("two of its claims have one name, or names that differ in case only")
	errDeep   = errors.New("its claims are nested too deeply")
)

// parseClaims reads the claims of a token. Names, at any depth, must differ by more than case.
func parseClaims(body []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	first, err := d.Token()
	if err != nil || first != json.Delim('{') {
		return nil, errClaims
	}
	claims, err := parseObject(d, 1)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errClaims
	}
	return claims, nil
}

// parseObject parses an object after its "{".
func parseObject(d *json.Decoder, depth int) (map[string]any, error) {
	m, seen := map[string]any{}, map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, errClaims
		}
		name, ok := t.(string)
		if !ok {
			return nil, errClaims
		}
		folded := fold(name)
		//lodge:check oidc/twice run=TestClaims the last of several claims that fold to one name is believed
		if seen[folded] {
			return nil, errTwice
		}
		seen[folded] = true
		if m[name], err = parseValue(d, depth); err != nil {
			return nil, err
		}
	}
	return m, closing(d)
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, errClaims
	}
	delim, nested := t.(json.Delim)
	switch {
	case !nested:
		return t, nil
	case depth == maxDepth:
		return nil, errDeep
	case delim == '{':
		return parseObject(d, depth+1)
	}
	list := []any{}
	for d.More() {
		v, err := parseValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, closing(d)
}

// closing reads the end of an object or list.
func closing(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return errClaims
	}
	return nil
}

// fold maps names that are equal under simple Unicode case folding to one string. U+017F, the long
// s, folds to s, and U+212A, the sign of Kelvin, to k.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// registered are the claims of RFC 7519 that decide whether a token is valid, and for whom.
type registered struct {
	issuer, subject string
	audience        []string
	expiry          float64
	before          float64 // 0 means none
}

// parseRegistered reads registered claims by exact name and checks their types.
func parseRegistered(claims map[string]any) (r registered, err error) {
	str := func(name string, into *string) bool {
		v, there := claims[name]
		s, ok := v.(string)
		*into = s
		return ok || !there
	}
	num := func(name string, into *float64) bool {
		v, there := claims[name]
		f, ok := v.(float64)
		*into = f
		return ok || !there
	}
	var issued float64
	ok := str("iss", &r.issuer) && str("sub", &r.subject) && num("exp", &r.expiry) && num("nbf", &r.before) && num("iat", &issued)
	switch aud := claims["aud"].(type) {
	case string:
		r.audience = []string{aud}
	case []any:
		for _, a := range aud {
			s, is := a.(string)
			ok = ok && is
			r.audience = append(r.audience, s)
		}
	default:
		_, there := claims["aud"]
		ok = ok && !there
	}
	//lodge:check oidc/types run=TestClaims a claim of another type is taken for a missing one
	if !ok {
		return r, errors.New("one of its claims iss, sub, aud, exp, nbf and iat has another type than RFC 7519 says")
	}
	return r, nil
}

// valid returns the reason to reject a token with these claims, or nil. go-oidc has made the same
// checks on its own parse.
func (r registered) valid(issuer, audience string, now time.Time) error {
	second := float64(now.Unix())
	switch {
	//lodge:check oidc/issuer [run=TestClaims] a token of another issuer is accepted
	case r.issuer != issuer:
		return errors.New("it was issued by another issuer")
	//lodge:check oidc/audience [run=TestClaims] a token for another audience is accepted
	case !slices.Contains(r.audience, audience):
		return errors.New("it is for another audience")
	//lodge:check oidc/expiry [run=TestClaims] a token that never expires is accepted
	case r.expiry == 0:
		return errors.New("it has no expiry time")
	case r.expiry <= second:
		return errors.New("it has expired")
	//lodge:check oidc/not-before [run=TestTokens|TestServer] a token is accepted before it is valid
	//lodge:check oidc/skew [swap=skew.Seconds()=>3 * skew.Seconds()] [run=TestTokens|TestServer] a token
	//  is accepted minutes before it is valid
	case r.before > second+skew.Seconds(): // go-oidc tolerates five minutes
		return errors.New("it is not valid yet")
	//lodge:check oidc/subject [drop=r.subject == ""] [run=TestTokens|TestServer] a token without a
	//  subject is accepted
	//lodge:check oidc/subject-length [drop=len(r.subject) > maxSubject] [run=TestTokens|TestServer]
	//  a subject takes any amount of memory
	case r.subject == "" || len(r.subject) > maxSubject:
		return errors.New("it has no subject")
	}
	return nil
}
