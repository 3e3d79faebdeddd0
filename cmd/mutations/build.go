package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// variable is the environment variable with the number of the mutation that is on.
const variable = "LODGE_MUTATION"

// switches is a file that every package with switches receives.
const switches = `package %s

import (
	"os"
	"strconv"
)

var lodgeMutation, _ = strconv.Atoi(os.Getenv("` + variable + `"))

func lodgeMutated(n int) bool { return n == lodgeMutation }

func lodgePick[T any](mutated bool, edited, original T) T {
	if mutated {
		return edited
	}
	return original
}
`

// writeOverlay writes the sources with a switch for each of these mutations into dir, and a
// description of the overlay, whose path it returns. The number of a switch is its key.
func writeOverlay(root, dir string, numbered map[int]mutation) (string, error) {
	files := map[string]map[string]int{}
	for n, m := range numbered {
		if files[m.File] == nil {
			files[m.File] = map[string]int{}
		}
		files[m.File][m.Name] = n
	}
	replace := map[string]string{}
	add := func(name, text string) error {
		name = filepath.Join(root, filepath.FromSlash(name))
		if replace[name] != "" {
			return nil // the switches of the package, for another file
		}
		replacement := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		replace[name] = replacement
		return os.WriteFile(replacement, []byte(text), 0o600)
	}
	for file, numbers := range files {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return "", err
		}
		s, err := parseSource(file, text)
		if err != nil {
			return "", err
		}
		edited, err := s.switched(numbers)
		if err != nil {
			return "", err
		}
		if err := add(file, edited); err != nil {
			return "", err
		}
		if err := add(path.Join(path.Dir(file), "lodge_mutated.go"), fmt.Sprintf(switches, s.file.Name.Name)); err != nil {
			return "", err
		}
	}
	description, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, description, 0o600)
}

// switched gives the source with switches for the markers with these names and numbers.
func (s *source) switched(numbers map[string]int) (string, error) {
	var all []change
	for _, m := range s.markers {
		number, ok := numbers[m.Name]
		if !ok {
			continue
		}
		changes, _, err := s.change(m, number)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.Name, err)
		}
		all = append(all, changes...)
	}
	return apply(s.text, all), nil
}

// build builds the test binary of a package, with a switch for every mutation. Mutations that do
// not compile are left out; broken has the reasons.
func (t *tester) build(ctx context.Context, pkg, binary string, numbered map[int]mutation) (broken map[int]string, err error) {
	broken = map[int]string{}
	numbered = maps.Clone(numbered)
	for {
		// Leaving out the debugging information halves the time to link.
		said, err := t.goTool(ctx, numbered, "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, pkg)
		if err != nil || said == "" {
			return broken, err
		}
		found := false
		for n, m := range numbered {
			alone, err := t.goTool(ctx, map[int]mutation{n: m}, "build", "./"+path.Dir(m.File))
			if err != nil {
				return nil, err
			}
			if alone != "" {
				found = true
				broken[n] = alone
				delete(numbered, n)
			}
		}
		if !found {
			return nil, fmt.Errorf("the tests of %s do not compile:\n%s", pkg, said)
		}
	}
}

// goTool runs a build with an overlay and returns the output of a build that failed.
func (t *tester) goTool(ctx context.Context, numbered map[int]mutation, verb string, args ...string) (string, error) {
	dir, err := os.MkdirTemp(t.dir, "overlay")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(t.root, dir, numbered)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{verb, "-overlay", overlay}, args...)...)
	cmd.Dir = t.root
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %w", verb, err)
	}
	if err != nil {
		return "go " + verb + ": " + strings.TrimSpace(string(out)), nil
	}
	return "", nil
}
