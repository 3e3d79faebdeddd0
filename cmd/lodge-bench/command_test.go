package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/bench"
	"github.com/lodge-mpc/lodge/engine/keyset"
)

// TestMain serves the processes of clusters, which are this test program started again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "party" || os.Args[1] == "coordinator") {
		main()
		return
	}
	os.Exit(m.Run())
}

// runBench runs lodge-bench and returns its output.
func runBench(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// Without flags, the names that readers look for are measured, for the headline set and for the
// default set.
func TestBenchNames(t *testing.T) {
	out, err := runBench(t, "all", "--list")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(out)
	for _, want := range []string{
		"ntt_n14_50bit", "matmul_mac", "matmul_d128_s14_64", "matmul_d128_s14_64_plain", "mul_s14_64", "evk_wire_bytes_d128",
		"scalar_triples_per_cpu_second", "scalar_bytes_per_triple", "matrix_d128_cpu_seconds_per_triple", "matrix_d128_bytes_per_triple",
		"peak_rss_scalar", "peak_rss_matrix_d128", "scalar_triples_per_cpu_second_s14_32", "matrix_d128_bytes_per_triple_s14_32",
		"scalar_cpu_us_per_triple_p4096", "scalar_growth_p128_p4096", "scalar_first_batch_seconds_3_parties", "scalar_share_evaluate",
		"threshold_keygen_cpu_seconds_t1_t11_53", "threshold_engine_decrypt_paper_t6_t11_4", "threshold_decrypt_us_exact_t1_t11_53",
		"threshold_one_trips_paper_t1_t11_4", "threshold_masks_bytes_exact_t3_t11_4",
		"multikey_nand_k2_among_64", "multikey_nand_k32_paper_tfhe_go", "multikey_nand_k8_speedup_2_cores", "multikey_memory_k16",
		"scalar_triples_per_second_pipelined", "matrix_d128_triples_per_second_pipelined_s14_32", "peak_rss_matrix_d128_pipelined",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s", want)
		}
	}
	if slices.Sort(names); len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Error("a name appears twice")
	}
}

// A run with test sets writes every listed name as JSON, and writes its page.
func TestBenchAll(t *testing.T) {
	args := []string{"all", "--set", "insecure-6,insecure-L8-50,insecure-M8-32", "--duration", "1us"}
	listed, err := runBench(t, append(args, "--list")...)
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "benchmarks.md")
	out, err := runBench(t, append(args, "--json", "--write", page)...)
	if err != nil {
		t.Fatal(err)
	}
	var results []struct {
		Name, Unit   string
		Value        *float64
		LattigoRatio *float64 `json:"lattigo_ratio"`
		PlainRatio   *float64 `json:"plain_ratio"`
		Want         *float64
		WantRatio    *float64 `json:"want_ratio"`
	}
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&results); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
		// A share can be 0, and the overhead of the sacrifice is a difference of two short runs.
		positive := !strings.Contains(r.Name, "_share_") && !strings.Contains(r.Name, "_sacrifice_")
		if r.Unit == "" || r.Value == nil || positive && *r.Value <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if want := strings.Fields(listed); !slices.Equal(names, want) {
		t.Errorf("results %v\nlisted %v", names, want)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := os.ReadFile(strings.TrimSuffix(page, ".md") + ".json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(figures), fmt.Sprintf("%q", name)) {
			t.Errorf("the file of figures has no %s", name)
		}
	}
	for _, want := range []string{"| measured | want | of it |", "`ntt_n14_50bit`"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %s\n%s", want, text)
		}
	}
}

// The field, the dimension and the number of parties change the rows that depend on them, and the
// names of their results.
func TestBenchTakesFieldDimAndParties(t *testing.T) {
	for _, c := range []struct{ args, want, without string }{
		{"operations --set S14-64 --field p512 --dim 512", "matmul_d512_s14_64_p512 mul_s14_64_p512 evk_wire_bytes_d512_p512", "mul_s14_64"},
		{"kernels --field p1024 --dim 256", "matmul_mac_d256 field_mul_p1024 pack_p1024", "field_mul_p128"},
		{"protocol --set S14-32 --parties 5 --dim 256 --field p256",
			"scalar_triples_per_cpu_second_s14_32_p256 matrix_d256_bytes_per_triple_s14_32_p256 keygen_d256_seconds_5_parties_s14_32 " +
				"scalar_first_batch_seconds_5_parties_s14_32_p256 scalar_cpu_us_per_triple_p256_s14_32", "scalar_cpu_us_per_triple_p64_s14_32"},
		{"protocol --set S14-32 --dim 512", "matrix_d512_cpu_seconds_per_triple_s14_32", "matrix_d128_cpu_seconds_per_triple_s14_32"},
		{"threshold --parties 7", "threshold_keygen_seconds_t3_t11_4_n7 threshold_keygen_seconds_t1_t11_4_n7", "threshold_keygen_seconds_t6_t11_4"},
		{"multikey --parties 6", "multikey_nand_k6 multikey_nand_k6_speedup_2_cores", "multikey_nand_k4"},
		{"stock --field p64 --parties 4", "stock_fetch_bytes_per_second", "mul_s14_64"},
	} {
		out, err := runBench(t, append(strings.Fields(c.args), "--list")...)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		names := strings.Fields(out)
		for _, want := range strings.Fields(c.want) {
			if !slices.Contains(names, want) {
				t.Errorf("%s: no %s", c.args, want)
			}
		}
		if slices.Contains(names, c.without) {
			t.Errorf("%s: %s", c.args, c.without)
		}
	}
}

