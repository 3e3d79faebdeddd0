package refusals

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/console"
	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/coordinator/stock"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/linear"
	"github.com/lodge-mpc/lodge/services/multikey/circuits"
	"github.com/lodge-mpc/lodge/services/multikey/keys"
	"github.com/lodge-mpc/lodge/services/multikey/registry"
	"github.com/lodge-mpc/lodge/services/offline/decryption"
	"github.com/lodge-mpc/lodge/services/offline/evaluator"
	"github.com/lodge-mpc/lodge/services/offline/keygen"
	"github.com/lodge-mpc/lodge/services/offline/popk"
	"github.com/lodge-mpc/lodge/services/offline/triples"
	"github.com/lodge-mpc/lodge/services/offline/tuples"
	"github.com/lodge-mpc/lodge/services/ops/status"
	"github.com/lodge-mpc/lodge/services/session/accusations"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/threshold"
)

var (
	packageLine = regexp.MustCompile(`(?m)^package (\S+);$`)
	serviceLine = regexp.MustCompile(`(?m)^service (\w+) \{$`)
	method      = regexp.MustCompile(`(?m)((?:^  //.*\n)*)^  rpc (\w+)\(`)
	aside       = regexp.MustCompile(`\([^()]*\)`)
	ends        = regexp.MustCompile(`^(.*) Errors: (.*)\. \[([^\[\];]*)(; [^\[\]]*)?\]$`)
)

// comments returns the comment of every method of proto/ as one line, and the comment of each file.
func comments(t *testing.T) (methods, files map[string]string) {
	t.Helper()
	paths, err := filepath.Glob("../../../proto/lodge/*/v1/*.proto")
	must(t, err)
	methods, files = map[string]string{}, map[string]string{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		must(t, err)
		service := serviceLine.FindSubmatch(b)
		if service == nil {
			continue
		}
		in := packageLine.FindSubmatchIndex(b)
		files[filepath.Base(path)] = line(string(b[:in[0]]))
		for _, m := range method.FindAllSubmatch(b, -1) {
			methods[fmt.Sprintf("%s.%s/%s", b[in[2]:in[3]], service[1], m[2])] = line(string(m[1]))
		}
	}
	return methods, files
}

// line returns a comment without its comment markers.
func line(comment string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(comment, "//", "")), " ")
}

// callersOf formats a rule as comments do.
func callersOf(r rpc.Rule) []string {
	if len(r.Roles) == len(rpc.Anyone.Roles) {
		return []string{"anyone"}
	}
	var list []string
	for _, role := range r.Roles {
		switch {
		case role == rpc.Client && r.Permission != "":
			list = append(list, fmt.Sprintf("client with %q", r.Permission))
		case role == rpc.Self:
			list = append(list, "own identity")
		default:
			list = append(list, string(role))
		}
	}
	return list
}

// codes that only some calls return. Codes that any call may return are listed only if a comment
// adds details.
var codes = []rpc.Code{
	rpc.Forbidden, rpc.Invalid, rpc.TooLarge, rpc.PolicyRefused, rpc.RateLimited, rpc.OverQuota, rpc.Busy, rpc.PinMismatch, rpc.PassiveKeygen,
	rpc.KeyPurpose, rpc.NotFound, rpc.Conflict, rpc.Delivered, rpc.Taken, rpc.Expired, rpc.OutOfStock, rpc.Quarantined, rpc.Stopped, rpc.Excluded, rpc.Burnt,
	rpc.SessionOver, rpc.WrongQuorum, rpc.Foreign, rpc.BadCiphertext, rpc.MaskSpent, rpc.ApprovalNeeded, rpc.UnknownKey, rpc.RetiredKey, rpc.WrongOwner, rpc.BadProof,
	rpc.Unavailable, rpc.TimedOut, rpc.DiskLow, rpc.CheckFailed, rpc.Erased,
}

// A method's comment documents whether the method is idempotent, which codes it returns, and who
// may call it, as in the rules. The beginning of each file documents which codes may be retried.
func TestComments(t *testing.T) {
	rules := rpc.Rules{}
	for _, of := range []rpc.Rules{coordinator.Rules, stock.Rules, status.Rules, status.ProbeRules, console.Rules, keygen.Rules, popk.Rules, triples.Rules,
		decryption.Rules, tuples.Rules, accusations.Rules, evaluator.Rules, threshold.Rules, keys.Rules, registry.Rules, circuits.Rules, linear.Rules,
		{exchange.Method: rpc.Allow(rpc.Peer)}} {
		maps.Copy(rules, of)
	}
	said, files := comments(t)
	for name, text := range files {
		if !strings.Contains(text, "Retries: unavailable, timed_out, busy and rate_limited may be retried") {
			t.Errorf("%s does not document which codes may be retried", name)
		}
	}
	for name := range methods() {
		m := ends.FindStringSubmatch(said[name])
		if m == nil {
			t.Errorf("%s: the comment does not end with its errors and callers: %q", name, said[name])
			continue
		}
		if !strings.Contains(strings.ToLower(m[1]), "idempotent") {
			t.Errorf("%s: the comment does not say whether it is idempotent", name)
		}
		if want := callersOf(rules["/"+name]); !slices.Equal(slices.Sorted(slices.Values(strings.Split(m[3], ", "))), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: the comment has callers [%s], the rules %q", name, m[3], want)
		}
		if m[2] == "only general errors" || m[2] == "none of its own" {
			continue
		}
		for _, code := range strings.Split(aside.ReplaceAllString(m[2], ""), ",") {
			code = strings.TrimSpace(code)
			if !slices.Contains(codes, rpc.Code(code)) {
				t.Errorf("%s: the comment has the error %q", name, code)
			}
		}
	}
}
