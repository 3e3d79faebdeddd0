package tuplefile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"github.com/lodge-mpc/lodge/clients/go/internal/jsonfile"
	"github.com/lodge-mpc/lodge/engine/kind"
)

// Names and limits of the format.
const (
	FormatVersion = 1
	ManifestName  = "manifest.json"
	DataName      = "tuples.bin"

	maxManifestBytes = 1 << 20
	maxModulusDigits = 5000    // a modulus of 16384 bits has 4933 digits
	maxParties       = 1 << 10 // far above any roster
	maxDim           = 1 << 16
	maxTuples        = 1 << 40
	maxValues        = 1 << 24 // in one tuple; 2048 x 2048 x 2048 fits
)

// Kinds of tuples, with the values of a record: those listed, and the MAC of each. Package
// engine/kind describes them.
const (
	Scalar  = "scalar"  // a, b, ab
	Matrix  = "matrix"  // A, B, AB
	Square  = "square"  // a, a^2
	Random  = "random"  // a
	Bit     = "bit"     // 0 or 1
	Inverse = "inverse" // a, 1/a
	Input   = "input"   // a; and, in the record of InputParty, the plaintext value after the MAC

	ConvolutionKind = "convolution" // an image X, kernels W, and their convolution Y
)

// Errors of this package; every error wraps one of them or is the file system's.
var (
	ErrManifest  = errors.New("tuplefile: bad manifest")
	ErrTruncated = errors.New("tuplefile: data file is shorter than its manifest says")
	ErrTrailing  = errors.New("tuplefile: data file is longer than its manifest says")
	ErrDigest    = errors.New("tuplefile: data file does not match its digest")
	ErrCount     = errors.New("tuplefile: wrong number of bytes written")
)

// Dims is the shape of a product: A is M x K, B is K x N, C is M x N. For all kinds except matrices
// it is 1 x 1 x 1.
type Dims struct {
	M int `json:"m"`
	K int `json:"k"`
	N int `json:"n"`
}

// File describes a data file in a [Manifest].
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Manifest describes the content of one party's directory. Its MACKeyShare is secret; String and
// GoString omit it.
type Manifest struct {
	FormatVersion int    `json:"format_version"`
	Kind          string `json:"kind"`
	Params        string `json:"params"`  // parameter set, as S14-32
	Field         string `json:"field"`   // as p128
	Modulus       string `json:"modulus"` // decimal
	Parties       int    `json:"parties"`
	Party         int    `json:"party"` // from 0
	Epoch         uint64 `json:"epoch"`
	Batch         string `json:"batch"` // the same at every party
	Tuples        int64  `json:"tuples"`
	Dims          Dims   `json:"dims"`
	InputParty    int    `json:"input_party,omitempty"` // of input masks: the party that knows the values
	// Convolution is the shape of convolutions, nil for other tuples.
	Convolution *Convolution `json:"convolution,omitempty"`
	// MACKeyShare is decimal, below the modulus; it is empty if only the tuples were drawn.
	MACKeyShare string `json:"mac_key_share,omitempty"`
	// MACKeyPooled states that the share was drawn for pooling with the others, so the party has
	// retired its epoch.
	MACKeyPooled   bool   `json:"mac_key_pooled,omitempty"`
	KeygenSecurity string `json:"keygen_security"`
	// NoSacrifice states that products were made without a sacrifice: malformed evaluation keys
	// would have made them wrong.
	NoSacrifice bool   `json:"no_sacrifice,omitempty"`
	Files       []File `json:"files"`
}

// String describes the manifest without its secret.
func (m Manifest) String() string {
	shape := fmt.Sprintf("%dx%dx%d", m.Dims.M, m.Dims.K, m.Dims.N)
	if m.Convolution != nil {
		shape = m.Convolution.String()
	}
	return fmt.Sprintf("party %d of %d: %d %s tuples %s over %s (%s), epoch %d, batch %s",
		m.Party, m.Parties, m.Tuples, m.Kind, shape, m.Field, m.Params, m.Epoch, m.Batch)
}

// GoString is String.
func (m Manifest) GoString() string { return m.String() }

// Values returns the number of values in one tuple, without MACs: for matrices mk + kn + mn.
func (m Manifest) Values() int {
	return kind.Of(m.Kind).Values(m.Shape())
}

// Shape returns the shape of a tuple, which is zero for single elements.
func (m Manifest) Shape() (s kind.Shape) {
	switch {
	case m.Convolution != nil:
		s.Convolution = *m.Convolution
	case m.Dims != Dims{1, 1, 1} || kind.Of(m.Kind).Shaped():
		s.Matrix = kind.MatrixShape{Rows: m.Dims.M, Inner: m.Dims.K, Cols: m.Dims.N}
	}
	return s
}

// Clear returns the number of plaintext values after the shares in one tuple's record at this
// party.
func (m Manifest) Clear() int {
	if m.Party != m.InputParty {
		return 0
	}
	return kind.Of(m.Kind).Clear(m.Shape())
}

// RecordBytes returns the length of one tuple's record at this party for elements of the given
// number of bytes.
func (m Manifest) RecordBytes(elementBytes int) int64 {
	return int64(2*m.Values()+m.Clear()) * int64(elementBytes)
}

