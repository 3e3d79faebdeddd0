package decrypt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// Outside denotes a recipient that is not in the quorum: it receives the parties' answers as their
// results and combines them.
const Outside round.Party = -1

// Config holds the values that all parties of a run agree on, and the party's own values. The
// parties of the session are the quorum, in the order in which they made the masks.
type Config struct {
	Session round.Session
	Step    string
	Params  Params
	// Ciphertexts must be the same at all parties. The session's terms ensure this, and Chosen does
	// if the ciphertexts are a subset of those in the terms.
	Ciphertexts Ciphertexts
	Chosen      round.Digest
	// Secret is this party's additive share of the key among the quorum, N residues modulo Q. The
	// caller keeps ownership.
	Secret []uint64
	// Masks must hold as many records as there are ciphertexts, made by this quorum. The run spends
	// them when it starts.
	Masks     *masks.Batch
	Recipient round.Party // a party of the quorum, or Outside
	Workers   int
}

// Result is the output of a party.
type Result struct {
	// Messages are the plaintexts if this party is the recipient, nil otherwise.
	Messages []uint64
	// Answer is this party's answer for a recipient outside the quorum. The answers of the whole
	// quorum determine the plaintexts.
	Answer []byte
}

// Wipe erases the result.
func (r *Result) Wipe() {
	clear(r.Messages)
	clear(r.Answer)
}

// Format prints a placeholder, whatever the verb, so that a log cannot reveal the result.
func (*Result) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

// CheckAgreement fails if another party's message belongs to a different run: with other
// parameters, mask records or recipient.
const CheckAgreement = "agreement"

func disagreement(p round.Party) *round.Blame {
	return &round.Blame{Party: p, Check: CheckAgreement, Reason: "its message belongs to another run (other parameters, mask records or recipient)"}
}

const headerSize = len(round.Digest{})

// header returns the prefix of the first message and of the answer of every party of a run.
func (c *Config) header(id round.Digest, first uint64) round.Digest {
	p := c.Params
	fields := [][]byte{c.Session.ID[:], []byte(c.Step), id[:], c.Chosen[:]}
	for _, v := range []uint64{
		first, uint64(c.Ciphertexts.Len()), uint64(c.Recipient + 1), p.Modulus, uint64(p.Dimension), uint64(p.LogP),
		uint64(p.Parties), uint64(p.Kind.Form), uint64(p.Kind.LogEta), uint64(p.Kind.LogPhi), p.Kind.Odd,
	} {
		fields = append(fields, round.Uint(v))
	}
	return round.Hash("lodge threshold decryption", fields...)
}

func (c *Config) name(message string) string { return c.Step + "/" + message }

// run is the state of one party.
type run struct {
	Config
	count  int
	head   round.Digest
	values *masks.Values
	w      []uint64 // in the end the answer, modulo eta
	eta    residues
}

// Wipe erases the masks and the answer.
func (r *run) Wipe() {
	r.values.Wipe()
	clear(r.w)
}

func (r *run) first() bool { return r.Session.Self == 0 }

// modPhi returns the bit mask that reduces words modulo Phi.
func (r *run) modPhi() uint64 { return 1<<r.Params.Kind.LogPhi - 1 }

// Start begins a run. It spends the masks if the rest of the configuration is valid. Errors wrap
// those of this package, or masks.ErrSpent.
func Start(c Config) (round.Transition[*Result], error) {
	none := round.Transition[*Result]{}
	if c.Ciphertexts == nil || c.Ciphertexts.Len() == 0 || c.Masks == nil {
		return none, errors.New("decrypt: configuration without ciphertexts or masks")
	}
	if err := c.Params.Check(); err != nil {
		return none, err
	}
	switch {
	case c.Session.Parties != c.Params.Parties || len(c.Secret) != c.Params.Dimension:
		return none, fmt.Errorf("%w: the session has %d parties and the key has dimension %d", ErrParams, c.Session.Parties, len(c.Secret))
	case c.Recipient < Outside || int(c.Recipient) >= c.Session.Parties:
		return none, fmt.Errorf("%w: recipient %d is not a party of the quorum", ErrParams, c.Recipient)
	//lodge:check decrypt/kind masks of another eta, Phi or form are used
	case c.Masks.Kind() != c.Params.Kind:
		return none, fmt.Errorf("%w: the masks have kind %v, want %v", ErrKind, c.Masks.Kind(), c.Params.Kind)
	}
	first, count := c.Masks.First(), c.Ciphertexts.Len()
	//lodge:check decrypt/count a ciphertext lacks a mask, or a mask is wasted
	if have := c.Masks.Count(); have != count && have != 0 {
		return none, fmt.Errorf("%w: %d masks for %d ciphertexts", ErrKind, have, count)
	}
	s, err := newSwitcher(c.Params)
	if err != nil {
		return none, err
	}
	values, err := c.Masks.Spend()
	if err != nil {
		return none, err
	}
	if len(values.R) != count { // a concurrent caller took some records
		values.Wipe()
		return none, ErrKind
	}
	r := &run{Config: c, count: count, values: values, w: make([]uint64, count), eta: s.eta}
	r.head = c.header(c.Masks.ID(), first)
	c.Session.Secrets.Own(r)
	return round.Next(round.Local(func(ctx context.Context) (round.Transition[*Result], error) {
		return r.begin(ctx, s)
	})), nil
}

