package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write docs/reference/configuration.md from the comments of the configuration structs")

// referenceRow is one key of docs/reference/configuration.md.
type referenceRow struct{ key, text string }

// fieldComments returns the comments of all struct fields of this package, by "Struct.Field".
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					text := field.Doc.Text()
					if text == "" {
						text = field.Comment.Text()
					}
					for _, id := range field.Names {
						comments[spec.Name.Name+"."+id.Name] = describe(id.Name, text)
					}
				}
			}
			return true
		})
	}
	return comments
}

// describe turns a Go comment of a field into the text of the page: it omits the field's name and
// "is" or "are".
func describe(field, comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	if rest, ok := strings.CutPrefix(text, field+" "); ok {
		text = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
	}
	return strings.TrimSuffix(text, ".")
}

// referenceRows returns the keys of a configuration in the order of its structs. A key of list
// elements contains "[]".
func referenceRows(file any, comments map[string]string) (rows []referenceRow) {
	var walk func(t reflect.Type, at string)
	walk = func(t reflect.Type, at string) {
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if name == "-" || name == "" {
				continue
			}
			key, ft := at+name, f.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			switch {
			case ft.Kind() == reflect.Struct:
				walk(ft, key+".")
			case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct:
				walk(ft.Elem(), key+"[].")
			case t == reflect.TypeFor[ReserveLimits]() && at != "reservations.": // described once
			default:
				rows = append(rows, referenceRow{key, comments[t.Name()+"."+f.Name]})
			}
		}
	}
	walk(reflect.TypeOf(file).Elem(), "")
	return rows
}

// referencePage returns the generated part of the page: keys that all processes share, keys that
// parties and the coordinator share, then the keys of each process.
func referencePage(comments map[string]string) (page string, all []referenceRow) {
	party, coordinator := referenceRows(new(PartyFile), comments), referenceRows(new(CoordinatorFile), comments)
	evaluator := referenceRows(new(EvaluatorFile), comments)
	var b strings.Builder
	shown := map[referenceRow]bool{}
	section := func(heading string, rows []referenceRow, also ...[]referenceRow) {
		fmt.Fprintf(&b, "## %s\n\n", heading)
		for _, r := range rows {
			if shown[r] || slices.ContainsFunc(also, func(other []referenceRow) bool { return !slices.Contains(other, r) }) {
				continue
			}
			shown[r] = true
			all = append(all, r)
			fmt.Fprintf(&b, "- `%s`: %s\n", r.key, r.text)
		}
		b.WriteString("\n")
	}
	section("All processes", party, coordinator, evaluator)
	section("Parties and the coordinator", party, coordinator)
	section("Parties", party)
	section("The coordinator", coordinator)
	section("Evaluators", evaluator)
	return strings.TrimSpace(b.String()) + "\n", all
}

// TestReference checks that docs/reference/configuration.md has every key with the comment of its
// field. With -update it writes the page.
func TestReference(t *testing.T) {
	want, rows := referencePage(fieldComments(t))
	for _, r := range rows {
		if r.text == "" {
			t.Errorf("the field of %s has no comment", r.key)
		}
	}
	path := filepath.Join("..", "..", "..", "docs", "reference", "configuration.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const marker = "<!-- generated from services/host/config: go test ./services/host/config -run Reference -update -->\n\n"
	head, got, ok := strings.Cut(string(b), marker)
	if !ok {
		t.Fatalf("%s lacks the line %s", path, marker)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+marker+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s is not current; run: go test ./services/host/config -run Reference -update", path)
	}
}

// TestReferenceDefaults compares the defaults that comments state with those of files that set none
// of these keys.
func TestReferenceDefaults(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir)+"multikey: {set: M11-4-128, seed: standard}\n")
	party, err := LoadParty(write(t, dir, "party.yaml", evaluatorsYAML))
	if err != nil {
		t.Fatal(err)
	}
	coordinator, err := LoadCoordinator(write(t, dir, "coordinator.yaml", coordinatorYAML))
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := LoadEvaluator(write(t, dir, "e0.yaml", evaluatorYAML))
	if err != nil {
		t.Fatal(err)
	}
	comments, checked := fieldComments(t), 0
	for _, file := range []any{party, coordinator, evaluator} {
		for _, r := range referenceRows(file, comments) {
			v := valueAt(reflect.ValueOf(file).Elem(), strings.Split(r.key, "."))
			said := statedDefault(r.text)
			if said == "" || !v.IsValid() || v.IsZero() {
				continue
			}
			stated := reflect.New(v.Type())
			if yaml.Unmarshal([]byte(said), stated.Interface()) != nil || v.Kind() == reflect.String && filepath.IsAbs(v.String()) {
				continue // a default in words, or a path
			}
			if checked++; !stated.Elem().Equal(v) {
				t.Errorf("%s: the comment states the default %s, and a file without it has %v", r.key, said, v)
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d defaults were compared", checked)
	}
	if statedDefault("how long; default 1m, so that") != "1m" || statedDefault("no value") != "" {
		t.Error("a default is read wrongly")
	}
}

// statedDefault returns the word after "default" in a comment.
func statedDefault(text string) string {
	if m := regexp.MustCompile(`\bdefault (\S+)`).FindStringSubmatch(text); m != nil {
		return strings.TrimRight(m[1], ".,;")
	}
	return ""
}

// valueAt returns the value of a key; it is invalid for keys of list elements and of missing
// structs.
func valueAt(v reflect.Value, path []string) reflect.Value {
	for _, name := range path {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if !v.IsValid() || v.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		next := reflect.Value{}
		for i := range v.NumField() {
			if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); tag == name {
				next = v.Field(i)
			}
		}
		v = next
	}
	return v
}
