package decrypt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// RunID identifies the run that produced a party's answer for a ciphertext. Answers from different
// runs cannot be combined.
type RunID [16]byte

// Span names masks for a run: records with consecutive numbers in one batch.
type Span struct {
	Batch string // the parties' name of a stored batch
	First uint64
	Count uint64
}

// MaxSpans is the largest number of spans in an offer.
const MaxSpans = 64

const (
	maxBatchName = 128
	maxSpan      = 1 + maxBatchName + 8 + 8 // bytes
)

// Digest returns a hash that binds the terms.
func (t *Terms) Digest() round.Digest {
	again := make([]byte, len(t.Again))
	for i, x := range t.Again {
		if x {
			again[i] = 1
		}
	}
	return round.Hash("lodge threshold terms", again, encodeSpans(t.Records))
}

// Take returns the spans of the records for the fresh ciphertexts, the first of the proposed ones.
// It returns nil if there are too few records.
func (t *Terms) Take() []Span {
	var out []Span
	rest := uint64(t.Fresh)
	for _, x := range t.Records {
		if rest == 0 {
			break
		}
		x.Count = min(x.Count, rest)
		rest -= x.Count
		out = append(out, x)
	}
	if rest > 0 {
		return nil
	}
	return out
}

// Offer is the message that a party sends before a run.
type Offer struct {
	// Held has, for each ciphertext, the run for which this party stores an answer, or zero if it
	// stores none. If all parties store an answer of the same run, they return it again. The other
	// ciphertexts are decrypted.
	Held []RunID
	// Records are proposed by party 0: at most one for each ciphertext, and fewer if it stores
	// fewer. No party spends them before Agree has ended.
	Records []Span
}

// Terms are the result of the agreement.
type Terms struct {
	Again   []bool // by ciphertext: all parties store an answer of the same run
	Fresh   int    // number of the other ciphertexts
	Records []Span // may be too few
}

// Agree lets the parties of a quorum determine for which ciphertexts they store answers of a common
// run, and which masks serve the others. Each party sends to every other, in one flight,
//
//	a byte, 1 if it stores any answer, and then the id of a run for each ciphertext
//	party 0 only: the number of spans, a byte, and for each span the length and the name of the batch, the number of
//	the first record, and the number of records
//
// If a party sends different offers to different peers, they disagree on the terms: Config.Chosen
// contains the digest of the terms, and runs with different digests fail the agreement check.
func Agree(s round.Session, step string, o Offer) (round.Transition[Terms], error) {
	if len(o.Held) == 0 {
		return round.Transition[Terms]{}, errors.New("decrypt: the offer lists no ciphertexts")
	}
	if err := checkSpans(o.Records, len(o.Held)); err != nil {
		return round.Transition[Terms]{}, fmt.Errorf("decrypt: %w", err)
	}
	body := round.Bytes(o.encode(s.Self == 0))
	r := agreement{s, step + "/offer", o}
	var send []round.Message
	for p := range round.Party(s.Parties) {
		if p != s.Self {
			send = append(send, round.Message{To: p, Name: r.name, Body: body})
		}
	}
	return round.Next(round.Round[Terms](r), send...), nil
}

func (o *Offer) encode(first bool) []byte {
	b := []byte{0}
	for _, id := range o.Held {
		if id != (RunID{}) {
			b[0] = 1
		}
	}
	if b[0] == 1 {
		for _, id := range o.Held {
			b = append(b, id[:]...)
		}
	}
	if first {
		b = append(b, encodeSpans(o.Records)...)
	}
	return b
}

func encodeSpans(spans []Span) []byte {
	b := []byte{byte(len(spans))}
	for _, x := range spans {
		b = append(append(b, byte(len(x.Batch))), x.Batch...)
		b = append(append(b, round.Uint(x.First)...), round.Uint(x.Count)...)
	}
	return b
}

// decodeSpans decodes spans for count ciphertexts. It returns an error if bytes follow them.
func decodeSpans(b []byte, count int) ([]Span, error) {
	if len(b) < 1 || b[0] > MaxSpans {
		return nil, errors.New("invalid number of spans")
	}
	spans := make([]Span, b[0])
	b = b[1:]
	for i := range spans {
		if len(b) < 1 || len(b) < 1+int(b[0])+16 {
			return nil, errors.New("the spans have the wrong length")
		}
		name := 1 + int(b[0])
		spans[i] = Span{string(b[1:name]), binary.LittleEndian.Uint64(b[name:]), binary.LittleEndian.Uint64(b[name+8:])}
		b = b[name+16:]
	}
	if len(b) > 0 {
		return nil, errors.New("bytes follow the spans")
	}
	return spans, checkSpans(spans, count)
}

