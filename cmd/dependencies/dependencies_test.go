package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// The document is what `make licences` would write, and every licence is allowed.
func TestDocument(t *testing.T) {
	modules, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if err := check(modules); err != nil {
		t.Error(err)
	}
	written, err := os.ReadFile(filepath.Join("..", "..", "docs", "internals", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != report(modules) {
		t.Error("docs/internals/dependencies.md is out of date; run: make licences")
	}
	if len(modules) < 20 || !strings.Contains(string(written), "| go.etcd.io/bbolt |") {
		t.Errorf("%d modules", len(modules))
	}
}

func TestCheckRefuses(t *testing.T) {
	var good []module
	for path, reason := range reasons {
		good = append(good, module{Path: path, Version: "v1.0.0", Licences: []string{"MIT"}, In: inLodge, Because: reason})
	}
	if err := check(good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(m []module) []module{
		"GPL, which is not allowed":     func(m []module) []module { m[0].Licences = []string{"MIT", "GPL"}; return m },
		"unknown, which is not allowed": func(m []module) []module { m[0].Licences = []string{"unknown"}; return m },
		"Unlicense, which is not allowed": func(m []module) []module {
			return append(m, module{Path: "github.com/muhlemmer/gu", Licences: []string{"Unlicense"}, In: inLodge, Because: "x"})
		},
		"y has the licence Unlicense": func(m []module) []module {
			return append(m, module{Path: "y", Licences: []string{"Unlicense"}, In: inTests, Because: "x"})
		},
		"has no licence":    func(m []module) []module { m[0].Licences = nil; return m },
		"without a reason":  func(m []module) []module { return append(m, module{Path: "x", Licences: []string{"MIT"}}) },
		"not used any more": func(m []module) []module { return m[1:] },
	} {
		if err := check(change(slices.Clone(good))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestClassify(t *testing.T) {
	const bsd = "Redistribution and use in source and binary\n  forms, with or without modification, are permitted"
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                                  "Apache-2.0",
		"Licensed under the Apache License, Version 2.0 (the \"License\")":              "Apache-2.0",
		"Permission is hereby granted, free of charge,\nto any person obtaining a copy": "MIT",
		bsd + ". Neither the name of X nor":                                             "BSD-3-Clause",
		bsd:                                                                             "BSD-2-Clause",
		"Permission to use, copy, modify, and/or distribute this software for any purpose with": "ISC",
		"Mozilla Public License Version 2.0 ... GNU General Public License, Version 2.0":        "MPL-2.0",
		"GNU GENERAL PUBLIC LICENSE Version 3":                                                  "GPL",
		"GNU LESSER GENERAL PUBLIC LICENSE Version 3":                                           "GPL",
		"All rights reserved.": "unknown",
		"This is free and unencumbered software released into the public domain.":                            "Unlicense",
		"Apache License, Version 2.0; Permission is hereby granted, free of charge, to any person obtaining": "Apache-2.0 MIT",
	} {
		if got := strings.Join(classify(text), " "); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A bill has every module of the binary with version, checksum and licence, and is the same again.
func TestBill(t *testing.T) {
	modules := []module{{Path: "example.org/a", Version: "v1.2.3", Licences: []string{"MIT"}}, {Path: "example.org/b", Version: "v0.1.0+x", Licences: []string{"ISC", "MIT"}}}
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: own, Version: "v9.9.9"}}
	for _, m := range modules {
		info.Deps = append(info.Deps, &debug.Module{Path: m.Path, Version: m.Version, Sum: "h1:" + m.Path})
	}
	text, err := bill(info, modules)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := bill(info, modules)
	if string(again) != string(text) {
		t.Error("the same binary has two bills")
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.Format != "CycloneDX" || d.Spec != "1.6" || d.Metadata.Component.Version != "v9.9.9" || !strings.HasPrefix(d.Serial, "urn:uuid:") || len(d.Serial) != 45 {
		t.Errorf("%+v", d)
	}
	if len(d.Components) != 3 || len(d.Dependencies) != 1 || len(d.Dependencies[0].On) != 3 {
		t.Fatalf("%+v", d)
	}
	if std, b := d.Components[0], d.Components[2]; std.Version != "1.26.8" || b.PURL != "pkg:golang/example.org/b@v0.1.0%2Bx" ||
		len(b.Licences) != 2 || b.Licences[0].Licence.ID != "ISC" || b.Properties[0] != (property{"go:sum", "h1:example.org/b"}) {
		t.Errorf("%+v\n%+v", std, b)
	}
	if _, err := bill(info, modules[:1]); err == nil {
		t.Error("a module that nobody has looked at is in a bill")
	}
	info.Deps[0].Replace = &debug.Module{Path: "elsewhere"}
	if _, err := bill(info, modules); err == nil {
		t.Error("a module that is replaced is in a bill")
	}
}
