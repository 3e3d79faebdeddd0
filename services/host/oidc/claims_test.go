package oidc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Claims are read by exact name. Each row adds members to the body of a good token, or replaces
// one, as text: a map cannot contain a name twice.
func TestClaims(t *testing.T) {
	i := newIssuer(t)
	k := newKey(t, "es", jose.ES256)
	i.publish(k)
	v, clock, _ := i.verifier()
	now := clock.now()
	const twice = "names that differ in case only"
	for _, c := range []struct {
		name    string
		without string // a claim that is left out
		add     string // members, first or last
		first   bool
		refused string // empty: good
	}{
		{name: "nothing added"},
		{name: "another claim", add: `"roles": {"a": {"b": [1, {"c": null}]}, "A ": true}`},
		{name: "SUB after sub", add: `"SUB": "sub-root"`, refused: twice},
		{name: "SUB before sub", add: `"SUB": "sub-root"`, first: true, refused: twice},
		{name: "sub twice", add: `"sub": "sub-root"`, refused: twice},
		{name: "sub twice, escaped", add: `"s\u0075b": "sub-root"`, refused: twice},
		{name: "a long s in sub", add: `"\u017fub": "sub-root"`, refused: twice},
		{name: "a long s as UTF-8", add: `"ſub": "sub-root"`, refused: twice},
		{name: "a long s in iss", add: `"i\u017f\u017f": "https://other.example"`, refused: twice},
		{name: "Iss", add: `"Iss": "https://other.example"`, refused: twice},
		{name: "Aud", add: `"Aud": "lodge-alice"`, refused: twice},
		{name: "Exp", add: `"Exp": 99999999999`, refused: twice},
		{name: "NBF", add: `"NBF": 0`, refused: twice},
		{name: "other claims twice", add: `"groups": ["admin"]`, refused: twice},
		{name: "Groups", add: `"Groups": ["admin"]`, refused: twice},
		{name: "Kelvin", add: `"k": 1, "\u212a": 2`, refused: twice},
		{name: "nested", add: `"realm": {"roles": 1, "ROLES": 2}`, refused: twice},
		{name: "nested in a list", add: `"realm": [[{"s": 1, "ſ": 2}]]`, refused: twice},
		{name: "SUB alone", without: "sub", add: `"SUB": "sub-mpc"`, refused: "has no subject"},
		{name: "a long s alone", without: "sub", add: `"ſub": "sub-mpc"`, refused: "has no subject"},
		{name: "ISS alone", without: "iss", add: `"ISS": "` + i.url() + `"`, refused: "another issuer"},
		{name: "AUD alone", without: "aud", add: `"AUD": "` + audience + `"`, refused: "another audience"},
		{name: "EXP alone", without: "exp", add: `"EXP": 99999999999`, refused: "has no expiry time"},
		{name: "NBF alone", without: "nbf", add: `"NBF": 99999999999`, refused: "not signed"}, // by go-oidc, which reads it
		{name: "sub is a number", without: "sub", add: `"sub": 7`, refused: "another type"},
		{name: "sub is null", without: "sub", add: `"sub": null`, refused: "another type"},
		{name: "aud is null", without: "aud", add: `"aud": null`, refused: "another type"},
		{name: "aud has a number", without: "aud", add: `"aud": ["lodge-alice", 7]`, refused: "another type"},
		{name: "exp is text", without: "exp", add: `"exp": "99999999999"`, refused: "another type"},
		{name: "nbf is null", without: "nbf", add: `"nbf": null`, refused: "another type"},
		{name: "iat is text", without: "iat", add: `"iat": "1"`, refused: "another type"},
		{name: "deep", add: `"x": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40), refused: "nested too deeply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := map[string]any{}
			if c.without != "" {
				change[c.without] = nil
			}
			good, err := json.Marshal(i.claims(now, change))
			if err != nil {
				t.Fatal(err)
			}
			members := []string{strings.Trim(string(good), "{}"), c.add}
			if c.first {
				slices.Reverse(members)
			}
			body := "{" + strings.Trim(strings.Join(members, ","), ",") + "}"
			got, refused := v.Verify(t.Context(), sign(t, k, json.RawMessage(body)))
			if c.refused == "" {
				if refused != nil || got.Subject != "sub-mpc" || fmt.Sprint(got.Claims["groups"]) != "[mpc]" {
					t.Fatalf("got %+v, %v", got, refused)
				}
				return
			}
			if refused == nil || refused.Code != rpc.Unauthenticated || !strings.Contains(refused.What, c.refused) || got.Subject != "" {
				t.Fatalf("got %+v, %v, want %q", got, refused, c.refused)
			}
			if strings.Contains(refused.Error(), "sub-") {
				t.Errorf("the error shows of the token: %v", refused)
			}
		})
	}
}
