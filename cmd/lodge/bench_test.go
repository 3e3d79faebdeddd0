package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMain lets this program be what it tests: clusters start the running program again as parties and coordinators.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "party" || os.Args[1] == "coordinator") {
		main()
		return
	}
	os.Exit(m.Run())
}

// runBench runs lodge bench and gives what it prints.
func runBench(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	err := execute(t.Context(), cmd, append([]string{"bench"}, args...))
	return out.String(), err
}

// Without flags everything is measured that a reader looks for by name, for the headline set and for the default one.
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
		"threshold_keygen_cpu_seconds_t1_l11_53", "threshold_engine_decrypt_paper_t6_l11_50", "threshold_decrypt_us_exact_t1_l11_53",
		"threshold_one_trips_paper_t1_l11_50", "threshold_masks_bytes_exact_t3_l11_50",
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

// A run with a set for tests gives, as JSON, every name that it lists, and writes its page.
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
		// A share can be 0, and what the sacrifice adds is a difference of two short runs.
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
	for _, want := range []string{"`scalar_triples_per_cpu_second_insecure_6`", "| measured | want | of it |", "`threshold_decrypt_us_paper_t1_insecure_l8_50`"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %s\n%s", want, text)
		}
	}
}

func TestBenchRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"all", "--set", "none"}, {"all", "--json", "--text"}, {"all", "--parties", "1"}, {"all", "--duration", "0s"},
		{"kernels", "--filter", "("}, {"kernels", "nonsense"},
	} {
		if _, err := runBench(t, args...); err == nil {
			t.Errorf("lodge bench %v does something", args)
		}
	}
}
