package keygen

import (
	"bytes"
	"context"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// A judge accepts the frames of an honest proof, rejects a frame whose response is not short, and
// rejects malformed frames as such.
func TestJudgeOfFrames(t *testing.T) {
	s := testScheme(t, "insecure-6")
	p, _ := proving(t, s, 2, 1)
	j, err := NewJudge(round.Hash("a session"), 2, s, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	shape := j.Shapes()[NameProofs]
	if len(p.sent) != j.Frames() || shape.Frames != j.Frames() {
		t.Fatalf("%d frames, but the judge expects %d", len(p.sent), j.Frames())
	}
	for i, f := range p.sent {
		if check, err := j.Bound(i, f); check != "" || err != nil || shape.Check(i, f) != nil {
			t.Errorf("frame %d of an honest proof: %s, %v", i, check, err)
		}
		for _, bad := range [][]byte{nil, f[1:], append(bytes.Clone(f), 0)} {
			if check, err := j.Bound(i, bad); err == nil || shape.Check(i, bad) == nil {
				t.Errorf("frame %d of %d bytes instead of %d: %s", i, len(bad), len(f), check)
			}
		}
	}
	for _, i := range []int{-1, j.Frames()} {
		if _, err := j.Bound(i, p.sent[0]); err == nil {
			t.Errorf("accepted frame %d, which does not exist", i)
		}
	}
	long := intpoly.New(s.N(), 1)
	for i := range long.C {
		long.C[i] = 1<<(p.proof.Bits-1) - 1
	}
	for i, at := range map[int]int{0: 0, 1: p.responseSize(), j.Heads(): p.shareSize(p.equations[0]), j.Heads() + 1: p.shareSize(p.equations[1]) + p.responseSize()} {
		f := bytes.Clone(p.sent[i])
		packed, err := codec.AppendSigned(nil, long, p.proof.Bits)
		if err != nil {
			t.Fatal(err)
		}
		copy(f[at:], packed)
		if check, err := j.Bound(i, f); check != CheckBound || err != nil {
			t.Errorf("a long response in frame %d: %q, %v", i, check, err)
		}
	}
	for i, at := range p.equations {
		if at.opened() {
			continue
		}
		f := bytes.Clone(p.sent[j.Heads()+i])
		copy(f, bytes.Repeat([]byte{0xff}, p.shareSize(at)))
		if _, err := j.Bound(j.Heads()+i, f); err == nil {
			t.Errorf("accepted a malformed share for equation %d", i)
		}
	}
}

// A judge of an equation requires exactly the exhibits against which it is checked.
func TestJudgeOfExhibits(t *testing.T) {
	s := testScheme(t, "insecure-6")
	p, _ := proving(t, s, 2, 1)
	j, err := NewJudge(round.Hash("a session"), 2, s, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	statement := make([]byte, j.StatementSize())
	of := func(equation int) Exhibits {
		return Exhibits{
			Seeds: make([][]byte, 2), Statement: statement, Heads: p.sent[:j.Heads()], Frame: p.sent[j.Heads()+equation],
			Share: make([]byte, codec.PolySize(s.N(), s.Q.Primes())),
		}
	}
	opened, second := -1, -1
	for i := range p.equations {
		if _, ok := j.Opened(i); ok && opened < 0 {
			opened = i
		}
		if _, _, ok := j.Sums(i); ok && second < 0 {
			second = i
		}
	}
	if check, err := j.Equation(context.Background(), opened, of(opened)); check != CheckEquation || err != nil {
		t.Errorf("masks that differ from the statement: %q, %v", check, err)
	}
	if check, err := j.Equation(context.Background(), second, of(second)); check != CheckShare || err != nil {
		t.Errorf("a share that differs from the statement: %q, %v", check, err)
	}
	for name, change := range map[string]func(x *Exhibits) int{
		"an equation before the first": func(*Exhibits) int { return -1 },
		"an equation after the last":   func(*Exhibits) int { return len(p.equations) },
		"a short statement":            func(x *Exhibits) int { x.Statement = x.Statement[1:]; return opened },
		"no heads":                     func(x *Exhibits) int { x.Heads = nil; return opened },
		"one head more":                func(x *Exhibits) int { x.Heads = p.sent[:j.Heads()+1]; return opened },
		"a truncated head":             func(x *Exhibits) int { x.Heads = append([][]byte{x.Heads[0][1:]}, x.Heads[1:]...); return opened },
		"no frame":                     func(x *Exhibits) int { x.Frame = nil; return opened },
		"no share":                     func(x *Exhibits) int { x.Share = nil; return opened },
		"a share of large residues": func(x *Exhibits) int {
			x.Share = bytes.Repeat([]byte{0xff}, len(x.Share))
			return opened
		},
	} {
		x := of(opened)
		equation := change(&x)
		if check, err := j.Equation(context.Background(), equation, x); err == nil {
			t.Errorf("%s: the judge returned the verdict %q", name, check)
		}
	}
	poly := make([]byte, codec.PolySize(s.N(), s.Q.Primes()))
	for name, list := range map[string][][]byte{"none": nil, "one": {poly}, "three": {poly, poly, poly}, "a short one": {poly, poly[1:]}} {
		if _, err := j.sum(list); err == nil {
			t.Errorf("accepted a sum of %s as the sum of both parties", name)
		}
	}
	if _, err := j.sum([][]byte{poly, poly}); err != nil {
		t.Error(err)
	}
	open := j.Shapes()[round.OpenName(StepRelin)]
	for i, f := range map[int][]byte{0: make([]byte, round.NonceSize), 1: poly} {
		if err := open.Check(i, f); err != nil {
			t.Errorf("frame %d of an opening: %v", i, err)
		}
		if open.Check(i, f[1:]) == nil || open.Check(i, append(bytes.Clone(f), 0)) == nil {
			t.Errorf("frame %d of an opening has another length", i)
		}
	}
	for _, dim := range []int{0, 3, s.N()} {
		if _, err := NewJudge(round.Hash("a session"), 2, s, dim, 1); err == nil {
			t.Errorf("accepted a judge of dimension %d", dim)
		}
	}
}
