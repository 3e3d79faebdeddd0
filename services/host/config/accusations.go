package config

import "time"

// Accusations configures how a party reacts when a party of the roster cheats.
type Accusations struct {
	// MaxUnnamedFailures is the number of sessions that may fail through a cheat that cannot be attributed to a party.
	// After that many the party starts no session with the roster until its operator clears the failures. 1 to 100,
	// default 3. Successful sessions in between do not reset the count.
	MaxUnnamedFailures int `yaml:"max_unnamed_failures,omitempty"`
	// Within is the time window in which failures count, 1h to 8760h; default 720h. A roster that has been stopped stays
	// stopped after the window has passed.
	Within Duration `yaml:"within,omitempty"`
	// OnProvenCheat is "exclude" (the default) or "report". With "exclude" this party starts no session with a party
	// that evidence convicts, and rejects its calls. With "report" it only reports the cheat.
	OnProvenCheat string `yaml:"on_proven_cheat,omitempty"`
	// MaxEvidence limits the disk space for evidence, not counting the first piece about each cheating party; default 4GiB.
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
