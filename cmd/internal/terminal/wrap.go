package terminal

import (
	"regexp"
	"strings"
)

// entry matches the start of a line in a list: a name, and the spaces before its description.
var entry = regexp.MustCompile(`^ +\S+(?: \S+)*?  +`)

// Wrap breaks the lines of a help text that are longer than width between words. A description in a
// list continues in its column, and a command line among the examples continues after a backslash.
func Wrap(text string, width int) string {
	var out strings.Builder
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line != "" && line[0] != ' ' {
			section = line
		}
		indent, end := len(line)-len(strings.TrimLeft(line, " ")), ""
		hanging := max(indent, len(entry.FindString(line)))
		switch section {
		case "Examples:":
			hanging, end = indent+4, " \\"
		case "Usage:":
			hanging = indent + 4
		}
		for len(line) > width {
			at := strings.LastIndex(line[:width+1-len(end)], " ")
			if at <= hanging {
				break // a single word is too long
			}
			out.WriteString(strings.TrimRight(line[:at], " ") + end + "\n")
			line = strings.Repeat(" ", hanging) + line[at+1:]
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}