// check validates everything that needs no arithmetic modulo the modulus. files states whether
// Files must be complete.
func (m Manifest) check(files bool) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrManifest, fmt.Sprintf(format, args...))
	}
	k := kind.Of(m.Kind)
	switch {
	case m.FormatVersion != FormatVersion:
		return bad("format_version %d, want %d", m.FormatVersion, FormatVersion)
	case !k.Known():
		return bad("kind must be one of %s", strings.Join(kind.Names(), ", "))
	case (m.Convolution != nil) != (k.Describe().Form == kind.Convolutions):
		return bad("a manifest must have the shape of a convolution if and only if its kind is convolution")
	case m.Parties < 1 || m.Parties > maxParties:
		return bad("%d parties", m.Parties)
	case m.Party < 0 || m.Party >= m.Parties:
		return bad("party %d of %d", m.Party, m.Parties)
	case m.InputParty < 0 || m.InputParty >= m.Parties || m.InputParty > 0 && !k.Owned():
		return bad("input_party %d of %d with kind %s", m.InputParty, m.Parties, m.Kind)
	case m.NoSacrifice && !k.Multiplies():
		return bad("no_sacrifice with kind %s, which has no products", m.Kind)
	case m.Tuples < 0 || m.Tuples > maxTuples:
		return bad("%d tuples", m.Tuples)
	case !dimOK(m.Dims.M) || !dimOK(m.Dims.K) || !dimOK(m.Dims.N):
		return bad("dims %dx%dx%d", m.Dims.M, m.Dims.K, m.Dims.N)
	case m.Convolution != nil && m.Convolution.Check() != nil:
		return bad("%v", m.Convolution.Check())
	case m.Values() > maxValues:
		return bad("%d values in one tuple, at most %d", m.Values(), maxValues)
	case k.Describe().Form != kind.Matrices && m.Dims != Dims{1, 1, 1}:
		return bad("tuples that are not matrices with dims %dx%dx%d", m.Dims.M, m.Dims.K, m.Dims.N)
	case !decimal(m.Modulus):
		return bad("modulus is not a canonical decimal number")
	case m.MACKeyShare != "" && !decimal(m.MACKeyShare):
		return bad("mac_key_share is not a canonical decimal number")
	case m.MACKeyPooled && m.MACKeyShare == "":
		return bad("mac_key_pooled without mac_key_share")
	}
	if !files {
		return nil
	}
	if len(m.Files) != 1 || m.Files[0].Name != DataName {
		return bad("files must name %s alone", DataName)
	}
	if d, err := hex.DecodeString(m.Files[0].SHA256); err != nil || len(d) != 32 {
		return bad("sha256 of %s is not 64 hexadecimal digits", DataName)
	}
	if m.Files[0].Bytes < 0 {
		return bad("%s has negative length", DataName)
	}
	return nil
}

// dataBytes returns the length that the data file must have.
func (m Manifest) dataBytes(elementBytes int) (int64, error) {
	hi, lo := bits.Mul64(uint64(m.RecordBytes(elementBytes)), uint64(m.Tuples))
	if hi != 0 || lo > 1<<62 {
		return 0, fmt.Errorf("%w: %d tuples of %d bytes are too large", ErrManifest, m.Tuples, m.RecordBytes(elementBytes))
	}
	return int64(lo), nil
}

func dimOK(d int) bool { return d >= 1 && d <= maxDim }

// decimal accepts one form per number: digits only, no leading zero.
func decimal(s string) bool {
	if s == "" || len(s) > maxModulusDigits || (s[0] == '0' && s != "0") {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// ParseManifest decodes a manifest strictly: only known keys, each value in range, and no further
// data.
func ParseManifest(data []byte) (Manifest, error) {
	var m Manifest
	// Errors of the JSON can quote the input, which holds a key share.
	if err := jsonfile.Decode(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("%w: not exactly one JSON object of the expected form", ErrManifest)
	}
	if err := m.check(true); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// ReadManifest reads DIR/manifest.json.
func ReadManifest(dir string) (Manifest, error) {
	f, err := os.Open(filepath.Join(dir, ManifestName))
	if err != nil {
		return Manifest{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return Manifest{}, err
	}
	if len(data) > maxManifestBytes {
		return Manifest{}, fmt.Errorf("%w: more than %d bytes", ErrManifest, maxManifestBytes)
	}
	return ParseManifest(data)
}

// AddPooledKey adds a share of the MAC key, in decimal, that was drawn for pooling to the manifest
// of a directory. The manifest must not have a different share.
func AddPooledKey(dir, share string) error {
	m, err := ReadManifest(dir)
	if err != nil {
		return err
	}
	if m.MACKeyShare != "" && m.MACKeyShare != share {
		return fmt.Errorf("%w: %s already has a different share of the MAC key", ErrManifest, dir)
	}
	m.MACKeyShare, m.MACKeyPooled = share, true
	return WriteManifest(dir, m)
}

// Find returns the share directories among dirs. A directory without a manifest is replaced by its
// immediate subdirectories that have one.
func Find(dirs ...string) ([]string, error) {
	var found []string
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("%w: %s is not a directory", ErrManifest, dir)
		}
		if _, err := os.Stat(filepath.Join(dir, ManifestName)); err == nil {
			found = append(found, dir)
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		before := len(found)
		for _, e := range entries {
			sub := filepath.Join(dir, e.Name())
			if _, err := os.Stat(filepath.Join(sub, ManifestName)); err == nil {
				found = append(found, sub)
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("%w: no %s in %s or below it", ErrManifest, ManifestName, dir)
		}
	}
	return found, nil
}
