package config

import (
	"net/url"
	"strings"
)

// Console configures the pages that the process serves to browsers.
type Console struct {
	// Listen is the host:port of the console, HTTPS with the process's certificate; without it
	// there is no console.
	Listen string `yaml:"listen,omitempty" check:"address?"`
	// URL is the address at which browsers reach the console, such as https://lodge.example:7443.
	// It is needed for sign-in with oidc, whose issuer must have this address followed by
	// /signin/oidc/callback as a redirect URI of the client that oidc.audience names.
	URL string `yaml:"url,omitempty"`
	// SessionTime is how long a browser stays signed in; default 8h.
	SessionTime Duration `yaml:"session_time,omitempty" default:"8h" range:"1m..24h"`
	// MaxSessions limits the signed-in browsers, at most 32 of them of one identity; default 256.
	MaxSessions int `yaml:"max_sessions,omitempty" default:"256" range:"1..4096"`
	// MaxStreams limits the requests and streams of all sessions together, at most 32 of them of
	// one session; default 512.
	MaxStreams int `yaml:"max_streams,omitempty" default:"512" range:"1..4096"`
	// History is how much history the charts have without Prometheus; default 1h.
	History Duration `yaml:"history,omitempty" default:"1h" range:"30s..1h"`
	// ClientSecretFile has the secret with which the console authenticates at the issuer of oidc;
	// without it the console is a public client, which is protected by PKCE only.
	ClientSecretFile string `yaml:"client_secret_file,omitempty" check:"path?"`
	// Scopes are requested from the issuer in addition to openid, for example those that put the
	// required oidc_claims into the token, or offline_access to renew short tokens.
	Scopes     []string          `yaml:"scopes,omitempty"`
	Prometheus ConsolePrometheus `yaml:"prometheus,omitempty"`
}

// ConsolePrometheus names a server from which charts read values older than their own history.
type ConsolePrometheus struct {
	URL string `yaml:"url,omitempty"`              // http or https URL of a Prometheus server that scrapes this process
	CA  string `yaml:"ca,omitempty" check:"path?"` // authorities of its certificate; default those of the system
	// Match has the labels by which Prometheus tells this process from others, such as instance.
	Match map[string]string `yaml:"match,omitempty"`
}

// console validates the console, which signs clients in with the issuer if there is one.
func (c *check) console(x *Console, issuer *OIDC) {
	if x.URL != "" && !validOrigin(x.URL) {
		c.failf("console.url: %q is not an https URL with a host and nothing after it", x.URL)
	}
	if issuer == nil && (x.ClientSecretFile != "" || len(x.Scopes) > 0) {
		c.failf("console: client_secret_file and scopes need oidc with issuer and audience")
	}
	for _, s := range x.Scopes {
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			c.failf("console.scopes: %q is not a scope", s)
		}
	}
	p := x.Prometheus
	if p.URL == "" {
		if p.CA != "" || len(p.Match) > 0 {
			c.failf("console.prometheus.url: missing")
		}
		return
	}
	if u, err := url.Parse(p.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		c.failf("console.prometheus.url: %q is not an http or https URL without user, query and fragment", p.URL)
	}
	if len(p.Match) == 0 {
		c.failf("console.prometheus.match: missing; write the labels that this process has in Prometheus, such as {instance: \"%s\"}", x.Listen)
	}
	for name := range p.Match {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || name[0] >= '0' && name[0] <= '9' {
			c.failf("console.prometheus.match: %q is not a label", name)
		}
	}
}

// validOrigin reports whether text is the origin of an https address.
func validOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && ValidHost(u.Hostname()) && text == "https://"+u.Host
}
