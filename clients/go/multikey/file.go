package multikey

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/clients/go/internal/jsonfile"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
)

// A file of ciphertexts consists of a line with its format, a line of JSON that describes the
// groups, and the encodings of the groups, consecutively.

const fileFormat = "lodge multikey ciphertexts 1"

// ErrFile reports that a file does not hold ciphertexts of the scheme.
var ErrFile = errors.New("multikey: not a file of multi-key ciphertexts")

const (
	maxFileHead   = 1 << 20
	maxFileGroups = 1 << 12
)

type fileHead struct {
	Set    string      `json:"set"`
	CRS    string      `json:"crs"` // digest of the common reference string
	Groups []fileGroup `json:"groups"`
}

type fileGroup struct {
	Form  string   `json:"form"` // batch or ciphertexts
	Count uint32   `json:"count"`
	Keys  []string `json:"keys"`
}

var fileForms = map[string]multikeyv1.InputForm{
	"batch": multikeyv1.InputForm_INPUT_FORM_BATCH, "ciphertexts": multikeyv1.InputForm_INPUT_FORM_CIPHERTEXTS,
}

// Write writes groups to a file.
func Write(w io.Writer, s *multikey.Scheme, groups []Group) error {
	crs := s.CRS()
	h := fileHead{Set: s.Name, CRS: hex.EncodeToString(crs[:]), Groups: []fileGroup{}}
	for i := range groups {
		d := groups[i].describe()
		g := fileGroup{Form: "ciphertexts", Count: d.GetCount(), Keys: []string{}}
		if groups[i].Batch != nil {
			g.Form = "batch"
		}
		for _, id := range d.GetKeys() {
			g.Keys = append(g.Keys, hex.EncodeToString(id))
		}
		h.Groups = append(h.Groups, g)
	}
	head, err := jsonfile.Header(fileFormat, h)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	out.Write(head) // a bufio.Writer keeps its first error for Flush
	for i := range groups {
		out.Write(groups[i].append(nil, s))
	}
	return out.Flush()
}

// Read reads the output of Write to the end of r. The error wraps [ErrFile], [multikey.ErrSet], or
// [multikey.ErrCRS].
func Read(r io.Reader, s *multikey.Scheme) ([]Group, error) {
	in := bufio.NewReader(r)
	var h fileHead
	if err := jsonfile.ReadHeader(in, fileFormat, maxFileHead, &h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if len(h.Groups) > maxFileGroups {
		return nil, fmt.Errorf("%w: %d groups; at most %d", ErrFile, len(h.Groups), maxFileGroups)
	}
	crs := s.CRS()
	if h.Set != s.Name {
		return nil, fmt.Errorf("%w: the ciphertexts are of %.40q, not of %s", multikey.ErrSet, h.Set, s.Name)
	}
	if h.CRS != hex.EncodeToString(crs[:]) {
		return nil, fmt.Errorf("%w: the ciphertexts", multikey.ErrCRS)
	}
	var groups []Group
	for i, x := range h.Groups {
		d := &multikeyv1.InputGroup{Form: fileForms[x.Form], Count: x.Count}
		for _, k := range x.Keys {
			id, err := hex.DecodeString(k)
			if err != nil || len(id) != len(multikey.KeyID{}) || hex.EncodeToString(id) != k {
				return nil, fmt.Errorf("%w: group %d: %.80q is not a key name", ErrFile, i, k)
			}
			d.Keys = append(d.Keys, id)
		}
		if x.Count == 0 || x.Count > circuit.MaxWires || len(d.GetKeys()) > s.Parties || d.GetForm() == 0 {
			return nil, fmt.Errorf("%w: group %d of %d", ErrFile, i, x.Count)
		}
		size := s.CiphertextSize(len(d.GetKeys())) * int(x.Count)
		if x.Form == "batch" {
			size = s.BatchSize(int(x.Count))
		}
		var b bytes.Buffer // grows with the received data
		if _, err := io.CopyN(&b, in, int64(size)); err != nil {
			return nil, fmt.Errorf("%w: group %d: %w", ErrFile, i, err)
		}
		g, _, err := decode(s, d, b.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%w: group %d: %w", ErrFile, i, err)
		}
		groups = append(groups, g)
	}
	if err := jsonfile.End(in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return groups, nil
}
