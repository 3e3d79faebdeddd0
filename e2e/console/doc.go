// Package console tests the console in a real Chromium on a real cluster: three parties, one of
// which can cheat, a coordinator, and an issuer. Its tests have the build tag console; run them
// with make browser.
package console
