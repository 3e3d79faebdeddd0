package kind

import (
	"regexp"
	"slices"
	"testing"
)

// Every descriptor is complete and consistent: what else derives from it relies on these rules.
func TestTable(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+$`)
	names, files := map[string]bool{}, map[string]bool{}
	for _, k := range All() {
		d := k.Describe()
		if !word.MatchString(d.Name) || names[d.Name] || d.Title == "" || d.Help == "" || Of(d.Name) != k {
			t.Errorf("kind %d is named %q, %q", k, d.Name, d.Title)
		}
		names[d.Name] = true
		if (d.MPSPDZ == "") == (d.NotMPSPDZ == "") || files[d.MPSPDZ] && d.MPSPDZ != "" {
			t.Errorf("%v: MP-SPDZ's file %q, or none because %q", k, d.MPSPDZ, d.NotMPSPDZ)
		}
		files[d.MPSPDZ] = true
		if !slices.IsSortedFunc(d.Parts, func(a, b Part) int { return int(a.Vector) - int(b.Vector) }) || len(d.Parts) == 0 || d.Parts[0].Vector != A {
			t.Errorf("%v: the parts are not in the order of their vectors: %v", k, d.Parts)
		}
		parts := map[string]bool{}
		for i, p := range d.Parts {
			if parts[p.Name] || i > 0 && d.Parts[i-1].Vector == p.Vector {
				t.Errorf("%v: a part or a vector occurs twice: %v", k, d.Parts)
			}
			if parts[p.Name] = true; (len(p.Sides) > 0) != k.Shaped() {
				t.Errorf("%v: part %s has the dimensions %v", k, p.Name, p.Sides)
			}
			// The product is released only if it is a part, and opened otherwise.
			if p.Vector == C && !k.Multiplies() || p.Domain == Derived && d.Relation == Unrelated {
				t.Errorf("%v: nothing determines part %s", k, p.Name)
			}
		}
		released := d.Parts[len(d.Parts)-1].Vector == C
		if k.Opens() && (released || k.Shaped() || !k.Multiplies()) || k.Multiplies() && !released && !k.Opens() {
			t.Errorf("%v: products are neither released nor opened, or both", k)
		}
		if (d.Products == MatrixProducts) != k.Shaped() || k.Multiplies() != (d.Relation != Unrelated) {
			t.Errorf("%v: %v products with form %v and relation %v", k, d.Products, d.Form, d.Relation)
		}
		if k.Owned() && (k.Multiplies() || len(d.Parts) != 1) {
			t.Errorf("%v: owned tuples are single values", k)
		}
	}
	if Kind(0).Known() || Of("") != 0 || Kind(0).Describe().Name != "" || Kind(200).Known() || Kind(200).Values(Shape{}) != 0 {
		t.Error("an unknown kind is described")
	}
}

// The names, the numbers and the records of kinds are parts of formats and never change.
func TestFormats(t *testing.T) {
	matrix := Shape{Matrix: MatrixShape{Rows: 2, Inner: 3, Cols: 5}}
	image := Shape{Convolution: ConvolutionShape{Channels: 2, Height: 4, Width: 4, Outputs: 3, KernelHeight: 3, KernelWidth: 3,
		StrideHeight: 1, StrideWidth: 1, PaddingHeight: 1, PaddingWidth: 1}}
	for k, want := range map[Kind]struct {
		name    string
		shape   Shape
		a, b, c int
		clear   int
	}{
		1: {"scalar", Shape{}, 1, 1, 1, 0}, 2: {"matrix", matrix, 6, 15, 10, 0}, 3: {"square", Shape{}, 1, 0, 1, 0}, 4: {"random", Shape{}, 1, 0, 0, 0},
		5: {"bit", Shape{}, 1, 0, 0, 0}, 6: {"inverse", Shape{}, 1, 1, 0, 0}, 7: {"input", Shape{}, 1, 0, 0, 1}, 8: {"convolution", image, 32, 54, 48, 0},
	} {
		a, b, c := k.Elements(want.shape)
		if k.String() != want.name || a != want.a || b != want.b || c != want.c || k.Clear(want.shape) != want.clear || k.Values(want.shape) != a+b+c {
			t.Errorf("kind %d: %v with %d, %d, %d elements and %d in clear", k, k, a, b, c, k.Clear(want.shape))
		}
		if err := k.CheckShape(want.shape); err != nil {
			t.Error(err)
		}
		for _, wrong := range []Shape{{}, matrix, image, {matrix.Matrix, image.Convolution}} {
			if err := k.CheckShape(wrong); (err == nil) != (wrong == want.shape) {
				t.Errorf("%v with shape %v: %v", k, wrong, err)
			}
		}
	}
	if got := Names(Kind.Shaped); !slices.Equal(got, []string{"matrix", "convolution"}) {
		t.Errorf("kinds with a shape: %v", got)
	}
}
