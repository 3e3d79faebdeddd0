package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	markPrefix  = "//lodge:check"
	groupPrefix = "//lodge:tests"
	usage       = markPrefix + " AREA/NAME [OPTION]... what goes wrong without the check"
)

var (
	nameForm  = regexp.MustCompile(`^[a-z0-9-]+(/[a-z0-9-]+)+$`)
	groupForm = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	groupUse  = regexp.MustCompile(`@[a-z][a-z0-9-]*`)
)

// mutation switches one check off.
type mutation struct {
	Name     string   // stable: area/what
	File     string   // below the root of the module
	Tests    []string // packages of which some test must fail
	Run      string   // pattern of the tests to run; all when empty
	Protects string   // what goes wrong without the check
	Hangs    bool     `json:",omitempty"` // a test that does not end counts as failed
	// Redundant says why nothing can notice that this check is off; it is not run.
	Redundant string `json:",omitempty"`
}

// A marker is a //lodge:check comment: the mutation that it declares, except for the file, and how
// to edit the marked code.
type marker struct {
	mutation
	edits []operator
	line  int // of the comment
	below int // the line of the marked code
}

// An operator is an option of a marker that edits the marked code: drop, swap, as or return.
type operator struct{ name, from, to string }

// parseMarker reads the text of a marker without its prefix.
func parseMarker(text string) (marker, error) {
	var m marker
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if !nameForm.MatchString(name) {
		return m, fmt.Errorf("%q is not a name such as area/check (a marker is: %s)", name, usage)
	}
	m.Name = name
	for {
		rest = strings.TrimSpace(rest)
		option, after, err := cutOption(rest)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		if option == "" {
			break
		}
		if err := m.set(option); err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		rest = after
	}
	if m.Protects = rest; rest == "" {
		return m, fmt.Errorf("%s: say what goes wrong without the check (a marker is: %s)", name, usage)
	}
	return m, nil
}

// cutOption cuts an option from the start of s: [option], or a bare hangs, tests=... or run=...
// that ends at a space. Without an option at the start it returns "".
func cutOption(s string) (option, after string, err error) {
	if !strings.HasPrefix(s, "[") {
		word, after, _ := strings.Cut(s, " ")
		if strings.HasPrefix(word, "tests=") || strings.HasPrefix(word, "run=") {
			return word, after, nil
		}
		return "", s, nil
	}
	depth, quote := 0, byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote && s[i-1] != '\\' {
				quote = 0
			}
		case c == '"' || c == '`':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return strings.TrimSpace(s[1:i]), s[i+1:], nil
			}
		}
	}
	return "", "", fmt.Errorf("the option %s has no closing bracket", s)
}

// set applies one option.
func (m *marker) set(option string) error {
	key, value, _ := strings.Cut(option, "=")
	switch key {
	case "hangs":
		m.Hangs = true
		return nil
	case "return":
		m.edits = append(m.edits, operator{name: key, to: strings.TrimSpace(value)})
		return nil
	}
	if value == "" {
		return fmt.Errorf("[%s] has no value, or is not an option (tests=, run=, hangs, redundant=, drop=, swap=, as=, return=)", option)
	}
	switch key {
	case "tests":
		m.Tests = strings.Split(value, ",")
	case "run":
		m.Run = value
	case "redundant":
		m.Redundant = value
	case "as":
		m.edits = append(m.edits, operator{name: key, to: strings.TrimSpace(value)})
	case "drop":
		m.edits = append(m.edits, operator{name: key, from: value})
	case "swap":
		from, to, ok := strings.Cut(value, "=>")
		if !ok {
			return fmt.Errorf("[%s]: want swap=EXPRESSION=>EXPRESSION", option)
		}
		m.edits = append(m.edits, operator{key, strings.TrimSpace(from), strings.TrimSpace(to)})
	default:
		return fmt.Errorf("[%s] is not an option (tests=, run=, hangs, redundant=, drop=, swap=, as=, return=)", option)
	}
	return nil
}

