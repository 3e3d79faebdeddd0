package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The import rules: a package imports only packages in lower layers
// (docs/internals/architecture.md). This file defines the rules. The test fails for a package that
// is not listed here.

const (
	module        = "github.com/lodge-mpc/lodge/"
	composedVault = module + "services/store/vault"
)

// layers lists the engine from the bottom up. A package imports only from layers below its own.
var layers = [][]string{
	{"engine", "engine/kind", "engine/kernel", "engine/intpoly", "engine/parallel", "engine/secret", "engine/longtest", "engine/hardness", "engine/keyset",
		"engine/protocol/internal/byzantine"},
	{"engine/ring", "engine/field", "engine/sample", "engine/sigma"},
	{"engine/codec", "engine/share", "engine/params", "engine/ot"},
	{"engine/gbfv", "engine/lwe", "engine/bgv", "engine/linear"},
	{"engine/gbfv/gbfvtest", "engine/bgv/bgvtest", "engine/evaluation", "engine/multikey"},
	{"engine/protocol/round", "engine/multikey/circuit", "engine/catalogue", "engine/protocol/threshold/internal/table"},
	{"engine/protocol/round/roundtest", "engine/protocol/threshold/internal/complaint", "engine/protocol/threshold/internal/dealing"},
	{"engine/protocol/keygen", "engine/protocol/popk", "engine/protocol/ddec", "engine/protocol/maccheck", "engine/protocol/verdict",
		"engine/protocol/threshold/lwekeys", "engine/protocol/threshold/reshare", "engine/protocol/threshold/bgvkeys"},
	{"engine/protocol/threshold/masks"},
	{"engine/protocol/threshold/decrypt"},
	{"engine/protocol/threshold/bgvdecrypt", "engine/protocol/threshold/mkdecrypt"},
	{"engine/protocol/triple"},
	{"engine/protocol/cheattest"},
}

// edges lists packages that the engine's own code must not import directly: randomness, time and
// I/O enter as arguments. An entry also covers the packages below it.
var edges = []string{
	module + "cmd", module + "services", module + "clients", module + "proto", "google.golang.org/grpc", "net", "os", "syscall",
	"time", "log", "crypto/rand", "math/rand",
}

// edgesForTests lists the packages that the engine's test files must not import either. These files
// may read testdata, measure time, and draw inputs.
var edgesForTests = []string{
	module + "cmd", module + "services", module + "clients", module + "proto", "google.golang.org/grpc", "net", "syscall", "log",
	"crypto/rand",
}

// outside lists the packages of other modules that the engine's own code imports, with reasons.
var outside = map[string]string{
	"filippo.io/edwards25519":                "the group of base oblivious transfers",
	lattigo + "core/rlwe":                    "keys and ciphertexts in the types of Lattigo's users",
	lattigo + "ring/ringqp":                  "the same",
	lattigo + "schemes/bgv":                  "the same",
	"github.com/tuneinsight/lattigo/v6/ring": "roots of unity and the order of slots; its rings can take our transforms",
	tfheGo + "math/poly":                     "transforms of double precision, and exact products by them",
	tfheGo + "math/vec":                      "sums and multiples of vectors of words",
	tfheGo + "tfhe":                          "digits of polynomials, and gadgets as the library has them",
	"golang.org/x/sys/cpu":                   "which kernels this processor can run",
}

const (
	lattigo = "github.com/tuneinsight/lattigo/v6/"
	tfheGo  = "github.com/sp301415/tfhe-go/"
)

// outsideOf lists packages that contain samplers, with the only engine package that may import
// each.
var outsideOf = map[string]string{
	lattigo + "core/rlwe":   "engine/bgv",
	lattigo + "ring/ringqp": "engine/bgv",
	lattigo + "schemes/bgv": "engine/bgv",
	tfheGo + "math/poly":    "engine/multikey",
	tfheGo + "math/vec":     "engine/multikey",
	tfheGo + "tfhe":         "engine/multikey",
}

// seams lists the packages that may import the hooks of tests, in their own code. Every other
// package uses round.Expose and Session.Omits.
var seams = []string{"engine/protocol/round", "engine/protocol/round/roundtest", "engine/protocol/cheattest"}