// begin computes the shares of the phases, masks them and sends the first message.
func (r *run) begin(ctx context.Context, s *switcher) (round.Transition[*Result], error) {
	if err := s.shares(ctx, r.w, &r.Config); err != nil {
		return round.Transition[*Result]{}, err
	}
	exact := r.Params.Kind.Form == masks.Exact
	var half uint64
	if exact && r.first() {
		half = 1 << (r.Params.Kind.LogPhi - 1)
	}
	masked := make([]uint64, r.count)
	for i, mask := range r.values.R {
		r.w[i] = r.eta.add(r.eta.add(r.w[i], half), mask)
		masked[i] = r.w[i] & r.modPhi()
	}
	body := round.Bytes(r.packed(masked, r.Params.Kind.LogPhi))
	var send []round.Message
	for p := range round.Party(r.Session.Parties) {
		if p != r.Session.Self && (exact || p == 0) {
			send = append(send, round.Message{To: p, Name: r.name("masked"), Body: body})
		}
	}
	return round.Next(round.Round[*Result](&opened{r, masked}), send...), nil
}

// packed returns the header followed by the values, packed with width bits each.
func (r *run) packed(v []uint64, width int) []byte {
	b := make([]byte, headerSize+kernel.PackedSize(len(v), width))
	copy(b, r.head[:])
	kernel.Pack(b[headerSize:], v, width)
	return b
}

// unpackAnswer is unpack for residues modulo eta.
func unpackAnswer(v []uint64, b []byte, k masks.Kind, head round.Digest) (agreed bool, err error) {
	agreed, err = unpack(v, b, k.LogEta, head)
	//lodge:check decrypt/residues-of-answers answers modulo an odd eta have several encodings
	if err == nil && !residues(k.Eta()).all(v) {
		err = errors.New("a word is not a residue modulo eta")
	}
	return agreed, err
}

// unpack reverses packed for a message of another party.
func unpack(v []uint64, b []byte, width int, head round.Digest) (agreed bool, err error) {
	if len(b) != headerSize+kernel.PackedSize(len(v), width) {
		return false, errors.New("wrong length")
	}
	if !kernel.Unpack(v, b[headerSize:], width) {
		return false, errors.New("padding")
	}
	return round.Digest(b[:headerSize]) == head, nil
}

// opened is the round in which the masked noises arrive: at party 0 in the paper's form, at all
// parties in the exact form.
type opened struct {
	*run
	v []uint64 // this party's part, and after Step the sum modulo Phi
}

func (r *opened) Wants() []round.Want {
	if r.Params.Kind.Form == masks.Paper && !r.first() {
		return nil
	}
	size := headerSize + kernel.PackedSize(r.count, r.Params.Kind.LogPhi)
	return r.Session.Each(round.Want{Name: r.name("masked"), MaxBytes: int64(size)})
}

func (r *opened) Step(_ context.Context, in round.Inbox) (round.Transition[*Result], error) {
	part := make([]uint64, r.count)
	for _, w := range r.Wants() {
		agreed, err := unpack(part, in.Bytes(w.From, w.Name), r.Params.Kind.LogPhi, r.head)
		//lodge:check decrypt/masked the sender of a malformed share is not blamed
		if err != nil {
			return round.Transition[*Result]{}, round.Malformed(w.From, err)
		}
		//lodge:check decrypt/agreement parties decrypt with different records or for different
		//  recipients
		if !agreed {
			return round.Transition[*Result]{}, disagreement(w.From)
		}
		for i, x := range part {
			r.v[i] = (r.v[i] + x) & r.modPhi()
		}
	}
	if r.Params.Kind.Form == masks.Exact {
		return r.compare(r.v)
	}
	if r.first() {
		// v - Phi [v >= Phi/2] centres v
		phi := r.Params.Kind.LogPhi
		for i, v := range r.v {
			r.w[i] = r.eta.add(r.eta.sub(r.w[i], v), v>>(phi-1)<<phi)
		}
	}
	return r.answer()
}

