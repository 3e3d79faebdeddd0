package threshold

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	lodgebgv "github.com/lodge-mpc/lodge/engine/bgv"
)

// The encodings of values in BGV ciphertexts, as named in files.
const (
	slotsName        = "slots"
	coefficientsName = "coefficients"
)

func bgvEncoding(slots bool) string {
	if slots {
		return slotsName
	}
	return coefficientsName
}

// EncryptBGV encrypts values, from 0 to the plaintext modulus less 1, in the required number of BGV
// ciphertexts: in slots, or in coefficients.
func EncryptBGV(k *Key, public *rlwe.PublicKey, values []uint64, slots bool) ([]*rlwe.Ciphertext, error) {
	if err := k.isBGV(); err != nil {
		return nil, err
	}
	s := k.bgv
	encoder, encryptor := bgv.NewEncoder(s.Lattigo), bgv.NewEncryptor(s.Lattigo, public)
	var list []*rlwe.Ciphertext
	for part := range slices.Chunk(values, s.N()) {
		if i := slices.IndexFunc(part, func(v uint64) bool { return v >= s.T }); i >= 0 {
			return nil, lodge.Errorf(lodge.Invalid, "", "value %d is not below %d", len(list)*s.N()+i, s.T)
		}
		p := bgv.NewPlaintext(s.Lattigo, s.MaxLevel())
		p.IsBatched = slots
		if err := encoder.Encode(part, p); err != nil {
			return nil, err
		}
		c, err := encryptor.EncryptNew(p)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, lodge.Errorf(lodge.Invalid, "", "no values")
	}
	return list, nil
}

// NewBGVFile returns a file of BGV ciphertexts of one level with the given number of values, in
// slots or in coefficients.
func NewBGVFile(k *Key, list []*rlwe.Ciphertext, values int, slots bool) (*File, error) {
	if err := k.isBGV(); err != nil {
		return nil, err
	}
	f := &File{Epoch: k.Epoch, Params: k.Params, Keys: k.Digest, Messages: values, BGV: list, Slots: slots, Coefficients: k.bgv.N()}
	if len(list) == 1 && !slots {
		f.Coefficients = max(1, values)
	}
	return f, nil
}

// bgvHeader returns the header of a file of BGV ciphertexts.
func (f *File) bgvHeader(s *lodgebgv.Scheme, h *fileHeader) error {
	if f.LWE != nil || f.Ring != nil {
		return errors.New("ciphertexts of several kinds")
	}
	c, err := s.FromLattigo(f.BGV[0])
	if err != nil {
		return err
	}
	h.Form, h.Encoding, h.Count, h.Level = "bgv", bgvEncoding(f.Slots), len(f.BGV), c.Level
	return h.checkBGV(s)
}

// checkBGV returns an error for an invalid header of a file of BGV ciphertexts.
func (h *fileHeader) checkBGV(s *lodgebgv.Scheme) error {
	switch {
	case h.Form != "bgv" || h.Encoding != slotsName && h.Encoding != coefficientsName:
		return fmt.Errorf("form %q with values in %q", h.Form, h.Encoding)
	case h.Level < 0 || h.Level > s.MaxLevel():
		return fmt.Errorf("ciphertexts of level %d", h.Level)
	case h.Coefficients < 1 || h.Coefficients > s.N() || h.Encoding == slotsName && h.Coefficients != s.N():
		return fmt.Errorf("%d coefficients in %s", h.Coefficients, h.Encoding)
	}
	return h.checkCount(h.Coefficients, s.CiphertextSize(h.Level))
}

// writeBGV returns the encodings of the ciphertexts.
func (f *File) writeBGV(s *lodgebgv.Scheme, level int, write func([]byte)) error {
	for i, ct := range f.BGV {
		c, err := s.FromLattigo(ct)
		if err == nil && c.Level != level {
			err = fmt.Errorf("of level %d, and the first one of level %d", c.Level, level)
		}
		if err != nil {
			return lodge.Errorf(lodge.Invalid, "", "ciphertext %d: %v", i, err)
		}
		write(s.EncodeCiphertext(c))
	}
	return nil
}

// readBGV reads the ciphertexts.
func (f *File) readBGV(r *bufio.Reader, s *lodgebgv.Scheme, h *fileHeader) error {
	b := make([]byte, s.CiphertextSize(h.Level))
	f.Slots = h.Encoding == slotsName
	for i := range h.Count { // uses no more memory than the input
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("it ends in ciphertext %d of %d", i, h.Count)
		}
		c, err := s.DecodeCiphertext(b)
		if err == nil && c.Level != h.Level {
			err = fmt.Errorf("of level %d", c.Level)
		}
		if err != nil {
			return fmt.Errorf("ciphertext %d: %w", i, err)
		}
		f.BGV = append(f.BGV, s.ToLattigo(c, f.Slots))
	}
	return nil
}

// bgvRequests returns the requests that decrypt a file of BGV ciphertexts.
func (f *File) bgvRequests(s *lodgebgv.Scheme, most int) ([]*Request, error) {
	each := f.Coefficients
	if f.Flooding {
		each = s.N()
	}
	if most < each {
		return nil, lodge.Errorf(lodge.Invalid, fmt.Sprintf("write %d or more: a ciphertext has this many", each), "%d messages at a time", most)
	}
	var list []*Request
	for part := range slices.Chunk(f.BGV, most/each) {
		r := &Request{BGV: part, Flooding: f.Flooding}
		if !f.Flooding {
			r.Coefficients = each
		}
		list = append(list, r)
	}
	return list, nil
}

// Values returns the values in the opened messages of all requests of a file, concatenated, in its
// encoding.
func (f *File) Values(opened []uint64) ([]uint64, error) {
	s, err := bgvOf(f.Params)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return Values(f.Params, f.Encoding, opened[:f.Messages])
	}
	each := f.Coefficients
	if f.Flooding {
		each = s.N()
	}
	out := make([]uint64, 0, f.Messages)
	for part := range slices.Chunk(opened, each) {
		if f.Slots {
			if len(part) != s.N() {
				return nil, lodge.Errorf(lodge.Invalid, "", "%d coefficients are not a message with slots", len(part))
			}
			if part, err = s.Slots(part); err != nil {
				return nil, err
			}
		}
		out = append(out, part[:min(f.Coefficients, len(part), f.Messages-len(out))]...)
	}
	if len(out) != f.Messages {
		return nil, lodge.Errorf(lodge.Invalid, "", "%d values, but the file has %d", len(out), f.Messages)
	}
	return out, nil
}
