package threshold

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"github.com/lodge-mpc/lodge/clients/go/internal/jsonfile"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/lwe"
)

// File holds ciphertexts under threshold keys in the form of files, which [ReadFile] reads: LWE
// ciphertexts of one message each, or ring ciphertexts each of which, except the last, has
// Coefficients messages.
type File struct {
	Epoch    uint64
	Params   string
	Keys     [32]byte // digest of their keys
	Encoding lwe.Encoding
	// Messages are in the first coefficients of ring ciphertexts; coefficients after the last
	// message are unused.
	Messages     int
	Coefficients int // number of opened coefficients of each ring ciphertext; 0 for LWE ciphertexts

	LWE  []*lwe.LWE
	Ring []*lwe.Ring
	// BGV holds ciphertexts of one level, with values in Slots, or in the first Coefficients.
	BGV   []*rlwe.Ciphertext
	Slots bool
	// Flooding requests decryption of BGV ciphertexts with flooding. It is not stored in files.
	Flooding bool
}

// fileMagic is the first line of a file of ciphertexts. A line of JSON and the encodings of the
// ciphertexts follow.
const fileMagic = "lodge threshold ciphertexts 1"

const (
	maxFileHeader = 4 << 10
	// MaxFileBytes bounds the size of the ciphertexts of one file.
	MaxFileBytes = 1 << 30
)

// fileHeader is the line of JSON.
type fileHeader struct {
	Epoch        uint64 `json:"epoch"`
	Params       string `json:"params"`
	Keys         string `json:"keys"` // digest, hexadecimal
	Form         string `json:"form"` // lwe or ring
	Encoding     string `json:"encoding"`
	Count        int    `json:"count"`
	Coefficients int    `json:"coefficients,omitempty"`
	Level        int    `json:"level,omitempty"` // of BGV ciphertexts
	Messages     int    `json:"messages"`
}

// Encodings that a file can name.
var encodings = []lwe.Encoding{lwe.Plain, lwe.Padded, lwe.Boolean}

// EncodingOf returns the encoding with the given name.
func EncodingOf(name string) (lwe.Encoding, error) {
	i := slices.IndexFunc(encodings, func(e lwe.Encoding) bool { return e.String() == name })
	if i < 0 {
		return 0, lodge.Errorf(lodge.Invalid, "write plain, padded or boolean", "unknown encoding %q", name)
	}
	return encodings[i], nil
}

// NewFile returns a file of ring ciphertexts that Encrypt made of the given number of messages.
func NewFile(k *Key, ring []*lwe.Ring, messages int, e lwe.Encoding) *File {
	f := &File{Epoch: k.Epoch, Params: k.Params, Keys: k.Digest, Encoding: e, Messages: messages, Ring: ring, Coefficients: k.scheme.N()}
	if len(ring) == 1 {
		f.Coefficients = max(1, messages)
	}
	return f
}

// NewLWEFile returns a file of LWE ciphertexts.
func NewLWEFile(k *Key, list []*lwe.LWE, e lwe.Encoding) *File {
	return &File{Epoch: k.Epoch, Params: k.Params, Keys: k.Digest, Encoding: e, Messages: len(list), LWE: list}
}

// Extract returns the messages of a file as LWE ciphertexts, the form in which gates and lookups
// compute.
func (f *File) Extract() ([]*lwe.LWE, error) {
	if f.BGV != nil {
		return nil, lodge.Errorf(lodge.Invalid, "compute with Lattigo", "BGV ciphertexts cannot be extracted as LWE ciphertexts")
	}
	if f.Ring == nil {
		return f.LWE, nil
	}
	scheme, err := schemeOf(f.Params)
	if err != nil {
		return nil, err
	}
	list := make([]*lwe.LWE, f.Messages)
	for i := range list {
		list[i] = scheme.NewLWE()
		scheme.Extract(list[i], f.Ring[i/f.Coefficients], i%f.Coefficients)
	}
	return list, nil
}

