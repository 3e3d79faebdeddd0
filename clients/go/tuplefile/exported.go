package tuplefile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lodge-mpc/lodge/clients/go/internal/jsonfile"
)

// ExportedName is a file in a directory whose shares have been exported elsewhere; it prevents a
// second export.
const ExportedName = "exported.json"

// Exported records a destination of a directory's shares.
type Exported struct {
	To   string    `json:"to"`
	Time time.Time `json:"time"` // UTC; start of the export
}

// Exports returns the destinations to which the shares of a directory have been, or may have been,
// exported, in order. A record that cannot be read counts as an unknown place.
func Exports(dir string) (list []Exported, err error) {
	b, err := os.ReadFile(filepath.Join(dir, ExportedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(b) > maxManifestBytes || json.Unmarshal(b, &list) != nil || len(list) == 0 {
		return []Exported{{To: "an unknown place"}}, nil
	}
	return list, nil
}

// NoteExport records on disk, in addition to earlier records, that the shares of a directory are
// about to be exported. If another process writes the first record concurrently, the error is
// [fs.ErrExist].
func NoteExport(dir, to string) error {
	list, err := Exports(dir)
	if err != nil {
		return err
	}
	first := len(list) == 0
	list = append(list, Exported{To: to, Time: time.Now().UTC().Truncate(time.Second)})
	if !first {
		err = writeJSON(dir, ExportedName, list)
	} else {
		err = writeFirst(filepath.Join(dir, ExportedName), list)
	}
	return errors.Join(err, syncDir(dir))
}

func writeFirst(path string, v any) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = jsonfile.Write(f, v)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ForgetExport removes the last record, because no share was exported.
func ForgetExport(dir string) error {
	list, err := Exports(dir)
	if err != nil {
		return err
	}
	if len(list) > 1 {
		return errors.Join(writeJSON(dir, ExportedName, list[:len(list)-1]), syncDir(dir))
	}
	return errors.Join(os.Remove(filepath.Join(dir, ExportedName)), syncDir(dir))
}
