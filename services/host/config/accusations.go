package config

import "time"

// Accusations configures how a party reacts when a party of the roster cheats.
type Accusations struct {
	// MaxUnnamedFailures is the number of sessions, 1 to 100, that may fail without a named party
	// before this party starts no session until its operator clears the failures; default 3.
	// Sessions that succeed in between do not reset the count.
	MaxUnnamedFailures int `yaml:"max_unnamed_failures,omitempty"`
	// Within is the time, 1h to 8760h, during which failures count; default 720h. It does not
	// restart stopped generation.
	Within Duration `yaml:"within,omitempty"`
	// OnProvenCheat is exclude (no session with a convicted party, and none of its calls) or
	// report; default exclude.
	OnProvenCheat string `yaml:"on_proven_cheat,omitempty"`
	// MaxEvidence limits stored evidence, apart from the first file of each accused party; default
	// 4GiB.
	MaxEvidence Bytes `yaml:"max_evidence,omitempty"`
}

// Values of Accusations.OnProvenCheat.
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

// fill sets defaults and validates the values.
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
		c.failf("accusations.max_unnamed_failures: %d; must be 1 to %d", a.MaxUnnamedFailures, maxUnnamedFailures)
	}
	if a.Within < Duration(time.Hour) || a.Within > maxWithin {
		c.failf("accusations.within: %s; must be 1h to %s", time.Duration(a.Within), time.Duration(maxWithin))
	}
	if a.OnProvenCheat != Exclude && a.OnProvenCheat != Report {
		c.failf("accusations.on_proven_cheat: %q; must be %s or %s", a.OnProvenCheat, Exclude, Report)
	}
}