// source is a parsed file with its markers.
type source struct {
	text    []byte
	fset    *token.FileSet
	file    *ast.File
	markers []marker
	groups  map[string]string // the patterns of //lodge:tests NAME PATTERN
}

// parseSource parses a file and its markers. It reports everything that is wrong with the markers.
func parseSource(name string, text []byte) (*source, error) {
	s := &source{text: text, fset: token.NewFileSet(), groups: map[string]string{}}
	var err error
	if s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		return nil, err
	}
	var wrong []error
	for _, group := range s.file.Comments {
		for i, c := range group.List {
			at := s.fset.Position(c.Pos())
			text, ok := strings.CutPrefix(c.Text, groupPrefix+" ")
			if ok {
				name, pattern, _ := strings.Cut(strings.TrimSpace(text), " ")
				if !groupForm.MatchString(name) || pattern == "" || s.groups[name] != "" {
					wrong = append(wrong, fmt.Errorf("%s: want %s NAME PATTERN, each name once", at, groupPrefix))
				}
				s.groups[name] = strings.TrimSpace(pattern)
				continue
			}
			text, ok = strings.CutPrefix(c.Text, markPrefix)
			if !ok {
				continue
			}
			for _, more := range group.List[i+1:] { // a longer text continues on lines that are indented
				line, ok := strings.CutPrefix(more.Text, "//  ")
				if !ok {
					break
				}
				text += " " + strings.TrimSpace(line)
			}
			m, err := parseMarker(text)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", at, err))
				continue
			}
			if strings.TrimSpace(s.lineBefore(c.Pos())) != "" {
				wrong = append(wrong, fmt.Errorf("%s: %s: the marker does not begin its line", at, m.Name))
			}
			m.line, m.below = at.Line, s.fset.Position(group.End()).Line+1
			s.markers = append(s.markers, m)
		}
	}
	return s, errors.Join(wrong...)
}

// marked reads the markers of all Go files below root, except tests, and gives their mutations in
// the order of the paths. The tests that must fail are those of the package, unless a marker names
// others. It reports everything that is wrong with any marker.
func marked(root string) ([]mutation, error) {
	var (
		all    []mutation
		wrong  []error
		seen   = map[string]string{} // the position of each name
		groups = map[string]map[string]string{}
		found  = map[string]*source{}
	)
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			skip := strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin"
			if file != root && skip {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !bytes.Contains(text, []byte("//lodge:")) {
			return nil
		}
		below, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		s, err := parseSource(below, text)
		if err != nil {
			wrong = append(wrong, err)
		}
		if s == nil {
			return nil
		}
		found[below] = s
		dir := path.Dir(below)
		if groups[dir] == nil {
			groups[dir] = map[string]string{}
		}
		for name, pattern := range s.groups {
			if groups[dir][name] != "" {
				wrong = append(wrong, fmt.Errorf("%s: the package has two groups of tests called %s", below, name))
			}
			groups[dir][name] = pattern
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(found)) {
		for _, m := range found[file].markers {
			at := fmt.Sprintf("%s:%d", file, m.line)
			if before, ok := seen[m.Name]; ok {
				wrong = append(wrong, fmt.Errorf("%s: %s is already the name of a check at %s", at, m.Name, before))
			}
			seen[m.Name] = at
			if _, _, err := found[file].change(m, 1); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s: %w", at, m.Name, err))
			}
			m.File = file
			if m.Tests == nil {
				m.Tests = []string{"./" + path.Dir(file)}
			}
			if m.Run, err = expand(m.Run, groups[path.Dir(file)]); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s: %w", at, m.Name, err))
			}
			all = append(all, m.mutation)
		}
	}
	return all, errors.Join(wrong...)
}

// expand replaces @group in a pattern of tests by the pattern of the package's group.
func expand(pattern string, groups map[string]string) (string, error) {
	var err error
	expanded := groupUse.ReplaceAllStringFunc(pattern, func(use string) string {
		p, ok := groups[use[1:]]
		if !ok {
			err = fmt.Errorf("the package has no line %s %s PATTERN", groupPrefix, use[1:])
		}
		return p
	})
	return expanded, err
}
