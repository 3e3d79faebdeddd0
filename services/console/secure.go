package console

import (
	"net/http"
	"net/url"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// headers are on every response. Pages load nothing from other servers, run no inline script, are
// not shown in frames, and are not readable by other sites.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":            "nosniff",
	"X-Frame-Options":                   "DENY",
	"Referrer-Policy":                   "no-referrer",
	"Cross-Origin-Opener-Policy":        "same-origin",
	"Cross-Origin-Resource-Policy":      "same-origin",
	"X-Permitted-Cross-Domain-Policies": "none",
	"Permissions-Policy":                "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
	"X-DNS-Prefetch-Control":            "off",
	"Cache-Control":                     "no-store",
}

// secured adds the headers to all responses, and rejects requests that another site made.
func secured(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		//lodge:check console/origin [run=TestOtherOrigins] a page of another site signs out, signs
		//  in, or reads what the console shows
		if !own(r) {
			fail(w, rpc.Errorf(rpc.Forbidden, "use the pages of the console", "the request comes from another site"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// own reports whether a request comes from a page of the console itself. A request to show a page,
// which reveals and changes nothing, may come from anywhere; so may the return from the issuer, and
// the use of a link. Every other request of a browser has a header that says where it comes from. A
// program without that header may only read.
func own(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case site == "same-origin":
		return sameOrigin(r)
	case reads && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document":
		return true
	case site != "":
		return reads && site == "none"
	case reads:
		return sameOrigin(r)
	}
	return r.Header.Get("Origin") != "" && sameOrigin(r)
}

// sameOrigin reports whether the origin of a request, if it names one, is that of the console.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "https" && u.Host == r.Host
}
