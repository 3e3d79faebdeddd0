package linear_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/linear"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

const runID = "000102030405060708090a0b0c0d0e0f"

// A party multiplies matrices in files, and two clients multiply shares, also with fixed-point
// numbers.
func TestLinearCommand(t *testing.T) {
	l := lodgetest.StartBare(t, devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true})
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) string {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path(name)
	}
	a, b := put("a.json", "[[1,-2,3],[4,5,6]]"), put("b.json", "[[7],[8],[-9]]")

	r := lodgetest.Read[linear.LinearReport](l, "linear", "multiply", a, b, "--set", "insecure-P6-17", "--out", path("c.json"))
	if r.Security != "passive" || r.Attempts < 1 || !slices.Equal(r.Shape, []int{2, 1}) || r.UpBytes == 0 || r.LogDistance > -40 {
		t.Errorf("%+v", r)
	}
	if got, err := os.ReadFile(path("c.json")); err != nil || string(got) != "[[-36],[14]]\n" {
		t.Errorf("%s, %v", got, err)
	}
	l.Shows([]string{"linear", "multiply", a, b, "--set", "insecure-P6-17", "--party", "1", "--out", path("c.npy")}, "[2 1]", "security passive")
	if got, _, err := linear.ReadIntegers(path("c.npy")); err != nil || !slices.Equal(got, []int64{-36, 14}) {
		t.Errorf("%v, %v", got, err)
	}
	if info, err := os.Stat(path("c.npy")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	l.Shows([]string{"linear", "sets"}, "V13-32", "P13-40")

	// A matrix of numbers times a shared vector of numbers.
	small := []string{"--set", "insecure-V6-32-proved"}
	run := func(args ...string) []string { return append(append([]string{"linear"}, args...), small...) }
	v := put("v.json", "[0.5, -1.25, 2]")
	m := put("m.json", "[[1.5, 2, -3], [0.25, 0, 1]]")
	l.OK(run("split", v, path("v0.npy"), path("v1.npy"), "--fraction", "8")...)
	var group sync.WaitGroup
	group.Go(func() {
		l.OK(run("vector", "--run", runID, "--with", "client-p0", "--share", path("v0.npy"), "--rows", "2", "--out", path("p0.npy"))...)
	})
	owner := filepath.Join(l.Net.Dir, "clients", "client-p0.yaml")
	l.OK(run("vector", "--run", runID, "--with", "app", "--share", path("v1.npy"), "--matrix", m, "--fraction", "8", "--client", owner, "--out", path("p1.npy"))...)
	group.Wait()
	l.OK(run("join", path("p0.npy"), path("p1.npy"), "--fraction", "16", "--out", path("p.json"))...)
	if got, err := os.ReadFile(path("p.json")); err != nil || string(got) != "[-7.75,2.125]\n" {
		t.Errorf("%s, %v", got, err)
	}

	// Sums over a batch: two matrices of 4 x 3, five outputs.
	images, filters := make([]int64, 2*4*3), make([]int64, 5*2*3)
	for i := range images {
		images[i] = rand.Int64N(200) - 100
	}
	for i := range filters {
		filters[i] = rand.Int64N(200) - 100
	}
	write := func(name string, shape []int, v []int64) string {
		if err := linear.WriteArray(path(name), shape, v); err != nil {
			t.Fatal(err)
		}
		return path(name)
	}
	l.OK(run("split", write("images.npy", []int{2, 4, 3}, images), path("i0.npy"), path("i1.npy"))...)
	group.Go(func() {
		l.OK(run("batch", "--run", runID, "--with", "client-p0", "--share", path("i0.npy"), "--outputs", "5", "--out", path("s0.npy"))...)
	})
	l.OK(run("batch", "--run", runID, "--with", "app", "--share", path("i1.npy"), "--vectors", write("filters.npy", []int{5, 2, 3}, filters),
		"--client", owner, "--out", path("s1.npy"))...)
	group.Wait()
	l.OK(run("join", path("s0.npy"), path("s1.npy"), "--out", path("s.npy"))...)
	got, shape, err := linear.ReadIntegers(path("s.npy"))
	if err != nil || !slices.Equal(shape, []int{5, 4}) {
		t.Fatalf("%v, %v", shape, err)
	}
	for o := range 5 {
		for row := range 4 {
			want := int64(0)
			for k := range 2 {
				for j := range 3 {
					want += images[(k*4+row)*3+j] * filters[(o*2+k)*3+j]
				}
			}
			if got[o*4+row] != want {
				t.Errorf("output %d, row %d: %d, want %d", o, row, got[o*4+row], want)
			}
		}
	}
	linearRefusals(t, l, path, put)
}

