package byzantine

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
)

var write = flag.Bool("write", false, "write the tables of docs/security/byzantine.md")

const document = "../../docs/security/byzantine.md"

// The tables of the document are those of the code.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile(document)
	must(t, err)
	text := string(b)
	for name, table := range map[string]string{"cheats": cheats(), "attacks": attackTable(), "elsewhere": elsewhere()} {
		begin, end := fmt.Sprintf("<!-- %s -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
		before, rest, ok := strings.Cut(text, begin)
		old, after, found := strings.Cut(rest, end)
		if !ok || !found {
			t.Fatalf("%s has no place for the table of %s", document, name)
		}
		if old != table && !*write {
			t.Errorf("the table of %s in %s is not that of the code; go test ./e2e/byzantine -run TestDocument -write mends it", name, document)
		}
		text = before + begin + table + end + after
	}
	if *write {
		must(t, os.WriteFile(document, []byte(text), 0o644))
	}
	for n := 1; n <= 27; n++ {
		if !strings.Contains(text, fmt.Sprintf("\n%d. ", n)) {
			t.Errorf("threat %d is not explained", n)
		}
	}
}

// family is one cheat, or the same cheat with several messages.
type family struct {
	name, does string
	from       int
	threats    []int
	ends       []string
	count      int
}

// variants are cheats that differ only in a part of the protocol, which their names and
// descriptions contain.
var variants = regexp.MustCompile(`^(challenge|long-error|long-mask|randomness-off-by-one)-([a-z0-9-]+)`)

// cheats returns the table of cheats. Cheats that differ only in the message or in a part of the
// protocol share a row.
func cheats() string {
	var list []*family
	for _, c := range cheattest.Table() {
		name, does := c.Name, c.Does
		if fault, message, ok := strings.Cut(name, ":"); ok {
			name, does = fault+":*", strings.ReplaceAll(does, message, "*message*")
		}
		if m := variants.FindStringSubmatch(name); m != nil {
			name = m[1] + "-*" + strings.TrimPrefix(name, m[0])
			does = strings.Replace(does, strings.ReplaceAll(m[2], "-", " "), "*part*", 1)
		}
		i := slices.IndexFunc(list, func(f *family) bool { return f.name == name })
		if i < 0 {
			i = len(list)
			list = append(list, &family{name: name, does: does, from: c.From})
		}
		f := list[i]
		f.count++
		f.threats = append(f.threats, c.Threats...)
		f.ends = append(f.ends, endOf(c.OnWire()))
	}
	var b strings.Builder
	b.WriteString("| cheat | the last party | threats | result |\n|---|---|---|---|\n")
	for _, f := range list {
		name := "`" + f.name + "`"
		if f.count > 1 {
			name += fmt.Sprintf(" (%d)", f.count)
		}
		if f.from > 2 {
			name += fmt.Sprintf(", %d+ parties", f.from)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, f.does, joined(f.threats), joined(f.ends))
	}
	return b.String()
}

// endOf is an end in words.
func endOf(e cheattest.Ends) string {
	if e.Check == "" {
		return "passes"
	}
	s := "`" + e.Check + "`"
	switch e.Named {
	case cheattest.Certain:
		s += ", blamed"
	case cheattest.Suspects:
		s += ", suspected"
	}
	if e.Counts {
		s += ", counts"
	}
	return s
}

// joined lists different values once.
func joined[T cmp.Ordered](list []T) string {
	list = slices.Clone(list)
	slices.Sort(list)
	var words []string
	for _, v := range slices.Compact(list) {
		words = append(words, fmt.Sprint(v))
	}
	sep := ", "
	if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, ",") }) {
		sep = "; "
	}
	return strings.Join(words, sep)
}

// attackTable is that of streams and of the coordinator, with the fields of one message in one row.
func attackTable() string {
	var b strings.Builder
	b.WriteString("| attack | action | result |\n|---|---|---|\n")
	for _, list := range [][]Attack{onStreams, byCoordinator} {
		for _, a := range list {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", a.Name, a.Does, a.Ends)
		}
	}
	for _, f := range []struct{ name, of, ends string }{
		{"hello-*", "sends a hello with another value of one field: " + strings.Join(fields(helloFields), ", "),
			"the stream is refused, or the session ends for check `pins`"},
		{"spec-*", "requests another session from party 0 than from the others, in one field: " + strings.Join(fields(specFields), ", "), "refused, or check `pins`; no party has a result"},
		{"bad-spec-*", "requests an impossible session from all parties, in one of these fields", "refused by all"},
		{"reservation-*", "reserves something else at party 0 than at the others, in one field: " + strings.Join(fields(reservationFields), ", "), "no party delivers, unless the change does not affect the reservation"},
	} {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.name, f.of, f.ends)
	}
	return b.String()
}

func elsewhere() string {
	var b strings.Builder
	b.WriteString("| threat | case | tests |\n|---|---|---|\n")
	for _, e := range cheattest.ElsewhereTable() {
		var tests []string
		for _, name := range e.Tests {
			tests = append(tests, "`"+filepath.Base(e.Package)+"."+name+"`")
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", e.Threat, e.Does, strings.Join(tests, ", "))
	}
	return b.String()
}

// The tests that hold threats elsewhere exist.
func TestElsewhereExists(t *testing.T) {
	for _, e := range cheattest.ElsewhereTable() {
		files, err := filepath.Glob(filepath.Join("../..", e.Package, "*_test.go"))
		must(t, err)
		var all strings.Builder
		for _, f := range files {
			b, err := os.ReadFile(f)
			must(t, err)
			all.Write(b)
		}
		for _, name := range e.Tests {
			if !strings.Contains(all.String(), "func "+name+"(t *testing.T)") {
				t.Errorf("%s has no %s", e.Package, name)
			}
		}
	}
}
