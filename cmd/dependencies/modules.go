package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const own = "github.com/lodge-mpc/lodge"

// reasons has why each module is here that our code imports itself. The others are here because
// these are.
var reasons = map[string]string{
	"connectrpc.com/vanguard":                           "lets pages of the console call gRPC services",
	"filippo.io/edwards25519":                           "the group of base oblivious transfers",
	"github.com/chromedp/cdproto":                       "tests of the console in Chromium",
	"github.com/chromedp/chromedp":                      "tests of the console in Chromium",
	"github.com/coreos/go-oidc/v3":                      "verifies bearer tokens of clients, and sign-ins to the console",
	"github.com/go-jose/go-jose/v4":                     "signatures of bearer tokens",
	"github.com/jackc/pgx/v5":                           "a party's store in PostgreSQL",
	"github.com/jedib0t/go-pretty/v6":                   "tables that fit the terminal",
	"github.com/onsi/ginkgo/v2":                         "end-to-end tests",
	"github.com/onsi/gomega":                            "end-to-end tests",
	"github.com/prometheus/client_golang":               "metrics",
	"github.com/prometheus/client_model":                "metrics, as the console reads them",
	"github.com/sp301415/tfhe-go":                       "transforms of multi-key TFHE, whose own routine ours is compared with",
	"github.com/spf13/cobra":                            "commands and flags of `lodge`",
	"github.com/spf13/pflag":                            "flags of `lodge`",
	"github.com/tuneinsight/lattigo/v6":                 "roots of unity and the order of slots; its rings are compared with ours",
	"github.com/zitadel/oidc/v3":                        "an issuer for tests of sign-in",
	"go.etcd.io/bbolt":                                  "a party's embedded store",
	"go.opentelemetry.io/otel":                          "traces of jobs",
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace": "traces of jobs, to a collector",
	"go.opentelemetry.io/otel/sdk":                      "traces of jobs",
	"go.opentelemetry.io/otel/trace":                    "traces of jobs",
	"go.opentelemetry.io/proto/otlp":                    "traces of jobs on the wire",
	"go.yaml.in/yaml/v3":                                "configuration",
	"golang.org/x/crypto":                               "encryption of stored data",
	"golang.org/x/crypto/x509roots/fallback":            "root certificates for systems that have none",
	"golang.org/x/net":                                  "the frames of HTTP/2, to limit the memory of a connection",
	"golang.org/x/oauth2":                               "sign-in to the console at an issuer",
	"golang.org/x/sync":                                 "groups of goroutines",
	"golang.org/x/sys":                                  "processors' features, system calls",
	"golang.org/x/term":                                 "the width of the terminal",
	"golang.org/x/time":                                 "rates of clients",
	"google.golang.org/genproto/googleapis/rpc":         "details of errors between processes",
	"google.golang.org/grpc":                            "calls between processes",
	"google.golang.org/protobuf":                        "messages between processes",
}

// module describes a Go module that is compiled into one of our programs.
type module struct {
	Path, Version string
	Licences      []string // SPDX identifiers
	In            string   // the strongest of uses
	Because       string
}

// Uses of a module, strongest first.
const (
	inLodge   = "lodge"
	inClients = "libraries"
	inTests   = "tests"
)

// listed is the go command's description of a package.
type listed struct {
	ImportPath, Dir string
	Standard        bool
	Imports         []string
	Module          *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// load asks the go command what our programs, our libraries for clients and our tests are compiled
// from, on Linux.
func load() ([]module, error) {
	found := map[string]*module{}
	for _, use := range []struct {
		in   string
		args []string
	}{
		{inLodge, []string{own + "/cmd/lodge"}},
		{inClients, []string{own + "/clients/..."}},
		{inTests, []string{"-tags", "console", "-test", own + "/..."}},
	} {
		packages, err := list(use.args...)
		if err != nil {
			return nil, err
		}
		if err := collect(found, packages, use.in); err != nil {
			return nil, err
		}
	}
	var out []module
	for _, path := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[path])
	}
	return out, nil
}

func list(args ...string) ([]listed, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,Standard,Imports,Module"}, args...)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	var out []listed
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		p.ImportPath, _, _ = strings.Cut(p.ImportPath, " ") // without the test that it is compiled for
		out = append(out, p)
	}
}

