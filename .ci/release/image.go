// Command image packs the files of a directory into container images of one platform each, without
// a container runtime, so that an image depends only on the files:
//
//	image TAG OUT.tar PLATFORM DIR [LABEL=VALUE...]
//
// `docker load` and `podman load` read OUT.tar.
package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// user runs Lodge, as in the image of the Dockerfile.
const user = 65532

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: image TAG OUT.tar PLATFORM DIR [LABEL=VALUE...]")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func pack(tag, out, platform, dir string, labels []string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	made := time.Unix(seconds, 0).UTC()
	content, err := layer(dir, made)
	if err != nil {
		return err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return err
	}
	p, err := v1.ParsePlatform(platform)
	if err != nil {
		return err
	}
	config := &v1.ConfigFile{Architecture: p.Architecture, OS: p.OS, Variant: p.Variant, Created: v1.Time{Time: made}, RootFS: v1.RootFS{Type: "layers"}}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/var/lib/lodge",
		Env:        []string{"PATH=/usr/local/bin"},
		Entrypoint: []string{"lodge"}, Cmd: []string{"help"}, Labels: map[string]string{},
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "lodge", "health"},
			Interval: 5 * time.Second, Timeout: 5 * time.Second, StartPeriod: time.Minute,
		},
	}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		config.Config.Labels[key] = value
	}
	image, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		return err
	}
	image, err = mutate.Append(image, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: made}, CreatedBy: "make release"}})
	if err != nil {
		return err
	}
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(out, ref, image)
}

// layer returns the files of a directory as a tar archive with one time for all of them, and with
// empty directories for the data and for temporary files.
func layer(dir string, made time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	header := func(name string, mode int64, size int64, owner int) error {
		h := &tar.Header{Name: name, Mode: mode, Size: size, ModTime: made, Uid: owner, Gid: owner, Format: tar.FormatPAX}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		return w.WriteHeader(h)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			return header(name+"/", 0o755, 0, 0)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := header(name, int64(info.Mode().Perm()&0o755), int64(len(content)), 0); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	for _, empty := range []struct {
		name  string
		mode  int64
		owner int
	}{{"tmp/", 0o1777, 0}, {"var/", 0o755, 0}, {"var/lib/", 0o755, 0}, {"var/lib/lodge/", 0o755, user}} {
		if err == nil {
			err = header(empty.name, empty.mode, 0, empty.owner)
		}
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}
