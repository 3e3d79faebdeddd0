package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
)

// planned commands are documented ahead of their code. One that exists must not be here: the test
// says so.
var planned = map[string]bool{}

// Every command in a ```sh block of the documents exists: make targets, and lodge's subcommands
// with their flags. Every relative link leads somewhere.
func TestDocuments(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(file string, _ fs.DirEntry, err error) error {
		if filepath.Ext(file) == ".md" {
			documents = append(documents, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "charts/lodge/README.md"} {
		documents = append(documents, filepath.Join(root, name))
	}
	commands := 0
	for _, file := range documents {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range shellLines(string(text)) {
			if err := checkCommand(line, string(makefile)); err != nil {
				t.Errorf("%s: %q: %v", filepath.Base(file), line, err)
			}
			commands++
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), link[1])); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(file), link[1], err)
			}
		}
	}
	if commands < 2 {
		t.Errorf("%d commands were found in the documents", commands)
	}
	for name := range planned {
		if cmd, _, err := lodgetest.NewLodge().Find([]string{name}); err == nil && cmd.Name() == name {
			t.Errorf("lodge %s exists now: take it off the list of planned commands", name)
		}
	}
}

// shellLines returns the lines of the ```sh blocks, without comments.
func shellLines(text string) (lines []string) {
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside && line != "" && !strings.HasPrefix(line, "#"):
			lines = append(lines, line)
		}
	}
	return lines
}

// checkCommand reports what is wrong with a documented command: `make TARGET`, `go run ./cmd/lodge
// ...`, `lodge ...`.
func checkCommand(line, makefile string) error {
	line = strings.TrimPrefix(strings.TrimPrefix(line, "go run ./cmd/"), "bin/")
	words := strings.Fields(line)
	switch {
	case words[0] == "make" && len(words) > 1:
		for _, target := range words[1:] {
			if !strings.Contains(target, "=") && !strings.Contains("\n"+makefile, "\n"+target+": ") {
				return fmt.Errorf("the Makefile has no target %s", target)
			}
		}
		return nil
	case words[0] == "lodge-bench": // see the tests of that command
		return nil
	case words[0] == "lodge" && len(words) > 1:
		if planned[words[1]] {
			return nil
		}
		root := lodgetest.NewLodge()
		root.InitDefaultCompletionCmd()
		cmd, rest, err := root.Find(words[1:])
		if err != nil {
			return err
		}
		if _, ok := cmd.Annotations[cli.OnlyHelp]; ok && len(rest) == 0 || !cmd.Runnable() {
			return fmt.Errorf("%s alone does nothing", cmd.CommandPath())
		}
		if err := cmd.ParseFlags(rest); err != nil {
			return err
		}
		return cmd.ValidateArgs(cmd.Flags().Args())
	}
	switch words[0] {
	case "COMPOSE_PROFILES=postgres":
		return checkCompose(words[1:])
	case "docker":
		return checkCompose(words)
	case "helm":
		return checkHelm(words)
	}
	return checkPython(words)
}

// checkCompose reports what is wrong with a documented command of Docker Compose: what it does is
// one of a few things, and the words after the name of a service, if lodge is run in its container,
// are a command of lodge.
func checkCompose(words []string) error {
	if len(words) > 3 && words[2] == "--profile" && words[3] == "monitoring" {
		words = append(words[:2:2], words[4:]...)
	}
	if len(words) < 3 || words[1] != "compose" {
		return fmt.Errorf("not docker compose")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docker-compose.yml"))
	if err != nil {
		return err
	}
	runs := words[2] == "run" || words[2] == "exec"
	if !runs && !slices.Contains([]string{"up", "down", "ps", "logs"}, words[2]) {
		return fmt.Errorf("docker compose %s is not among what the documents use", words[2])
	}
	for i, w := range words[3:] {
		if strings.HasPrefix(w, "-") {
			if !slices.Contains([]string{"--wait", "--rm", "--no-deps", "--no-TTY", "--volumes"}, w) {
				return fmt.Errorf("%s is not among what the documents use", w)
			}
			continue
		}
		if !strings.Contains(string(text), "\n  "+w+":\n") {
			return fmt.Errorf("docker-compose.yml has no %s", w)
		}
		if runs {
			inside := words[3+i+1:]
			if words[2] == "exec" && len(inside) > 0 && inside[0] == "lodge" {
				inside = inside[1:]
			} else if words[2] == "exec" {
				return fmt.Errorf("the image has no command but lodge")
			}
			return checkCommand("lodge "+strings.Join(inside, " "), "")
		}
	}
	return nil
}

// checkHelm reports what is wrong with a documented command of Helm: its flags are few, and the
// files of this tree are there.
func checkHelm(words []string) error {
	if !slices.Contains([]string{"install", "upgrade", "rollback", "test", "uninstall"}, words[1]) {
		return fmt.Errorf("helm %s is not among what the documents use", words[1])
	}
	for _, w := range words[2:] {
		if strings.HasPrefix(w, "--") && !slices.Contains([]string{"--namespace", "--create-namespace", "--set-file", "--set", "--values", "--wait", "--reuse-values"}, w) {
			return fmt.Errorf("%s is not among what the documents use", w)
		}
		if strings.HasPrefix(w, "charts/") {
			if _, err := os.Stat(filepath.Join("..", "..", w)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPython reports what is wrong with a documented command of Python, which works in an
// environment called venv.
func checkPython(words []string) error {
	file := ""
	switch {
	case strings.Join(words, " ") == "python3 -m venv venv":
		return nil
	case words[0] == "venv/bin/pip" && len(words) == 3 && words[1] == "install":
		file = filepath.Join(words[2], "pyproject.toml")
	case words[0] == "venv/bin/python" && len(words) == 2:
		file = words[1]
	default:
		return fmt.Errorf("none of make, lodge and Python")
	}
	_, err := os.Stat(filepath.Join("..", "..", file))
	return err
}

func TestCheckCommandCatches(t *testing.T) {
	makefile := "test: ## run\n\tgo test ./...\n"
	for _, good := range []string{"make test", "make test ARGS=1", "lodge verify DIR", "go run ./cmd/lodge params list --json",
		"python3 -m venv venv", "venv/bin/pip install ./clients/python", "docker compose up --wait", "docker compose logs p0",
		"docker compose exec p2 lodge version", "COMPOSE_PROFILES=postgres docker compose up --wait", "docker compose run --rm init compose --parties 5"} {
		if err := checkCommand(good, makefile); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"make tests", "lodge nonsense", "lodge verify", "lodge verify DIR --nonsense", "curl x | sh", "lodge params show",
		"venv/bin/python nowhere.py", "venv/bin/pip install numpy", "docker ps", "docker compose kill", "COMPOSE_PROFILES=nonsense docker compose up", "COMPOSE_PROFILES=postgres docker ps", "docker compose logs p9", "docker compose up --all",
		"docker compose exec p0 sh", "helm delete p0", "helm install p0 charts/other", "helm install p0 charts/lodge --force", "docker compose run --rm init nonsense",
	} {
		if checkCommand(bad, makefile) == nil {
			t.Errorf("%s passes", bad)
		}
	}
}