// unreachable lists packages that a package must not depend on, even indirectly.
var unreachable = []struct{ from, to, reason string }{
	{"services/coordinator", module + "engine", "the coordinator never has a share, a key or a seed"},
	{"proto", module + "engine", "wire structures are not domain types"},
	{"proto", module + "services", "the wire format is below the services"},
	{"engine", module + "services", "the engine does not use network, clock or disk"},
	{"engine", "google.golang.org/grpc", "the engine does not use the network"},
	{"services", module + "cmd", "commands depend on services, not the reverse"},
	{"clients", module + "services", "clients are for other people's programs"},
	{"clients/go/lodge", module + "engine", "clients are for other people's programs; only clients/go/ciphertext computes"},
	{"clients/go/mpspdz", module + "engine", "clients are for other people's programs; only clients/go/ciphertext computes"},
	{"clients/go/tuplefile", module + "engine", "the independent checker shares no protocol code"},
	{"clients/go/verify", module + "engine", "the independent checker shares no protocol code"},
	{"clients/go/verify", "github.com/tuneinsight/lattigo", "the independent checker shares no protocol code"},
}

// shared lists the engine's packages that every other package may depend on, with reasons.
var shared = map[string]string{
	module + "engine/kind": "a table of names and sizes, which imports only the standard library",
}

// exceptions lists exceptions to the rules above, with reasons. The test fails for an exception
// that is not needed any more.
var exceptions = []struct{ from, to, reason string }{
	{"engine", "os/exec", "this test asks the go command for the imports"},
	{"services/party", composedVault, "the wiring of a party opens the vault"},
	{"services/ops/doctor", composedVault, "the doctor examines the store of a stopped party"},
}

// listed is the description of a package by the go command.
type listed struct {
	ImportPath                               string
	Imports, TestImports, XTestImports, Deps []string
}

func TestImportLaw(t *testing.T) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", module+"...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var packages []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) < 10 {
		t.Fatalf("only %d packages are listed", len(packages))
	}
	used := make([]bool, len(exceptions))
	for _, v := range violations(packages) {
		i := slices.IndexFunc(exceptions, func(e struct{ from, to, reason string }) bool {
			return e.from == v.from && e.to == v.to
		})
		if i < 0 {
			t.Errorf("%s must not import %s: %s", v.from, strings.TrimPrefix(v.to, module), v.reason)
		} else {
			used[i] = true
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("the exception for %s importing %s is not needed any more", e.from, e.to)
		}
	}
}

