package ciphertext

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/clients/go/internal/jsonfile"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
)

// Ciphertext is an encrypted vector with the proof that its client knows it. [Client.Encrypt] makes
// one, and [Read] reads one from a file.
type Ciphertext struct {
	Epoch  uint64 `json:"epoch"`
	Params string `json:"params"`
	Field  string `json:"field"`
	// Values is the number of encrypted values; the remaining slots hold zeros.
	Values int `json:"values"`
	// Prover is the client's name at the parties, and Context a text of its choice; the proof holds
	// only for these.
	Prover  string `json:"prover"`
	Context []byte `json:"context"`

	Bytes      []byte `json:"-"` // the ciphertext
	ProofBytes []byte `json:"-"`
}

// magic is the first line of a file. A line of JSON with sizes, the ciphertext and the proof
// follow.
const magic = "lodge ciphertext 1"

// MaxContext bounds Context in bytes.
const MaxContext = 1 << 10

const (
	maxHeader = 8 << 10
	maxBytes  = 256 << 20 // of the ciphertext, and of the proof; all sets stay below
)

type header struct {
	*Ciphertext
	CiphertextBytes int `json:"ciphertext_bytes"`
	ProofBytes      int `json:"proof_bytes"`
}

// WriteTo writes the file.
func (c *Ciphertext) WriteTo(w io.Writer) (int64, error) {
	head, err := jsonfile.Header(magic, header{c, len(c.Bytes), len(c.ProofBytes)})
	if err != nil {
		return 0, err
	}
	written := int64(0)
	for _, b := range [][]byte{head, c.Bytes, c.ProofBytes} {
		n, err := w.Write(b)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Read reads a file that WriteTo wrote. Its fields are validated when they are used.
func Read(r io.Reader) (*Ciphertext, error) {
	b := bufio.NewReader(r)
	bad := func(err error) (*Ciphertext, error) {
		return nil, lodge.Errorf(lodge.Invalid, "`lodge ciphertexts encrypt` writes such files", "not a ciphertext of Lodge: %v", err)
	}
	h := header{Ciphertext: new(Ciphertext)}
	if err := jsonfile.ReadLooseHeader(b, magic, maxHeader, &h); err != nil {
		return bad(err)
	}
	if h.CiphertextBytes < 0 || h.CiphertextBytes > maxBytes || h.ProofBytes < 0 || h.ProofBytes > maxBytes ||
		len(h.Context) > MaxContext || h.Values < 0 {
		return bad(fmt.Errorf("sizes out of range"))
	}
	part := func(n int) ([]byte, error) { // costs no more memory than there is input
		var out bytes.Buffer
		if m, err := io.CopyN(&out, b, int64(n)); err != nil {
			return nil, fmt.Errorf("it ends after %d of %d bytes", m, n)
		}
		return out.Bytes(), nil
	}
	var err error
	if h.Bytes, err = part(h.CiphertextBytes); err != nil {
		return bad(err)
	}
	if h.Ciphertext.ProofBytes, err = part(h.ProofBytes); err != nil {
		return bad(err)
	}
	if err := jsonfile.End(b); err != nil {
		return bad(err)
	}
	return h.Ciphertext, nil
}
