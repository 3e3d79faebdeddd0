package config

import (
	"strings"
	"testing"
	"time"
)

// By default products are limited, and passive security and unproved inputs are refused.
func TestLinear(t *testing.T) {
	f, err := loadThreshold(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if f.AllowPassiveLinear || f.AllowUnprovedLinear || f.Linear.ProductsPerHour != 100 || f.Linear.WaitTime() != 2*time.Minute || f.Linear.DistanceBudget() != 0x1p-30 {
		t.Errorf("by default: %v, %v, %+v", f.AllowPassiveLinear, f.AllowUnprovedLinear, f.Linear)
	}
	f, err = loadThreshold(t, "allow_passive_linear: true\nallow_unproved_linear: true\nlinear: {products_per_hour: 7, wait: 30s, log_distance_budget: -35, require_proofs: true}\n")
	if err != nil {
		t.Fatal(err)
	}
	if !f.AllowPassiveLinear || !f.AllowUnprovedLinear || f.Linear.ProductsPerHour != 7 || f.Linear.WaitTime() != 30*time.Second || f.Linear.DistanceBudget() != 0x1p-35 {
		t.Errorf("%v, %v, %+v", f.AllowPassiveLinear, f.AllowUnprovedLinear, f.Linear)
	}
	for bad, why := range map[string]string{
		"products_per_hour: -1": "must be at least 1", "wait: -1s": "not a positive time span", "set: P13-40": "config.Linear",
		"log_distance_budget: -41": "from -40 to -10", "log_distance_budget: -9": "from -40 to -10", "log_distance_budget: .nan": "from -40 to -10",
		"require_proofs: false": "allow_unproved_linear: true",
	} {
		if _, err := loadThreshold(t, "linear: {"+bad+"}\n"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
