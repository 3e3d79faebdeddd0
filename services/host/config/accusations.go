package config

// Accusations configures how a party reacts when a party of the roster cheats.
type Accusations struct {
	// MaxUnnamedFailures is the number of sessions, 1 to 100, that may fail without a named party
	// before this party starts no session until its operator clears the failures; default 3.
	// Sessions that succeed in between do not reset the count.
	MaxUnnamedFailures int `yaml:"max_unnamed_failures,omitempty" default:"3" range:"1..100"`
	// Within is the time, 1h to 8760h, during which failures count; default 720h. It does not
	// restart stopped generation.
	Within Duration `yaml:"within,omitempty" default:"720h" range:"1h..8760h"`
	// OnProvenCheat is exclude (no session with a convicted party, and none of its calls) or
	// report; default exclude.
	OnProvenCheat string `yaml:"on_proven_cheat,omitempty" default:"exclude" oneof:"exclude,report"`
	// MaxEvidence limits stored evidence, apart from the first file of each accused party; default
	// 4GiB.
	MaxEvidence Bytes `yaml:"max_evidence,omitempty" default:"4GiB"`
}

// Values of Accusations.OnProvenCheat.
const (
	Exclude = "exclude"
	Report  = "report"
)
