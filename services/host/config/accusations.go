package config

import "time"

// Accusations say what follows when a party of the roster cheats.
type Accusations struct {
	// MaxUnnamedFailures is how many sessions may end because somebody cheated whom nobody can name, before this party
	// begins no session with the roster until its operator clears them; 1 to 100, default 3. Success in between changes
	// nothing.
	MaxUnnamedFailures int `yaml:"max_unnamed_failures,omitempty"`
	// Within is the time in which they count, 1h to 8760h; default 720h. What has stopped does not start again with time.
	Within Duration `yaml:"within,omitempty"`
	// OnProvenCheat is "exclude", the default: no session with a party that evidence convicts, and none of its calls; or
	// "report": nothing but the report.
	OnProvenCheat string `yaml:"on_proven_cheat,omitempty"`
	// MaxEvidence is how much evidence is kept, apart from the first of each culprit; default 4GiB.
	MaxEvidence Bytes `yaml:"max_evidence,omitempty"`
}

// What follows a proven cheat.
const (
	Exclude = "exclude"
	Report  = "report"
)

const (
	defaultUnnamedFailures = 3
	maxUnnamedFailures     = 100
	defaultWithin          = Duration(720 * time.Hour)
	maxWithin              = Duration(8760 * time.Hour)
	defaultEvidence        = Bytes(4 << 30)
)

// fill fills in and checks.
func (a *Accusations) fill(c *check) {
	if a.MaxUnnamedFailures == 0 {
		a.MaxUnnamedFailures = defaultUnnamedFailures
	}
	if a.Within == 0 {
		a.Within = defaultWithin
	}
	if a.OnProvenCheat == "" {
		a.OnProvenCheat = Exclude
	}
	if a.MaxEvidence == 0 {
		a.MaxEvidence = defaultEvidence
	}
	if a.MaxUnnamedFailures < 1 || a.MaxUnnamedFailures > maxUnnamedFailures {
		c.failf("accusations.max_unnamed_failures: %d; 1 to %d", a.MaxUnnamedFailures, maxUnnamedFailures)
	}
	if a.Within < Duration(time.Hour) || a.Within > maxWithin {
		c.failf("accusations.within: %s; 1h to %s", time.Duration(a.Within), time.Duration(maxWithin))
	}
	if a.OnProvenCheat != Exclude && a.OnProvenCheat != Report {
		c.failf("accusations.on_proven_cheat: %q; %s or %s", a.OnProvenCheat, Exclude, Report)
	}
}
