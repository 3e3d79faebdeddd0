package multikey

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
)

// A file of ciphertexts consists of a line with its format, a line of JSON that describes the
// groups, and the encodings of the groups, consecutively.

const fileLine = "lodge multikey ciphertexts 1\n"

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
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	out.WriteString(fileLine) // a bufio.Writer keeps its first error for Flush
	out.Write(append(head, '\n'))
	for i := range groups {
		out.Write(groups[i].append(nil, s))
	}
	return out.Flush()
}

// Read reads the output of Write to the end of r. The error wraps [ErrFile], [multikey.ErrSet], or
// [multikey.ErrCRS].
func Read(r io.Reader, s *multikey.Scheme) ([]Group, error) {
	in := bufio.NewReader(r)
	line := make([]byte, len(fileLine))
	if _, err := io.ReadFull(in, line); err != nil || string(line) != fileLine {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrFile, fileLine[:len(fileLine)-1])
	}
	h, err := readHead(in)
	if err != nil {
		return nil, err
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
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: the ciphertexts are followed by more data", ErrFile)
	}
	return groups, nil
}

// readHead reads the line of JSON, which must be exactly in the form that Write writes.
func readHead(in *bufio.Reader) (h fileHead, err error) {
	var line []byte
	for len(line) == 0 || line[len(line)-1] != '\n' {
		b, err := in.ReadByte()
		if err != nil || len(line) == maxFileHead {
			return h, fmt.Errorf("%w: its header line does not end", ErrFile)
		}
		line = append(line, b)
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, fmt.Errorf("%w: %w", ErrFile, err)
	}
	again, err := json.Marshal(h)
	if err != nil || string(again)+"\n" != string(line) || len(h.Groups) > maxFileGroups {
		return h, fmt.Errorf("%w: its header line is not in canonical form", ErrFile)
	}
	return h, nil
}
