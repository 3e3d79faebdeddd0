package threshold

import (
	"bufio"
	"crypto/hpke"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/clients/go/internal/jsonfile"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
)

// AnswersFile holds the quorums' answers for a file of ciphertexts, sealed to a recipient, in the
// order of its requests.
type AnswersFile struct {
	Encoding lwe.Encoding
	// Slots and Coefficients describe how the values are placed in BGV ciphertexts.
	Slots        bool
	Coefficients int
	Messages     int // number of messages in use
	Answers      []*Answers
	// Known and Places are for multi-key ciphertexts. Known holds the public bits, with ? for the
	// others; Places holds the positions of the bits of each answer.
	Known  string
	Places [][]int
}

// answersRecord is the JSON form of an [AnswersFile].
type answersRecord struct {
	Format    string         `json:"format"`
	Epoch     uint64         `json:"epoch"`
	Params    string         `json:"params"`
	Keys      string         `json:"keys"`
	Threshold int            `json:"threshold"`
	Encoding  string         `json:"encoding"`
	Messages  int            `json:"messages"`
	Recipient []byte         `json:"recipient"`
	Each      int            `json:"each,omitempty"` // values per BGV ciphertext
	Known     string         `json:"known,omitempty"`
	Requests  []answerRecord `json:"requests"`
}

// answerRecord holds one request and the sealed answers of its quorum.
type answerRecord struct {
	ID           string   `json:"id"`
	Quorum       []uint32 `json:"quorum"`
	Form         string   `json:"form"` // of the ciphertexts: lwe, ring, bgv or multikey
	Count        int      `json:"count"`
	Coefficients int      `json:"coefficients"`
	Masks        string   `json:"masks"` // exact or paper
	Ciphertexts  string   `json:"ciphertexts"`
	// Only for BGV ciphertexts: their level, and their encodings, which are needed to open the
	// answers.
	Level   int    `json:"level,omitempty"`
	Encoded []byte `json:"encoded,omitempty"`
	// Only for multi-key ciphertexts: the owners of their keys, and the positions of the bits.
	Owners []ownerRecord `json:"owners,omitempty"`
	Places []int         `json:"places,omitempty"`
	Parts  [][]byte      `json:"parts"`
}

const (
	maskless      = "flooding" // instead of a form of masks
	answersFormat = "lodge threshold answers 1"
	maxAnswers    = 256 << 20
)

// WriteTo writes the file as JSON.
func (f *AnswersFile) WriteTo(w io.Writer) (int64, error) {
	r := answersRecord{Format: answersFormat, Encoding: f.Encoding.String(), Messages: f.Messages, Known: f.Known}
	for i, a := range f.Answers {
		q := a.Question
		if !a.Sealed {
			return 0, lodge.Errorf(lodge.Invalid, "", "these answers are not sealed")
		}
		r.Epoch, r.Params, r.Keys, r.Threshold, r.Recipient = a.Epoch, a.Params, hex.EncodeToString(q.Keys[:]), a.Threshold, q.Recipient
		x := answerRecord{ID: hex.EncodeToString(q.ID), Quorum: q.Quorum, Form: "lwe", Count: q.Count, Coefficients: q.Each, Masks: "exact",
			Ciphertexts: hex.EncodeToString(q.Ciphertexts[:]), Parts: a.Parts}
		if q.Ring {
			x.Form = "ring"
		}
		if q.BGV {
			r.Encoding, r.Each = bgvEncoding(f.Slots), f.Coefficients
			x.Form, x.Level, x.Encoded = "bgv", q.Level, a.Ciphertexts
		}
		if len(q.Multikey) > 0 {
			x.putMultikey(q, f.Places[i])
		}
		if q.Flooding {
			x.Masks = maskless
		}
		if q.Paper {
			x.Masks = "paper"
		}
		r.Requests = append(r.Requests, x)
	}
	return jsonfile.Write(w, r)
}

// ReadAnswers reads the output of WriteTo.
func ReadAnswers(r io.Reader) (*AnswersFile, error) {
	f, err := readAnswers(r)
	if err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "`lodge decrypt --recipient` writes such files", "not a file of sealed answers: %v", err)
	}
	return f, nil
}