// header returns the header of the file, after validation.
func (f *File) header() (fileHeader, error) {
	h := fileHeader{
		Epoch: f.Epoch, Params: f.Params, Keys: hex.EncodeToString(f.Keys[:]), Form: "lwe", Encoding: f.Encoding.String(),
		Count: len(f.LWE), Coefficients: f.Coefficients, Messages: f.Messages,
	}
	b, err := bgvOf(f.Params)
	if err != nil {
		return h, err
	}
	if b != nil && len(f.BGV) > 0 {
		err := f.bgvHeader(b, &h)
		return h, err
	}
	if f.BGV != nil || b != nil {
		return h, fmt.Errorf("%d BGV ciphertexts under keys of %s", len(f.BGV), f.Params)
	}
	if f.Ring != nil {
		if f.LWE != nil {
			return h, errors.New("both LWE and ring ciphertexts")
		}
		h.Form, h.Count = "ring", len(f.Ring)
	}
	return h, h.check()
}

// check returns an error for an invalid header.
func (h *fileHeader) check() error {
	if b, err := bgvOf(h.Params); err != nil || b != nil {
		if err == nil {
			err = h.checkBGV(b)
		}
		return err
	}
	scheme, err := schemeOf(h.Params)
	if err != nil {
		return err
	}
	if _, err := EncodingOf(h.Encoding); err != nil {
		return err
	}
	each, size := 1, scheme.LWESize()
	switch {
	case h.Form == "ring" && h.Coefficients >= 1 && h.Coefficients <= scheme.N():
		each, size = h.Coefficients, scheme.RingSize()
	case h.Form != "lwe" || h.Coefficients != 0:
		return fmt.Errorf("form %q with %d coefficients", h.Form, h.Coefficients)
	case h.Level != 0:
		return fmt.Errorf("level %d of ciphertexts that have none", h.Level)
	}
	return h.checkCount(each, size)
}

// checkCount validates the rest of the header of a file whose ciphertexts have the given number of
// messages and bytes.
func (h *fileHeader) checkCount(each, size int) error {
	if b, err := hex.DecodeString(h.Keys); err != nil || len(b) != 32 || hex.EncodeToString(b) != h.Keys {
		return errors.New("the digest of the keys is not 64 hexadecimal digits")
	}
	if h.Epoch == 0 || h.Count < 1 || h.Count > MaxFileBytes/size {
		return fmt.Errorf("epoch %d, %d ciphertexts", h.Epoch, h.Count)
	}
	if h.Messages > h.Count*each || h.Messages <= (h.Count-1)*each {
		return fmt.Errorf("%d messages in %d ciphertexts of %d", h.Messages, h.Count, each)
	}
	return nil
}

// WriteTo writes the file.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	h, err := f.header()
	if err != nil {
		return 0, lodge.Errorf(lodge.Invalid, "", "the file of ciphertexts is invalid: %v", err)
	}
	lines, err := jsonfile.Header(fileMagic, h)
	if err != nil {
		return 0, err
	}
	var written int64
	write := func(b []byte) {
		if err == nil {
			var n int
			n, err = w.Write(b)
			written += int64(n)
		}
	}
	write(lines)
	if s, _ := bgvOf(f.Params); s != nil {
		if bad := f.writeBGV(s, h.Level, write); bad != nil {
			return written, bad
		}
		return written, err
	}
	scheme, failed := schemeOf(f.Params)
	if failed != nil {
		return written, failed
	}
	var b []byte
	for i, c := range f.LWE {
		if err := scheme.Check(c); err != nil {
			return written, lodge.Errorf(lodge.Invalid, "", "ciphertext %d: %v", i, err)
		}
		b = scheme.AppendLWE(b[:0], c)
		write(b)
	}
	for i, c := range f.Ring {
		if err := scheme.CheckRing(c); err != nil {
			return written, lodge.Errorf(lodge.Invalid, "", "ciphertext %d: %v", i, err)
		}
		b = scheme.AppendRing(b[:0], c)
		write(b)
	}
	return written, err
}

// ReadFile reads the output of WriteTo. It accepts only the one encoding of each file.
func ReadFile(r io.Reader) (*File, error) {
	f, err := readFile(bufio.NewReader(r))
	if err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "`lodge keys encrypt` writes such files", "not a file of ciphertexts under threshold keys: %v", err)
	}
	return f, nil
}

