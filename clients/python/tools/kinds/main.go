// Command kinds writes the Python client's table of the kinds of tuples, from engine/kind:
//
//	kinds FILE
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/lodge-mpc/lodge/engine/kind"
)

const head = `"""The kinds of tuples. Generated from engine/kind by ` + "`make kinds`" + `; do not edit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of tuples."""

    form: str  #: the shape of a class: "" for single elements, "matrices" or "convolutions"
    owned: bool  #: whether one party knows the values
    parts: dict[str, tuple[str, ...]]  #: the values of a record, in order, each with its dimensions


TABLE = {
`

var (
	forms    = map[kind.Form]string{kind.Unshaped: "", kind.Matrices: "matrices", kind.Convolutions: "convolutions"}
	booleans = map[bool]string{false: "False", true: "True"}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kinds FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(table()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// table returns the module, in the format of ruff.
func table() string {
	var b strings.Builder
	b.WriteString(head)
	for _, k := range kind.All() {
		d := k.Describe()
		fmt.Fprintf(&b, "    %q: Kind(\n        form=%q,\n        owned=%s,\n        parts={\n", d.Name, forms[d.Form], booleans[d.Owned])
		for _, p := range d.Parts {
			var sides []string
			for _, s := range p.Sides {
				sides = append(sides, fmt.Sprintf("%q", string(s)))
			}
			fmt.Fprintf(&b, "            %q: (%s),\n", p.Name, strings.Join(sides, ", "))
		}
		b.WriteString("        },\n    ),\n")
	}
	b.WriteString("}\n")
	return b.String()
}
