package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/lodge-mpc/lodge/services/session/job"
)

// VersionReport says which build this is, and what must be the same at all parties.
type VersionReport struct {
	Version  string          `json:"version"`          // of the module
	Commit   string          `json:"commit,omitempty"` // that it was built from, if Go recorded it
	Modified bool            `json:"modified"`         // since that commit
	Time     string          `json:"time,omitempty"`   // of the commit
	Go       string          `json:"go"`
	Platform string          `json:"platform"`
	Protocol uint32          `json:"protocol_version"`
	Sets     []VersionOfASet `json:"parameter_sets"`
}

type VersionOfASet struct {
	Name     string `json:"name"`
	Insecure bool   `json:"insecure,omitempty"`
	Hash     string `json:"hash"`
}

// Revision is the commit of a build that Go does not record, such as that of the image, which has no git.
var Revision string

// Build is what Go recorded of this build.
func Build() VersionReport {
	r := VersionReport{Version: "unknown", Commit: Revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Protocol: job.ProtocolVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	if r.Version = info.Main.Version; r.Version == "" {
		r.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Commit = s.Value
		case "vcs.time":
			r.Time = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
	return r
}

// Version is the module's version with the commit where there is one; processes compare it.
func Version() string {
	r := Build()
	if r.Commit != "" {
		return r.Version + " " + r.Commit
	}
	return r.Version
}
