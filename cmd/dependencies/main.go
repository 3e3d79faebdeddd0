// Command dependencies says what Lodge is made of: as a table of modules with their licences for
// docs/internals/dependencies.md, and as a bill of materials of a binary in CycloneDX
// (https://cyclonedx.org/specification/overview, version 1.6).
package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dependencies:", err)
		os.Exit(1)
	}
}

// run is `dependencies report`, which prints the table, and `dependencies sbom BINARY`, which
// prints the bill.
func run(args []string) error {
	modules, err := load()
	if err != nil {
		return err
	}
	if err := check(modules); err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "report":
		_, err = os.Stdout.WriteString(report(modules))
		return err
	case len(args) == 2 && args[0] == "sbom":
		info, err := buildinfo.ReadFile(args[1])
		if err != nil {
			return err
		}
		out, err := bill(info, modules)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(out)
		return err
	}
	return errors.New("usage: dependencies report | dependencies sbom BINARY")
}
