//go:build console

package console

import (
	"testing"
	"time"
)

// TestConsole uses one cluster for all, in this order: it is empty, then busy, then broken.
func TestConsole(t *testing.T) {
	c := start(t)
	late, made := c.link("coordinator"), time.Now()
	for _, part := range []struct {
		name string
		test func(*testing.T, *cluster)
	}{
		{"Certificate", testCertificate},
		{"Issuer", testIssuer},
		{"Link", testLink},
		{"Empty", testEmpty},
		{"Comparison", testComparison},
		{"Addresses", testAddresses},
		{"Keyboard", testKeyboard},
		{"Busy", testBusy},
		{"Permissions", testPermissions},
		{"Kill", testKill},
		{"LateLink", func(t *testing.T, c *cluster) { testExpired(t, c, late, made) }},
		{"Cheat", testCheat},
	} {
		began := time.Now()
		t.Run(part.name, func(t *testing.T) { part.test(t, c) })
		t.Logf("%s: %.1f s", part.name, time.Since(began).Seconds())
	}
}
