package linear

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/npy"
)

// JSON files and NumPy files of the same numbers are equivalent.
func TestArrayFiles(t *testing.T) {
	var text strings.Builder
	if err := npy.Write(&text, []int{2, 2}, []float64{1, -2.5, 3, 4}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string]string{"x.npy": text.String(), "x.json": "[[1, -2.5], [3, 4]]"} {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := openArray(p)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x.dims, []int{2, 2}) || x.size() != 4 {
			t.Errorf("%s: %v", name, x.dims)
		}
		x.close()
	}
	p := filepath.Join(dir, "y.json")
	if err := WriteArray(p, []int{2}, []float64{1, 2}); err != nil {
		t.Fatal(err)
	}
	var v []float64
	b, err := os.ReadFile(p)
	if err != nil || json.Unmarshal(b, &v) != nil || !slices.Equal(v, []float64{1, 2}) {
		t.Errorf("%s, %v", b, err)
	}
}
