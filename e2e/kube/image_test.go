//go:build kube

package kube

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// image packs a program into an image in the format of `docker save`. The image has the contents of
// the Dockerfile's last stage without its base: from the base, a static program needs only a user
// and certificate authorities.
func (c cluster) image(binary, inside, tag string, user int, entrypoint ...string) {
	c.t.Helper()
	program, err := os.ReadFile(binary)
	if err != nil {
		c.t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	put := func(name string, mode int64, owner int, text []byte) {
		h := &tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: mode, Uid: owner, Gid: owner, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			c.t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			c.t.Fatal(err)
		}
	}
	put("/tmp/", 0o1777, 0, nil)
	put("/var/lib/lodge/", 0o755, user, nil)
	put("/etc/passwd", 0o644, 0, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"))
	put(inside, 0o755, 0, program)
	if err := w.Close(); err != nil {
		c.t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "created": time.Unix(0, 0).UTC(),
		"config": map[string]any{"User": fmt.Sprintf("%d:%d", user, user), "Entrypoint": entrypoint, "WorkingDir": "/var/lib/lodge",
			"Env": []string{"PATH=/usr/local/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{tag}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		c.t.Fatal(err)
	}
	var archive bytes.Buffer
	w = tar.NewWriter(&archive)
	put("config.json", 0o644, 0, config)
	put("layer.tar", 0o644, 0, layer.Bytes())
	put("manifest.json", 0o644, 0, manifest)
	if err := w.Close(); err != nil {
		c.t.Fatal(err)
	}
	c.feed(&archive, "ctr", "--address", *workFlag+"/run/containerd.sock", "--namespace", "k8s.io", "images", "import", "-")
}

// images makes the images of the pods: two builds of the same source tree, and the pause image.
func (c cluster) images() {
	dockerfile, err := os.ReadFile(*treeFlag + "/Dockerfile")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, line := range []string{"USER 65532:65532", "WORKDIR /var/lib/lodge", `ENTRYPOINT ["lodge"]`} {
		if !strings.Contains(string(dockerfile), "\n"+line+"\n") {
			c.t.Errorf("the Dockerfile has no line %q: the tested image differs from it", line)
		}
	}
	c.image(pathOf("pause"), "/pause", "docker.io/library/pause:test", 65532, "/pause")
	for _, build := range builds {
		c.image(*workFlag+"/lodge-"+build, "/usr/local/bin/lodge", "docker.io/library/lodge:"+build, 65532, "lodge")
	}
}

// feed runs a program with the given input.
func (c cluster) feed(in io.Reader, name string, args ...string) string {
	c.t.Helper()
	out, err := c.output(in, name, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}