// The package comment lists every package of the layers, and no others.
func TestDocListsEveryPackage(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"engine": true} // the package of the list itself
	for _, link := range regexp.MustCompile(`\[`+regexp.QuoteMeta(module)+`([a-z0-9/]+)\]: `).FindAllSubmatch(text, -1) {
		listed[string(link[1])] = true
	}
	for _, name := range slices.Concat(layers...) {
		if !listed[name] {
			t.Errorf("the package comment in engine/doc.go does not list %s", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("the package comment in engine/doc.go lists %s, which is in no layer", name)
	}
}

type violation struct{ from, to, reason string }

// violations returns the violations of the rules, without the exceptions.
func violations(packages []listed) []violation {
	rank := make(map[string]int)
	for i, layer := range layers {
		for _, name := range layer {
			rank[name] = i
		}
	}
	var found []violation
	for _, p := range packages {
		from := strings.TrimPrefix(p.ImportPath, module)
		tests := slices.Concat(p.TestImports, p.XTestImports)
		add := func(to, reason string) { found = append(found, violation{from, to, reason}) }

		for _, u := range unreachable {
			for _, dep := range p.Deps {
				if under(u.from, from) && under(u.to, dep) && shared[dep] == "" {
					add(dep, u.reason)
				}
			}
		}
		for _, to := range p.Imports {
			if strings.HasPrefix(to, module) && forTests(to) && !forTests(p.ImportPath) {
				add(to, "only tests may import a package made for tests")
			}
			if to == module+"engine/protocol/internal/byzantine" && !slices.Contains(seams, from) {
				add(to, "tests make parties cheat through round.Expose and Session.Omits")
			}
			if to == composedVault && under("services", from) {
				add(to, "a service declares the few methods of the vault that it uses as its own interface")
			}
			if under(module+"cmd", to) && !under("cmd", from) {
				add(to, "no package may import a command")
			}
		}
		if !under("engine", from) {
			for _, to := range p.Imports {
				if room := strings.TrimPrefix(to, module); sideways(from, room) {
					add(to, "a room of the lodge command does not use another room: what they share is in cli")
				}
			}
			continue
		}
		forbid := edges
		if forTests(p.ImportPath) {
			forbid = edgesForTests
		}
		for _, to := range p.Imports {
			if slices.ContainsFunc(forbid, func(edge string) bool { return under(edge, to) }) {
				add(to, "randomness, time and I/O enter the engine as arguments")
			} else if _, ok := outside[to]; !ok && strings.Contains(strings.Split(to, "/")[0], ".") && !under(module[:len(module)-1], to) {
				add(to, "imports from other modules must be listed in outside, with a reason")
			} else if only, ok := outsideOf[to]; ok && !under(only, from) {
				add(to, "only "+only+" may: it does not use their samplers")
			}
		}
		for _, to := range tests {
			if slices.ContainsFunc(edgesForTests, func(edge string) bool { return under(edge, to) }) {
				add(to, "tests of the engine follow the same rules as the engine, except for testdata and clocks")
			} else if under("os", to) && to != "os" {
				add(to, "tests of the engine may only read testdata")
			}
		}
		own, known := rank[from]
		if !known {
			add("anything", "the package is in no layer: add it to layers in engine/imports_test.go")
			continue
		}
		for _, to := range p.Imports {
			name, ours := strings.CutPrefix(to, module)
			if below, ok := rank[name]; ours && ok && below >= own {
				add(to, fmt.Sprintf("layer %d imports layer %d", own, below))
			}
		}
	}
	return found
}

// sideways reports whether one room of the lodge command imports another. Rooms share cli. Package
// command assembles all rooms, and try runs the demos.
func sideways(from, to string) bool {
	const rooms = "cmd/lodge/internal"
	from, inside := strings.CutPrefix(from, rooms+"/")
	to, isRoom := strings.CutPrefix(to, rooms+"/")
	return inside && isRoom && to != "cli" && from != "command" && from != "lodgetest" && from+" "+to != "try demos"
}

// under reports whether path is root or below it.
func under(root, path string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// forTests reports whether a package is only for tests, according to its name.
func forTests(path string) bool {
	return strings.HasSuffix(path, "test")
}

// The check detects violations: each row breaks one rule, and the clean rows pass.
func TestImportLawCatches(t *testing.T) {
	m := func(names ...string) (paths []string) {
		for _, n := range names {
			paths = append(paths, module+n)
		}
		return paths
	}
	for name, c := range map[string]struct {
		p  listed
		to string // "" if nothing is wrong
	}{
		"clean":                    {listed{ImportPath: module + "engine/gbfv", Imports: append(m("engine/ring"), "math/big", "io")}, ""},
		"clean service":            {listed{ImportPath: module + "services/offline/triples", Imports: append(m("engine/gbfv"), "net", "time")}, ""},
		"clean test":               {listed{ImportPath: module + "engine/ring", TestImports: []string{"os", "time", "math/rand/v2"}}, ""},
		"prefix of a name only":    {listed{ImportPath: module + "engine/ring", Imports: []string{"network", "logic"}}, ""},
		"clock":                    {listed{ImportPath: module + "engine/gbfv", Imports: []string{"time"}}, "time"},
		"randomness":               {listed{ImportPath: module + "engine/sample", Imports: []string{"crypto/rand"}}, "crypto/rand"},
		"weak randomness":          {listed{ImportPath: module + "engine/sample", Imports: []string{"math/rand/v2"}}, "math/rand/v2"},
		"lattigo's samplers":       {listed{ImportPath: module + "engine/sample", Imports: []string{"github.com/tuneinsight/lattigo/v6/core/rlwe"}}, "github.com/tuneinsight/lattigo/v6/core/rlwe"},
		"disk":                     {listed{ImportPath: module + "engine/ring", Imports: []string{"os"}}, "os"},
		"network":                  {listed{ImportPath: module + "engine/ring", Imports: []string{"net/http"}}, "net/http"},
		"log":                      {listed{ImportPath: module + "engine/ring", Imports: []string{"log/slog"}}, "log/slog"},
		"rpc":                      {listed{ImportPath: module + "engine/ring", Imports: []string{"google.golang.org/grpc/codes"}}, "google.golang.org/grpc/codes"},
		"service":                  {listed{ImportPath: module + "engine/ring", Imports: m("services/host/rpc")}, module + "services/host/rpc"},
		"service, by another":      {listed{ImportPath: module + "engine/ring", Deps: m("services/host/rpc")}, module + "services/host/rpc"},
		"network in a test":        {listed{ImportPath: module + "engine/ring", XTestImports: []string{"net"}}, "net"},
		"process in a test":        {listed{ImportPath: module + "engine/ring", XTestImports: []string{"os/exec"}}, "os/exec"},
		"upwards":                  {listed{ImportPath: module + "engine/ring", Imports: m("engine/gbfv")}, module + "engine/gbfv"},
		"sideways":                 {listed{ImportPath: module + "engine/ring", Imports: m("engine/field")}, module + "engine/field"},
		"no layer":                 {listed{ImportPath: module + "engine/strange"}, "anything"},
		"coordinator":              {listed{ImportPath: module + "services/coordinator", Imports: m("services/session/job"), Deps: m("services/session/job", "engine/secret")}, module + "engine/secret"},
		"checker":                  {listed{ImportPath: module + "clients/go/verify", Deps: m("engine/field")}, module + "engine/field"},
		"coordinator with kinds":   {listed{ImportPath: module + "services/coordinator", Deps: m("engine/kind")}, ""},
		"kinds that compute":       {listed{ImportPath: module + "engine/kind", Imports: m("engine/secret")}, module + "engine/secret"},
		"command":                  {listed{ImportPath: module + "e2e", Imports: m("cmd/lodge")}, module + "cmd/lodge"},
		"room of lodge":            {listed{ImportPath: module + "cmd/lodge/internal/jobs", Imports: m("cmd/lodge/internal/cli", "services/host/rpc")}, ""},
		"room, sideways":           {listed{ImportPath: module + "cmd/lodge/internal/jobs", Imports: m("cmd/lodge/internal/keys")}, module + "cmd/lodge/internal/keys"},
		"room, upwards":            {listed{ImportPath: module + "cmd/lodge/internal/cli", Imports: m("cmd/lodge/internal/keys")}, module + "cmd/lodge/internal/keys"},
		"cheats in a real package": {listed{ImportPath: module + "services/session/runner", Imports: m("engine/protocol/round/roundtest")}, module + "engine/protocol/round/roundtest"},
		"hooks in a protocol":      {listed{ImportPath: module + "engine/protocol/keygen", Imports: m("engine/protocol/internal/byzantine")}, module + "engine/protocol/internal/byzantine"},
		"hooks in the seam":        {listed{ImportPath: module + "engine/protocol/round", Imports: m("engine/protocol/internal/byzantine")}, ""},
		"the whole vault":          {listed{ImportPath: module + "services/offline/tuples", Imports: m("services/store/vault")}, composedVault},
		"a room of the vault":      {listed{ImportPath: module + "services/offline/tuples", Imports: m("services/store/vault/stock")}, ""},
		"the whole vault in tests": {listed{ImportPath: module + "services/offline/tuples", TestImports: m("services/store/vault")}, ""},
		"wire depending on engine": {listed{ImportPath: module + "proto/lodge/job/v1", Deps: m("engine/params")}, module + "engine/params"},
	} {
		found := violations([]listed{c.p})
		if c.to == "" {
			if len(found) > 0 {
				t.Errorf("%s: %v", name, found)
			}
			continue
		}
		if len(found) == 0 || slices.ContainsFunc(found, func(v violation) bool { return v.to != c.to }) {
			t.Errorf("%s: %v, want a violation by %s", name, found, c.to)
		}
	}
}