// answer sends this party's answer to the recipient.
func (r *run) answer() (round.Transition[*Result], error) {
	width := r.Params.Kind.LogEta
	if r.Recipient == r.Session.Self {
		return round.Next(round.Round[*Result](answers{r})), nil
	}
	message := r.packed(r.w, width)
	r.Wipe()
	if r.Recipient == Outside {
		return round.Done(&Result{Answer: message}), nil
	}
	last := round.Local(func(context.Context) (round.Transition[*Result], error) { return round.Done(&Result{}), nil })
	return round.Next(last, round.Message{To: r.Recipient, Name: r.name("answer"), Body: round.Bytes(message)}), nil
}

// answers is the round in which a recipient in the quorum receives the answers.
type answers struct{ *run }

func (r answers) Wants() []round.Want {
	size := headerSize + kernel.PackedSize(r.count, r.Params.Kind.LogEta)
	return r.Session.Each(round.Want{Name: r.name("answer"), MaxBytes: int64(size)})
}

func (r answers) Step(_ context.Context, in round.Inbox) (round.Transition[*Result], error) {
	part, sum := make([]uint64, r.count), append([]uint64(nil), r.w...)
	defer clear(part)
	for _, w := range r.Wants() {
		agreed, err := unpackAnswer(part, in.Bytes(w.From, w.Name), r.Params.Kind, r.head)
		//lodge:check decrypt/answer the sender of a malformed answer is not blamed
		if err != nil {
			return round.Transition[*Result]{}, round.Malformed(w.From, err)
		}
		//lodge:check decrypt/agreement-of-answers answers of different runs are combined
		if !agreed {
			return round.Transition[*Result]{}, disagreement(w.From)
		}
		for i, x := range part {
			sum[i] = r.eta.add(sum[i], x)
		}
	}
	//lodge:check decrypt/sums a sum that is not a plaintext goes unnoticed
	if !plaintexts(sum, r.Params.Kind) {
		clear(sum)
		return round.Transition[*Result]{}, &round.Abort{Check: CheckAnswers, Reason: "the answers do not sum to a plaintext"}
	}
	r.Wipe()
	return round.Done(&Result{Messages: sum}), nil
}

// CheckAnswers fails if the answers do not sum to a multiple of Phi. The cheating party cannot be
// identified.
const CheckAnswers = "answers"

// plaintexts turns sums of answers modulo eta into plaintexts, and reports whether all of them were
// multiples of Phi.
func plaintexts(sum []uint64, k masks.Kind) bool {
	var low uint64
	for i, v := range sum {
		low |= v & (1<<k.LogPhi - 1)
		sum[i] = v >> k.LogPhi
	}
	return low == 0
}

// Combine returns the plaintexts of count ciphertexts to a recipient outside the quorum, from the
// answers of all parties of the quorum. The error wraps ErrAnswers.
func Combine(p Params, count int, answers [][]byte) ([]uint64, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if len(answers) != p.Parties || count < 1 {
		return nil, fmt.Errorf("%w: %d answers from a quorum of %d", ErrAnswers, len(answers), p.Parties)
	}
	size := headerSize + kernel.PackedSize(count, p.Kind.LogEta)
	for i, a := range answers {
		if len(a) != size {
			return nil, fmt.Errorf("%w: answer %d has %d bytes, want %d", ErrAnswers, i, len(a), size)
		}
	}
	head := round.Digest(answers[0][:headerSize])
	part, sum := make([]uint64, count), make([]uint64, count)
	defer clear(part)
	for i, a := range answers {
		agreed, err := unpackAnswer(part, a, p.Kind, head)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: answer %d: %w", ErrAnswers, i, err)
		//lodge:check decrypt/combine-agreement the recipient combines answers of different runs
		case !agreed:
			return nil, fmt.Errorf("%w: answer %d belongs to another run", ErrAnswers, i)
		}
		for k, x := range part {
			sum[k] = residues(p.Kind.Eta()).add(sum[k], x)
		}
	}
	//lodge:check decrypt/combine-sums the recipient accepts a sum that is not a plaintext
	if !plaintexts(sum, p.Kind) {
		clear(sum)
		return nil, fmt.Errorf("%w: they do not sum to a plaintext", ErrAnswers)
	}
	return sum, nil
}

// planes encodes packed bits as a message: words, least significant byte first.
func planes(list ...[]uint64) []byte {
	var b []byte
	for _, p := range list {
		for _, w := range p {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
	}
	return b
}
