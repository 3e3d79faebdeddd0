package main

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Mistakes on the command line are explained in the user's words, with the next command.
func TestMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"jobs submit --kind scalar --count -5":   "--count -5 (write a whole number that is not negative, such as 1000; see `lodge jobs submit --help`)",
		"jobs submit --kind scalar --count x":    "--count x (write a whole number",
		"demo --parties two":                     "--parties two (write a whole number, such as 3;",
		"health --timeout 3":                     "--timeout 3 (write a duration, such as 30s or 10m;",
		"health --live=perhaps":                  "--live perhaps (write true or false",
		"stok --json":                            "unknown command \"stok\" for \"lodge\" (did you mean `lodge stock` or",
		"jobs lst --cluster x":                   "unknown command \"lst\" for \"lodge jobs\" (did you mean `lodge jobs list`?)",
		"keys genrate --params T11-4 --wait":     "did you mean `lodge keys generate`?",
		"keys masks 1":                           "no quorum to make masks for (name the parties of a quorum with --quorum, or use --every-quorum)",
		"keys masks 1 --quorum 0 --every-quorum": "both --quorum and --every-quorum (remove",
		"export mp-spdz --out x":                 "nothing to export (name directories",
		"jobs list --jsno":                       "unknown flag: --jsno (see `lodge jobs list --help`)",
	} {
		e, _ := lodgetest.Fails(t, strings.Fields(line)...)
		if !errors.Is(e, &rpc.Error{Code: rpc.Invalid}) || !strings.Contains(e.Error(), want) || strings.Contains(e.Error(), "strconv") {
			t.Errorf("%s: %v, want %s", line, e, want)
		}
	}
}

// The shapes in the help fit in the memory that a party allows by default, with keys as `lodge dev`
// makes them.
func TestShapesInHelpFit(t *testing.T) {
	set, err := params.Lookup(params.Default)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, lines := range lodgetest.Examples(t) {
		for _, line := range lines {
			words := strings.Fields(line)
			for i, w := range words {
				var sides []uint32
				if w == "--shape" && strings.Contains(line, "--kind matrix") {
					sides = dimensions(t, words[i+1])
				}
				if len(sides) == 0 {
					continue
				}
				found++
				p, err := triple.NewPlan(set, "p128", 3, kind.Matrix, wire.Shape(&jobv1.Shape{Rows: sides[0], Inner: sides[1], Columns: sides[2]}), 0, 1, 8)
				if err != nil {
					t.Errorf("%s: %s: %v", name, line, err)
				} else if n := p.MemoryBytes(2); n > 4<<30 {
					t.Errorf("%s: %s holds %d bytes", name, line, n)
				}
			}
		}
	}
	if found < 2 {
		t.Errorf("%d shapes", found)
	}
}

func dimensions(t *testing.T, shape string) (sides []uint32) {
	t.Helper()
	for s := range strings.SplitSeq(shape, "x") {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		sides = append(sides, uint32(n))
	}
	return sides
}
