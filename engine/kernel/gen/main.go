// Command gen writes the assembly of package kernel and its declarations, with avo.
//
//	go run . DIRECTORY
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"
)

// file is an assembly file, DIRECTORY/NAME_amd64.s, whose functions are declared in
// NAME_amd64_stubs.go.
type file struct {
	name  string
	write func(*assembler)
}

var files = []file{
	{"matmul", matmul},
	{"ntt", ntt},
	{"vector", vector},
	{"extend", extend},
	{"shear", shear},
	{"words", words},
	{"bits", packing},
	{"wide", wide},
	{"gaussian", gaussian},
	{"inner", inner},
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gen DIRECTORY")
	}
	for _, f := range files {
		if err := f.generate(os.Args[1]); err != nil {
			log.Fatalf("%s: %v", f.name, err)
		}
	}
}

func (f file) generate(directory string) error {
	a := &assembler{Context: build.NewContext()}
	a.ConstraintExpr("amd64,!purego")
	f.write(a)
	config := printer.Config{Name: "engine/kernel/gen with avo", Pkg: "kernel"}
	path := filepath.Join(directory, f.name+"_amd64")
	asm, err := os.Create(path + ".s")
	if err != nil {
		return err
	}
	stubs, err := os.Create(path + "_stubs.go")
	if err != nil {
		return err
	}
	status := build.Main(&build.Config{ErrOut: os.Stderr, MaxErrors: 10, Passes: []pass.Interface{
		pass.Compile,
		&pass.Output{Writer: asm, Printer: printer.NewGoAsm(config)},
		&pass.Output{Writer: stubs, Printer: printer.NewStubs(config)},
	}}, a.Context)
	if status != 0 {
		return fmt.Errorf("avo failed")
	}
	return nil
}

// assembler extends avo with the operations that all kernels share. Vectors have 8 words, or 4 with
// AVX2.
type assembler struct {
	*build.Context
	avx2 bool
}

// words returns the length of a vector.
func (a *assembler) words() int {
	if a.avx2 {
		return 4
	}
	return 8
}

// vec returns a new vector.
func (a *assembler) vec() reg.VecVirtual {
	if a.avx2 {
		return a.YMM()
	}
	return a.ZMM()
}

// move copies a vector from or to memory, or another vector.
func (a *assembler) move(from, to operand.Op) {
	if a.avx2 {
		a.VMOVDQU(from, to)
	} else {
		a.VMOVDQU64(from, to)
	}
}

// function begins a function that does not retain its pointers.
func (a *assembler) function(name, parameters, doc string, args ...any) {
	a.Function(name)
	a.Attributes(attr.NOSPLIT)
	a.Pragma("noescape")
	a.SignatureExpr("func(" + parameters + ")")
	a.Doc(name + " " + fmt.Sprintf(doc, args...))
}

// done ends a function.
func (a *assembler) done() {
	a.VZEROUPPER()
	a.RET()
}

// arg loads a parameter.
func (a *assembler) arg(name string) reg.GPVirtual {
	r := a.GP64()
	a.Load(a.Param(name), r)
	return r
}

// broadcast loads a parameter into all lanes.
func (a *assembler) broadcast(name string) reg.VecVirtual {
	z := a.vec()
	at, err := a.Param(name).Resolve()
	if err != nil {
		log.Fatal(err)
	}
	a.VPBROADCASTQ(at.Addr, z)
	return z
}

// mask loads a parameter into a mask of lanes.
func (a *assembler) mask(name string) reg.OpmaskVirtual {
	k := a.K()
	a.KMOVB(a.arg(name).As32(), k)
	return k
}

// zero returns a cleared vector.
func (a *assembler) zero() reg.VecVirtual {
	z := a.vec()
	a.clear(z)
	return z
}

func (a *assembler) clear(z reg.VecVirtual) {
	i, err := x86.VPXORQ(z, z, z)
	if a.avx2 {
		i, err = x86.VPXOR(z, z, z)
	}
	if err != nil {
		log.Fatal(err)
	}
	i.CancellingInputs = true // avo does not know that the old value is irrelevant
	a.Instruction(i)
}

// zeros returns n cleared vectors.
func (a *assembler) zeros(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = a.zero()
	}
	return v
}

// once sets x to x - c if x >= c. With AVX2, c <= 2^63 and x < c + 2^63, so that the sign of x - c
// is its upper bit.
func (a *assembler) once(x, c reg.VecVirtual) {
	t := a.vec()
	a.VPSUBQ(c, x, t)
	a.smaller(t, x, x)
}

// smaller sets z to the smaller of x and y as unsigned words. With AVX2, it sets z to y if x is
// negative, else to x.
func (a *assembler) smaller(x, y, z reg.VecVirtual) {
	if a.avx2 {
		a.VBLENDVPD(x, y, x, z)
	} else {
		a.VPMINUQ(x, y, z)
	}
}

// lowest52 returns 2^52-1 in all lanes.
func (a *assembler) lowest52() reg.VecVirtual { return a.lanes(1<<52 - 1) }

// lanes returns a constant in all lanes.
func (a *assembler) lanes(c uint64) reg.VecVirtual {
	r, z := a.GP64(), a.vec()
	a.MOVQ(operand.U64(c), r)
	if a.avx2 {
		x := a.XMM()
		a.VMOVQ(r, x)
		a.VPBROADCASTQ(x, z)
	} else {
		a.VPBROADCASTQ(r, z)
	}
	return z
}