// linearRefusals checks the requests that the commands reject.
func linearRefusals(t *testing.T, l *lodgetest.Live, path func(string) string, put func(name, text string) string) {
	t.Helper()
	a, b, v0 := path("a.json"), path("b.json"), path("v0.npy")
	set, out := []string{"--set", "insecure-V6-32"}, path("none.npy")
	multiply := func(more ...string) []string { return append([]string{"linear", "multiply"}, more...) }
	l.Refuses(rpc.Invalid, "no --out", multiply(a, b)...)
	l.Refuses(rpc.Invalid, ".npy or .json", multiply(a, b, "--out", path("c.txt"))...)
	l.Refuses(rpc.Conflict, "exists", multiply(a, b, "--out", path("c.npy"))...)
	l.Refuses(rpc.Invalid, "r x k and k x c", multiply(a, a, "--out", out)...)
	l.Refuses(rpc.Invalid, "lodge linear sets", multiply(a, b, "--set", "P0", "--out", out)...)
	l.Refuses(rpc.NotFound, "no such file", multiply(path("gone.npy"), b, "--out", out)...)
	l.Refuses(rpc.Invalid, "ends neither", multiply(put("a.txt", "1"), b, "--out", out)...)
	for _, text := range []string{"[[1],[2,3]]", "[[]]", `["a"]`, "[[1"} {
		l.Refuses(rpc.Invalid, "bad.json", multiply(put("bad.json", text), b, "--out", out)...)
	}
	l.Refuses(rpc.Invalid, "not an integer", multiply(put("half.json", "[[0.5]]"), put("one.json", "[[1]]"), "--out", out)...)
	l.Refuses(rpc.PolicyRefused, "allow_unproved_linear", "linear", "vector", "--with", "client-p0", "--run", runID, "--share", v0, "--rows", "2", "--out", out, "--set", "insecure-V6-32")
	l.Refuses(rpc.Invalid, "there is no party", multiply(a, b, "--party", "p9", "--out", out)...)
	vector := func(more ...string) []string {
		return append(append([]string{"linear", "vector", "--with", "client-p0", "--out", out}, set...), more...)
	}
	l.Refuses(rpc.Invalid, "not 32 hexadecimal", vector("--run", "00", "--share", v0, "--rows", "2")...)
	l.Refuses(rpc.Invalid, "--rows 0", vector("--run", runID, "--share", v0)...)
	l.Refuses(rpc.Invalid, "is not a share", vector("--run", runID, "--share", path("v.json"), "--rows", "2")...)
	l.Refuses(rpc.Invalid, "is of shape", vector("--run", runID, "--share", path("i0.npy"), "--rows", "2")...)
	l.Refuses(rpc.Invalid, "with --matrix", vector("--run", runID, "--matrix", path("m.json"), "--rows", "2")...)
	l.Refuses(rpc.Invalid, "shape is unknown", append([]string{"linear", "batch", "--run", runID, "--with", "x", "--out", out}, set...)...)
	l.Refuses(rpc.Invalid, "cannot be written as JSON", append([]string{"linear", "split", a, path("x.json"), path("y.npy")}, set...)...)
	l.Refuses(rpc.Invalid, "another value for --bits", append([]string{"linear", "split", a, path("x.npy"), path("y.npy"), "--bits", "60"}, set...)...)
	l.Refuses(rpc.Invalid, "out of range", append([]string{"linear", "split", a, path("x.npy"), path("y.npy"), "--bits", "3"}, set...)...)
	l.Refuses(rpc.Invalid, "is of shape", append([]string{"linear", "join", v0, path("i1.npy"), "--out", out}, set...)...)
	if files, _ := filepath.Glob(out); len(files) > 0 {
		t.Error("a command that was refused has written its file")
	}
}
