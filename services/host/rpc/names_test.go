package rpc

import (
	"testing"

	"github.com/lodge-mpc/lodge/services/host/pki"
)

// A certificate whose DNS name is written like a party's URI identifies no party, at the server and
// at the client.
func TestDNSNamesAreNoURIs(t *testing.T) {
	const bob = "spiffe://lodge/party/bob"
	w := newWorld(t)
	addr, _ := w.serve(Options{}, whoami)
	// pki takes an identity with "://" for a URI, and a host for a DNS name.
	if _, err := w.call(addr, alice, w.credentials(w.ca, pki.Leaf{Identity: "other.example", Hosts: []string{bob}})); err == nil || FromError(err).Code != Forbidden {
		t.Errorf("a caller with a URI as DNS name: %v", err)
	}
	if r, err := w.call(addr, alice, w.credentials(w.ca, pki.Leaf{Identity: bob, Hosts: []string{"x.example"}})); err != nil || r.GetName() != "bob" {
		t.Errorf("a caller with a URI: %v, %v", r, err)
	}
	posing := newWorld(t)
	addr, _ = posing.serve(Options{Credentials: posing.credentials(posing.ca, pki.Leaf{Identity: "other.example", Hosts: []string{alice}})}, whoami)
	if _, err := posing.call(addr, alice, posing.credentials(posing.ca, pki.Leaf{Identity: bob})); err == nil {
		t.Error("a server with a URI as DNS name is taken for the party")
	}
}