// A run with tiny parameters, another field and another number of parties writes the listed names.
func TestBenchProtocolOfAnotherField(t *testing.T) {
	args := []string{"protocol", "--set", "insecure-6", "--field", "p256", "--dim", "4", "--parties", "3", "--duration", "1us"}
	listed, err := runBench(t, append(args, "--list")...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := runBench(t, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var results []struct{ Name string }
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, strings.Fields(listed)) || !slices.Contains(names, "matrix_d4_bytes_per_triple_insecure_6_p256") {
		t.Errorf("results %v\nlisted %s", names, listed)
	}
}

// With tiny parameters, every table of the papers is measured, including the rows whose parties are
// processes.
func TestBenchPaper(t *testing.T) {
	page := filepath.Join(t.TempDir(), "papers.md")
	out, err := runBench(t, "paper", "--insecure", "--duration", "1us", "--json", "--write", page)
	if err != nil {
		t.Fatal(err)
	}
	var cells []bench.Compared
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&cells); err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for _, c := range cells {
		if strings.Contains(c.Missing, "failed") || c.Value == nil && c.Missing == "" {
			t.Errorf("%+v", c)
		}
		if c.Value != nil {
			measured[c.Table]++
		}
	}
	for _, name := range bench.PaperTables() {
		if measured[name] == 0 {
			t.Errorf("%s has no measured figures", name)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "## MatriGear, table 4") {
		t.Errorf("%v: the page is\n%s", err, text)
	}
}

// A dry run of the papers' tables shows every row within 80 columns.
func TestBenchPaperPlan(t *testing.T) {
	listed, err := runBench(t, "paper", "--list")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := runBench(t, "paper", "--dry-run")
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.Join(strings.Fields(plan), " ")
	for row := range strings.Lines(listed) {
		if !strings.Contains(whole, strings.TrimSpace(row)) {
			t.Errorf("the plan lacks %q", row)
		}
	}
	for line := range strings.Lines(plan) {
		if len(line) > 81 {
			t.Errorf("%d columns: %q", len(line), line)
		}
	}
	if !strings.Contains(listed, "matrigear-7/d = 512, log p = 512") || !strings.Contains(listed, "ajax-1/t = 13, processes") {
		t.Errorf("rows are missing:\n%s", listed)
	}
}

func TestBenchRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"all", "--set", "none"}, {"all", "--json", "--text"}, {"all", "--parties", "1"}, {"all", "--duration", "0s"},
		{"kernels", "--filter", "("}, {"kernels", "nonsense"},
		{"kernels", "--parties", "3"}, {"linear", "--parties", "3"}, {"multikey", "--field", "p256"}, {"threshold", "--dim", "256"},
		{"threshold", "--parties", "2"}, {"multikey", "--parties", "40"}, {"multikey", "--set", "M11-2-128", "--parties", "4"},
		{"operations", "--field", "p64"}, {"operations", "--field", "p100"}, {"operations", "--dim", "100"}, {"operations", "--dim", "1024"},
		{"operations", "--dim", "512", "--field", "p4096"}, {"kernels", "--list", "--dry-run"}, {"kernels", "--filter", "ntt", "--write", "x.md"},
		{"paper", "--table", "none"}, {"paper", "--filter", "none"}, {"paper", "--filter", "("}, {"paper", "--set", "S14-64"}, {"paper", "--text"},
		{"paper", "--field", "p128", "--dim", "3"}, {"nothing"}, {"kernels", "--nothing"},
	} {
		if _, err := runBench(t, args...); exitCode(err) != 2 && !errors.As(err, new(*keyset.UnknownError)) {
			t.Errorf("lodge-bench %v: %v", args, err)
		}
	}
}

// Every documented command has flags and arguments that lodge-bench accepts.
func TestDocumentedCommands(t *testing.T) {
	found := 0
	check := func(from, text string) {
		for line := range strings.Lines(text) {
			words := strings.Fields(strings.ReplaceAll(line, "'", ""))
			if len(words) < 2 || words[0] != "lodge-bench" {
				continue
			}
			found++
			cmd, rest, err := rootCommand().Find(words[1:])
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %q: %v", from, strings.TrimSpace(line), err)
			}
		}
	}
	for name, example := range examples {
		check("example of "+name, example)
		for line := range strings.Lines(example) {
			if !strings.HasPrefix(strings.TrimSpace(line), "lodge-bench "+name) {
				t.Errorf("example of %s: %q", name, line)
			}
		}
	}
	err := filepath.WalkDir(filepath.Join("..", "..", "docs"), func(file string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".md" {
			return err
		}
		text, err := os.ReadFile(file)
		check(file, string(text))
		return err
	})
	if err != nil || found < len(examples) {
		t.Errorf("%d commands, %v", found, err)
	}
	for _, cmd := range rootCommand().Commands() {
		if !cmd.Hidden && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.Name())
		}
	}
}
