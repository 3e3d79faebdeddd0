package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every command that the console's pages show exists, with its flags.
func TestConsoleCommands(t *testing.T) {
	quoted := regexp.MustCompile("[\"`>](lodge [^\"`<]+)[\"`<]")
	value := regexp.MustCompile(`\$?\{[^{}]*(\{[^{}]*\}[^{}]*)*\}`)
	commands := 0
	err := filepath.WalkDir(filepath.Join("..", "..", "services", "console", "web", "src"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".tsx" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, found := range quoted.FindAllStringSubmatch(string(text), -1) {
			line, _, _ := strings.Cut(found[1], "${head")
			line = value.ReplaceAllString(line, "1")
			if err := checkCommand(line, ""); err != nil {
				t.Errorf("%s shows %q: %v", filepath.Base(file), line, err)
			}
			commands++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if commands < 20 {
		t.Errorf("%d commands were found in the pages", commands)
	}
}
