package config

import (
	"strings"
	"testing"
	"time"
)

// What clients may have multiplied is bounded, whether anything is said or not, and passive security is off.
func TestLinear(t *testing.T) {
	f, err := loadThreshold(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if f.AllowPassiveLinear || f.Linear.RequireProofs || f.Linear.ProductsPerHour != 1000 || f.Linear.WaitTime() != 2*time.Minute {
		t.Errorf("by default: %v, %+v", f.AllowPassiveLinear, f.Linear)
	}
	f, err = loadThreshold(t, "allow_passive_linear: true\nlinear: {products_per_hour: 7, wait: 30s, require_proofs: true}\n")
	if err != nil {
		t.Fatal(err)
	}
	if !f.AllowPassiveLinear || f.Linear.ProductsPerHour != 7 || f.Linear.WaitTime() != 30*time.Second || !f.Linear.RequireProofs {
		t.Errorf("%v, %+v", f.AllowPassiveLinear, f.Linear)
	}
	for bad, why := range map[string]string{"products_per_hour: -1": "negative", "wait: -1s": "not a positive time span", "set: P13-40": "config.Linear"} {
		if _, err := loadThreshold(t, "linear: {"+bad+"}\n"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