func readAnswers(in io.Reader) (*AnswersFile, error) {
	b, err := io.ReadAll(io.LimitReader(bufio.NewReader(in), maxAnswers+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxAnswers {
		return nil, fmt.Errorf("more than %d bytes", maxAnswers)
	}
	var r answersRecord
	if err := jsonfile.Decode(b, &r); err != nil {
		return nil, err
	}
	if r.Format != answersFormat || r.Messages < 1 || len(r.Requests) == 0 {
		return nil, fmt.Errorf("format %q, %d messages in %d requests", r.Format, r.Messages, len(r.Requests))
	}
	f := &AnswersFile{Messages: r.Messages, Known: r.Known}
	s, err := bgvOf(r.Params)
	if err != nil {
		return nil, err
	}
	if s == nil {
		f.Encoding, err = EncodingOf(r.Encoding)
	} else if f.Slots, f.Coefficients = r.Encoding == slotsName, r.Each; !f.Slots && r.Encoding != coefficientsName || r.Each < 1 || r.Each > s.N() {
		err = fmt.Errorf("%d values of each ciphertext in %q", r.Each, r.Encoding)
	}
	if err != nil {
		return nil, err
	}
	for _, x := range r.Requests {
		q := &decrypt.Question{Epoch: r.Epoch, Quorum: x.Quorum, Ring: x.Form == "ring", Count: x.Count, Each: x.Coefficients, Paper: x.Masks == "paper",
			Recipient: r.Recipient, BGV: x.Form == "bgv", Level: x.Level, Flooding: x.Masks == maskless}
		if q.ID, err = hex.DecodeString(x.ID); err == nil {
			err = errors.Join(fixed(q.Keys[:], r.Keys), fixed(q.Ciphertexts[:], x.Ciphertexts))
		}
		if err == nil {
			q.Multikey, err = x.multikey(x.Quorum)
		}
		several := len(q.Multikey) > 0
		switch {
		case err != nil:
			return nil, err
		case q.BGV != (s != nil) || !q.BGV && (q.Flooding || q.Level != 0 || x.Encoded != nil):
			return nil, fmt.Errorf("form %q, masks %q, level %d of set %q", x.Form, x.Masks, x.Level, r.Params)
		case !q.Ring && !q.BGV && !several && x.Form != "lwe", several && q.Paper, !q.Paper && !q.Flooding && x.Masks != "exact":
			return nil, fmt.Errorf("form %q, masks %q", x.Form, x.Masks)
		case len(x.Parts) != len(x.Quorum) || !several && len(x.Quorum) != r.Threshold+1:
			return nil, fmt.Errorf("%d answers of a quorum of %d with a threshold of %d", len(x.Parts), len(x.Quorum), r.Threshold)
		case x.Count < 1 || x.Coefficients < 1 || x.Count > maxAnswers || x.Coefficients > maxAnswers/x.Count || !q.Ring && !q.BGV && x.Coefficients != 1:
			return nil, fmt.Errorf("%d ciphertexts of %d messages", x.Count, x.Coefficients)
		}
		for _, part := range x.Parts { // a message has at least one bit
			if x.Count*x.Coefficients > 8*len(part) {
				return nil, fmt.Errorf("an answer of %d bytes for %d messages", len(part), x.Count*x.Coefficients)
			}
		}
		f.Answers = append(f.Answers, &Answers{Epoch: r.Epoch, Params: r.Params, Threshold: r.Threshold, Question: q, Sealed: true, Parts: x.Parts, Ciphertexts: x.Encoded})
		if several {
			f.Places = append(f.Places, x.Places)
		}
	}
	return f, f.checkMultikey()
}

// fixed reads hexadecimal digits for the given number of bytes.
func fixed(to []byte, text string) error {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(to) {
		return fmt.Errorf("%.80q is not %d hexadecimal digits", text, 2*len(to))
	}
	copy(to, b)
	return nil
}

// OpenFile returns the messages of a file of answers sealed to this recipient, in the encoding of
// its ciphertexts.
func (r *Recipient) OpenFile(f *AnswersFile) ([]uint64, error) {
	if f.Known != "" {
		return r.openMultikey(f)
	}
	var all []uint64
	for _, a := range f.Answers {
		m, err := r.Open(a)
		if err != nil {
			return nil, err
		}
		all = append(all, m...)
	}
	if len(all) < f.Messages {
		return nil, lodge.Errorf(lodge.Invalid, "", "the answers hold %d messages, but the file states %d", len(all), f.Messages)
	}
	if q := f.Answers[0].Question; q.BGV {
		file := File{Params: f.Answers[0].Params, Messages: f.Messages, Slots: f.Slots, Coefficients: f.Coefficients, Flooding: q.Flooding}
		return file.Values(all)
	}
	return Values(f.Answers[0].Params, f.Encoding, all[:f.Messages])
}

// Types of the PEM blocks in recipients' files.
const (
	privateType = "LODGE RECIPIENT PRIVATE KEY"
	publicType  = "LODGE RECIPIENT PUBLIC KEY"
)

// PEM returns the private key in the form of a file.
func (r *Recipient) PEM() ([]byte, error) {
	b, err := r.Bytes()
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateType, Bytes: b}), nil
}

// PublicPEM returns a public key in the form of a file.
func PublicPEM(k hpke.PublicKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: publicType, Bytes: k.Bytes()})
}

// ParseRecipientPEM parses a file with a private key.
func ParseRecipientPEM(text []byte) (*Recipient, error) {
	b, err := only(text, privateType)
	if err != nil {
		return nil, err
	}
	return LoadRecipient(b)
}

// ParsePublicPEM parses a file with a public key.
func ParsePublicPEM(text []byte) (hpke.PublicKey, error) {
	b, err := only(text, publicType)
	if err != nil {
		return nil, err
	}
	return ParsePublic(b)
}

// only returns the content of a file that must consist of one PEM block of the given type.
func only(text []byte, kind string) ([]byte, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != kind || len(rest) > 0 || len(block.Headers) > 0 {
		found := "none"
		if block != nil {
			found = fmt.Sprintf("%.60q", block.Type)
		}
		return nil, lodge.Errorf(lodge.Invalid, "`lodge decrypt recipient` writes a private key and a public one", "want a file of one %s, but it holds %s", kind, found)
	}
	return block.Bytes, nil
}
