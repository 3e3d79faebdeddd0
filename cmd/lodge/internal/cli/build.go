package cli

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/lodge-mpc/lodge/services/session/job"
)

// VersionReport describes this build and everything that all parties must agree on.
type VersionReport struct {
	Version  string          `json:"version"`          // of the release, or of the Go module
	Commit   string          `json:"commit,omitempty"` // the commit of the build, if Go recorded it
	Modified bool            `json:"modified"`         // the tree differed from that commit
	Time     string          `json:"time,omitempty"`   // time of the commit
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

// Revision is the commit of a build for which Go records no commit, such as the image, which has no
// git.
var Revision string

// Release is the version of a release.
var Release string

// Build returns the information that Go recorded about this build.
func Build() VersionReport {
	r := VersionReport{Version: "unknown", Commit: Revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Protocol: job.ProtocolVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	r.Version = cmp.Or(Release, info.Main.Version, "(devel)")
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

// Version returns the version of the module followed by the commit, if there is one. Processes
// compare it.
func Version() string {
	r := Build()
	if r.Commit != "" {
		return r.Version + " " + r.Commit
	}
	return r.Version
}
