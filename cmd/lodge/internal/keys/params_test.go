package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
)

func runParams(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := paramsCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	cmd.SilenceUsage = true
	err := cmd.Execute()
	return out.String(), err
}

func TestParamsList(t *testing.T) {
	out, err := runParams(t, "list")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"S14-32 (default)", "S14-64", "S13-8", "S13-16", "S15-128", "p64..p4096", "passive", "T11-4 (default)", "128.4 (111.6)", "2^-135", "L11-53 (legacy: new keys use T11-53)", "128.0 (118.2)", "B13-17 (default)", "2^20, from level 1", "M11-4-128 (default)", "M11-4 (legacy: new keys use M11-4-128)"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, params.InsecurePrefix) {
		t.Errorf("insecure sets in\n%s", out)
	}
	if out, err = runParams(t, "list", "--all", "--json"); err != nil {
		t.Fatal(err)
	}
	var list []setSummary
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != len(params.Sets())+len(lwe.Sets())+len(bgv.Sets())+len(multikey.Sets()) || list[0].StatSecurityBits != 47 || len(list[0].Hash) != 64 {
		t.Errorf("list %+v", list)
	}
}

func TestParamsShowMultikey(t *testing.T) {
	out, err := runParams(t, "show", "M11-4-128")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"128.3 (106.7)", "2^-166", "82.2 MB", "6 bits", "hash "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out, err = runParams(t, "show", "insecure-M11-V"); err != nil || !strings.Contains(out, "too large for joint decryption") || !strings.Contains(out, "103.6 (86.6), insecure") {
		t.Errorf("%v in\n%s", err, out)
	}
	if out, err = runParams(t, "show", "insecure-M8-32"); err != nil || !strings.Contains(out, " insecure") || strings.Contains(out, "0.0 (0.0)") {
		t.Errorf("%v in\n%s", err, out)
	}
	var d multikeySummary
	if out, err = runParams(t, "show", "M11-16-128", "--json"); err != nil || json.Unmarshal([]byte(out), &d) != nil || len(d.Quorums) != 15 || d.Quorums[14].LogFailure > -128 {
		t.Errorf("%v: %+v", err, d)
	}
	if _, err = runParams(t, "show", "M11-4-128", "--field", "p64"); err == nil {
		t.Error("a field of a set that has none")
	}
}

func TestParamsShowBGV(t *testing.T) {
	out, err := runParams(t, "show", "B13-17")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"65537", "below 2^17", "16       8       21", "2^-41.0", "113 kB"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out, err = runParams(t, "show", "B12-17", "--json"); err != nil {
		t.Fatal(err)
	}
	var d bgvDetail
	if err := json.Unmarshal([]byte(out), &d); err != nil || d.Flooding || len(d.Uses) != 4 || d.Uses[0].FloodBytes != 0 || d.Uses[0].AnswerBits == 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err = runParams(t, "show", "B12-17", "--field", "p64"); err == nil {
		t.Error("a field of a set that has none")
	}
}

func TestParamsShow(t *testing.T) {
	out, err := runParams(t, "show", "S13-8")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"matrix 128", "n=16", "ternary", "3.19"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out, err = runParams(t, "show", "S13-8", "--json"); err != nil {
		t.Fatal(err)
	}
	var d setDetail
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Verdicts) != 20 || !d.Verdicts[0].Fits || *d.Verdicts[0].SpareBits < 1 || len(d.Q) != 5 {
		t.Errorf("detail %+v", d)
	}
}

func TestParamsShowUse(t *testing.T) {
	args := []string{"show", "S14-32", "--field", "p128", "--parties", "3", "--dim", "128"}
	out, err := runParams(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"327.8, 343.0 bits", "47 bits", "mac.c", "9, MAC key 44"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out, err = runParams(t, append(args, "--json")...); err != nil {
		t.Fatal(err)
	}
	var d useDetail
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if d.Parties != 3 || d.Batch != 257 || len(d.Noise) != 18 {
		t.Errorf("use %+v", d)
	}
}

func TestParamsRefuses(t *testing.T) {
	var unknown *keyset.UnknownError
	var miss *params.DoesNotFit
	if _, err := runParams(t, "show", "S99"); !errors.As(err, &unknown) {
		t.Errorf("unknown set: %v", err)
	}
	if _, err := runParams(t, "show", "S13-16", "--field", "p128", "--parties", "16", "--dim", "128"); !errors.As(err, &miss) {
		t.Errorf("use that does not fit: %v", err)
	}
	if _, err := runParams(t, "show", "S13-16", "--field", "p128", "--parties", "1"); !errors.Is(err, params.ErrUse) {
		t.Errorf("one party: %v", err)
	}
}

func TestWeakStatisticalSecurityIsFlagged(t *testing.T) {
	s, err := params.Lookup(params.Default)
	if err != nil {
		t.Fatal(err)
	}
	s.LambdaDDec = 72 // 39 bits at N = 2^14
	if got := statistical(summarize(s)); got != "39 (rejected)" {
		t.Errorf("statistical security is shown as %q", got)
	}
}

// Sets for threshold keys list their uses.
func TestParamsShowThreshold(t *testing.T) {
	out, err := runParams(t, "show", "T11-4")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"136.7 bits of the ring secret", "111.6 against quantum", "never", "0..15", "passive"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out, err = runParams(t, "show", "T11-53", "--json"); err != nil {
		t.Fatal(err)
	}
	var d thresholdSetDetail
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if !d.Threshold || d.P != 16 || len(d.Noise) != 4 || len(d.Noise[0].Forms) != 2 || d.Noise[0].Forms[1].FailureProbability <= 0 || d.Noise[0].Lookup > -128 {
		t.Errorf("%+v", d)
	}
	if out, err = runParams(t, "show", "L11-53"); err != nil || !strings.Contains(out, "legacy    set L11-53 is legacy (122.5 bits of classical security") {
		t.Errorf("a legacy set: %v in\n%s", err, out)
	}
	if _, err = runParams(t, "show", "T11-4", "--field", "p64"); err == nil {
		t.Error("a set for threshold keys has a field")
	}
}
