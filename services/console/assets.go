package console

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// dist is the built front end (web/README.md says how it is built).
//
//go:embed all:web/dist
var dist embed.FS

// assets returns the files of the front end.
func assets() fs.FS {
	sub, err := fs.Sub(dist, "web/dist")
	if err != nil {
		panic(err) // the directory is part of the program
	}
	return sub
}

// pages lists the addresses that show the front end, which decides what to show at each.
var pages = []string{"/{$}", "/cluster", "/jobs", "/jobs/{id}", "/stock", "/keys", "/network", "/conduct", "/audit", "/process"}

// page serves the front end's only page. It contains no data of the process.
func (c *Console) page(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, c.files, "index.html")
}

// asset serves a file of the front end. The names of files in /assets contain their hash.
func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if info, err := fs.Stat(c.files, name); err != nil || info.IsDir() {
		http.NotFound(w, r)
		return
	}
	if strings.HasPrefix(name, "assets/") {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeFileFS(w, r, c.files, name)
}