// collect adds the modules of packages that no stronger use has.
func collect(found map[string]*module, packages []listed, in string) error {
	home, importers := map[string]string{}, map[string]map[string]bool{}
	for _, p := range packages {
		if p.Module != nil {
			home[p.ImportPath] = p.Module.Path
		}
	}
	for _, p := range packages {
		if p.Module == nil {
			continue
		}
		for _, to := range p.Imports {
			to, _, _ = strings.Cut(to, " ")
			if m := home[to]; m != "" && m != p.Module.Path {
				if importers[m] == nil {
					importers[m] = map[string]bool{}
				}
				importers[m][p.Module.Path] = true
			}
		}
	}
	for _, p := range packages {
		if p.Module == nil || p.Module.Main {
			continue
		}
		m := found[p.Module.Path]
		if m == nil {
			m = &module{Path: p.Module.Path, Version: p.Module.Version, In: in, Because: reasons[p.Module.Path]}
			if m.Because == "" && !importers[m.Path][own] {
				m.Because = "of " + strings.Join(slices.Sorted(maps.Keys(importers[m.Path])), ", ")
			}
			found[m.Path] = m
		}
		names, err := licences(p.Module.Dir, p.Dir)
		if err != nil {
			return err
		}
		m.Licences = append(m.Licences, names...)
		slices.Sort(m.Licences)
		m.Licences = slices.Compact(m.Licences)
	}
	return nil
}

// licences are those of the files in a package's directory and in those above, up to its module's.
func licences(root, dir string) (names []string, err error) {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			stem := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".md"), ".txt"))
			if e.IsDir() || !strings.HasPrefix(stem, "licen") && !strings.HasPrefix(stem, "copying") || strings.HasSuffix(stem, ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			names = append(names, classify(string(text))...)
		}
		if dir == root || len(dir) <= len(root) {
			return names, nil
		}
		dir = filepath.Dir(dir)
	}
}

// classify returns the names of the licences in a text, by sentences that only they have, or
// "unknown".
func classify(text string) (names []string) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	has := func(s string) bool { return strings.Contains(text, s) }
	add := func(name string, is bool) {
		if is {
			names = append(names, name)
		}
	}
	mozilla := has("mozilla public license version 2.0") || has("mozilla public license, version 2.0")
	bsd := has("redistribution and use in source and binary forms")
	named := has("neither the name") || has("names of its contributors may not be used")
	add("MPL-2.0", mozilla)
	add("GPL", !mozilla && (has("gnu general public license") || has("gnu lesser general public") || has("gnu affero")))
	add("Apache-2.0", has("apache license version 2.0") || has("apache license, version 2.0"))
	add("MIT", has("permission is hereby granted, free of charge, to any person obtaining"))
	add("ISC", has("permission to use, copy, modify, and/or distribute this software for any purpose") ||
		has("permission to use, copy, modify, and distribute this software for any purpose"))
	add("BSD-3-Clause", bsd && named)
	add("BSD-2-Clause", bsd && !named)
	add("Unlicense", has("this is free and unencumbered software released into the public domain"))
	add("unknown", len(names) == 0)
	return names
}

// allowed licences of what we compile in.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// inTestsOnly lists modules with another licence that nothing but tests may contain.
var inTestsOnly = map[string]string{"github.com/muhlemmer/gu": "Unlicense"} // of github.com/zitadel/oidc/v3

// check reports modules without a licence or with one that is not allowed, and those that our code
// imports without a reason.
func check(modules []module) error {
	var bad []error
	used := map[string]bool{}
	for _, m := range modules {
		used[m.Path] = true
		if len(m.Licences) == 0 {
			bad = append(bad, fmt.Errorf("%s has no licence", m.Path))
		}
		for _, l := range m.Licences {
			if !slices.Contains(allowed, l) && (m.In != inTests || inTestsOnly[m.Path] != l) {
				bad = append(bad, fmt.Errorf("%s has the licence %s, which is not allowed", m.Path, l))
			}
		}
		if m.Because == "" {
			bad = append(bad, fmt.Errorf("%s is imported without a reason in cmd/dependencies", m.Path))
		}
	}
	for path := range reasons {
		if !used[path] {
			bad = append(bad, fmt.Errorf("%s is not used any more and has a reason in cmd/dependencies", path))
		}
	}
	return errors.Join(bad...)
}

// report is docs/internals/dependencies.md.
func report(modules []module) string {
	var b strings.Builder
	b.WriteString(`# Dependencies

<!-- Written by "make licences". A test compares it with go.mod, the module cache and the imports of our code. -->

The modules in Lodge's binaries, other than its own code and Go's standard library (BSD-3-Clause), on Linux. Licences are identified from the files in the modules; only Apache-2.0, BSD, ISC, MIT and MPL-2.0 are allowed, and the Unlicense for one module that only tests use. Checksums are in go.sum. ` + "`make sbom`" + ` writes the list of one binary as CycloneDX. Development tools (` + "`.ci/tools`, `.ci/requirements.txt`" + `) and the packages of the Python client are not compiled in, and not listed.
`)
	for _, use := range []struct{ in, title string }{
		{inLodge, "In the `lodge` binary"}, {inClients, "Further, in the Go libraries for clients"}, {inTests, "Further, in tests and tools only"},
	} {
		rows := 0
		for _, m := range modules {
			if m.In != use.in {
				continue
			}
			if rows++; rows == 1 {
				fmt.Fprintf(&b, "\n## %s\n\n| module | version | licence | why it is here |\n|---|---|---|---|\n", use.title)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", m.Path, m.Version, strings.Join(m.Licences, ", "), m.Because)
		}
	}
	return b.String()
}