func readFile(r *bufio.Reader) (*File, error) {
	var h fileHeader
	if err := jsonfile.ReadHeader(r, fileMagic, maxFileHeader, &h); err != nil {
		return nil, err
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	f := &File{Epoch: h.Epoch, Params: h.Params, Messages: h.Messages, Coefficients: h.Coefficients}
	f.Encoding, _ = EncodingOf(h.Encoding)
	_, _ = hex.Decode(f.Keys[:], []byte(h.Keys))
	var err error
	if s, _ := bgvOf(h.Params); s != nil {
		err = f.readBGV(r, s, &h)
	} else {
		err = f.readLWE(r, &h)
	}
	if err != nil {
		return nil, err
	}
	return f, jsonfile.End(r)
}

// readLWE reads LWE or ring ciphertexts.
func (f *File) readLWE(r *bufio.Reader, h *fileHeader) error {
	scheme, err := schemeOf(h.Params)
	if err != nil {
		return err
	}
	b := make([]byte, scheme.LWESize())
	if h.Form == "ring" {
		b = make([]byte, scheme.RingSize())
	}
	for i := range h.Count { // uses no more memory than the input
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("it ends in ciphertext %d of %d", i, h.Count)
		}
		if h.Form == "ring" {
			c := scheme.NewRing()
			err = scheme.DecodeRing(c, b)
			f.Ring = append(f.Ring, c)
		} else {
			c := scheme.NewLWE()
			err = scheme.DecodeLWE(c, b)
			f.LWE = append(f.LWE, c)
		}
		if err != nil {
			return fmt.Errorf("ciphertext %d: %w", i, err)
		}
	}
	return nil
}

// Prepared schemes of the sets used so far.
var schemes sync.Map // of *lwe.Scheme, by name

// schemeOf prepares a set.
func schemeOf(name string) (*lwe.Scheme, error) {
	if known, ok := schemes.Load(name); ok {
		return known.(*lwe.Scheme), nil
	}
	set, err := lwe.Lookup(name)
	if err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "use the release of Lodge that the parties run", "%v", err)
	}
	scheme, err := lwe.New(set)
	if err == nil {
		schemes.Store(name, scheme)
	}
	return scheme, err
}

// Requests returns the requests that decrypt a file, of at most the given number of messages each.
// Padded ciphertexts are doubled, which makes them plain ones.
func (f *File) Requests(most int) ([]*Request, error) {
	if s, err := bgvOf(f.Params); err != nil || s != nil {
		if err != nil {
			return nil, err
		}
		return f.bgvRequests(s, most)
	}
	if f.Flooding {
		return nil, lodge.Errorf(lodge.Invalid, "leave it out", "LWE and ring ciphertexts are decrypted without flooding")
	}
	scheme, err := schemeOf(f.Params)
	if err != nil {
		return nil, err
	}
	if most < 1 || f.Ring != nil && most < f.Coefficients {
		return nil, lodge.Errorf(lodge.Invalid, fmt.Sprintf("write %d or more: a ciphertext has this many", max(1, f.Coefficients)), "%d messages at a time", most)
	}
	var list []*Request
	for part := range slices.Chunk(f.LWE, most) {
		if f.Encoding == lwe.Padded {
			part = doubled(part, func(c *lwe.LWE) *lwe.LWE { d := c.Clone(); scheme.Add(d, c, c); return d })
		}
		list = append(list, &Request{LWE: part})
	}
	for part := range slices.Chunk(f.Ring, most/max(1, f.Coefficients)) {
		if f.Encoding == lwe.Padded {
			part = doubled(part, func(c *lwe.Ring) *lwe.Ring { d := c.Clone(); scheme.AddRing(d, c, c); return d })
		}
		list = append(list, &Request{Ring: part, Coefficients: f.Coefficients})
	}
	return list, nil
}

func doubled[C any](list []*C, twice func(*C) *C) []*C {
	out := make([]*C, len(list))
	for i, c := range list {
		out[i] = twice(c)
	}
	return out
}

// Values returns the values of opened messages in an encoding. For Boolean, p/8 is 1, -p/8 is 0,
// and any other message is an error, because gates do not produce it.
func Values(params string, e lwe.Encoding, opened []uint64) ([]uint64, error) {
	if e != lwe.Boolean {
		return opened, nil
	}
	scheme, err := schemeOf(params)
	if err != nil {
		return nil, err
	}
	out := make([]uint64, len(opened))
	for i, m := range opened {
		switch m {
		case scheme.P / 8:
			out[i] = 1
		case scheme.P - scheme.P/8:
		default:
			return nil, lodge.Errorf(lodge.Invalid, "decrypt it with its own encoding", "message %d is %d, which is not a bit", i, m)
		}
	}
	return out, nil
}