// checkSpans returns an error if spans are not a valid proposal for count ciphertexts.
func checkSpans(spans []Span, count int) error {
	if len(spans) > MaxSpans {
		return fmt.Errorf("%d spans of records, more than the limit", len(spans))
	}
	left := uint64(count)
	for _, x := range spans {
		if x.Batch == "" || len(x.Batch) > maxBatchName {
			return errors.New("the name of a batch is empty or too long")
		}
		for _, c := range []byte(x.Batch) {
			if c < '!' || c > '~' {
				return errors.New("the name of a batch has a character that is not allowed")
			}
		}
		//lodge:check decrypt/spans [drop=x.Count > left] a party can propose more records than
		//  there are ciphertexts
		if x.Count == 0 || x.Count > left || x.First+x.Count < x.First {
			return fmt.Errorf("%d records from number %d on do not fit %d ciphertexts", x.Count, x.First, count)
		}
		left -= x.Count
	}
	return nil
}

// decodeOffer decodes the offer of a party for count ciphertexts.
func decodeOffer(b []byte, count int, first bool) (o Offer, err error) {
	o.Held = make([]RunID, count)
	if len(b) < 1 || b[0] > 1 {
		return o, errors.New("the offer does not say whether answers are stored")
	}
	held, b := b[0] == 1, b[1:]
	if held {
		if len(b) < count*len(RunID{}) {
			return o, errors.New("wrong length")
		}
		none := true
		for i := range o.Held {
			copy(o.Held[i][:], b)
			none, b = none && o.Held[i] == RunID{}, b[len(RunID{}):]
		}
		if none {
			return o, errors.New("the offer lists answers but none is stored")
		}
	}
	if !first {
		if len(b) != 0 {
			return o, errors.New("wrong length")
		}
		return o, nil
	}
	o.Records, err = decodeSpans(b, count)
	return o, err
}

type agreement struct {
	round.Session
	name string
	own  Offer
}

func (r agreement) Wants() []round.Want {
	most := 1 + len(r.own.Held)*len(RunID{}) + 1 + MaxSpans*maxSpan
	return r.Each(round.Want{Name: r.name, MaxBytes: int64(most)})
}

func (r agreement) Step(_ context.Context, in round.Inbox) (round.Transition[Terms], error) {
	count := len(r.own.Held)
	t := Terms{Again: make([]bool, count), Records: r.own.Records}
	for i, id := range r.own.Held {
		t.Again[i] = id != RunID{}
	}
	for _, w := range r.Wants() {
		o, err := decodeOffer(in.Bytes(w.From, w.Name), count, w.From == 0)
		//lodge:check decrypt/offer the sender of a malformed offer is not blamed
		if err != nil {
			//lodge:check threshold/agree/offer [as=continue] [run=TestMalformedOffers] the sender
			//  of a malformed offer is not blamed
			return round.Transition[Terms]{}, round.Malformed(w.From, err)
		}
		for i, id := range o.Held {
			t.Again[i] = t.Again[i] && id == r.own.Held[i]
		}
		if w.From == 0 {
			t.Records = o.Records
		}
	}
	for _, again := range t.Again {
		if !again {
			t.Fresh++
		}
	}
	return round.Done(t), nil
}

// Values decodes an answer: the words, which are its parts of count plaintexts, and the header that
// all answers of its run share. The error wraps ErrAnswers.
func Values(p Params, count int, answer []byte) (head round.Digest, words []uint64, err error) {
	if err := p.Check(); err != nil {
		return head, nil, err
	}
	if len(answer) < headerSize || count < 1 {
		return head, nil, fmt.Errorf("%w: %d bytes are too few", ErrAnswers, len(answer))
	}
	head, words = round.Digest(answer[:headerSize]), make([]uint64, count)
	if _, err := unpackAnswer(words, answer, p.Kind, head); err != nil {
		return head, nil, fmt.Errorf("%w: %w", ErrAnswers, err)
	}
	return head, words, nil
}

// Sum returns the plaintexts from the words of all parties of a quorum, which must be from the same
// run for each ciphertext. The error wraps ErrAnswers.
func Sum(p Params, parts [][]uint64) ([]uint64, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if len(parts) != p.Parties {
		return nil, fmt.Errorf("%w: %d answers from a quorum of %d", ErrAnswers, len(parts), p.Parties)
	}
	sum, eta := make([]uint64, len(parts[0])), residues(p.Kind.Eta())
	for _, part := range parts {
		if len(part) != len(sum) || !eta.all(part) {
			return nil, fmt.Errorf("%w: one has %d words and the first %d, or a word is not a residue", ErrAnswers, len(part), len(sum))
		}
		for i, x := range part {
			sum[i] = eta.add(sum[i], x)
		}
	}
	if !plaintexts(sum, p.Kind) {
		clear(sum)
		return nil, fmt.Errorf("%w: they do not sum to a plaintext", ErrAnswers)
	}
	return sum, nil
}
