package evidence

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

// Case holds a party's knowledge of a failed session.
type Case struct {
	Members
	Self    round.Party
	Signer  ed25519.PrivateKey
	Spec    *jobv1.SessionSpec
	Params  round.Digest // of the session's terms
	Nonces  []round.Digest
	History []round.Agreement
	Round   uint32    // the round in which it failed, as numbered in signatures
	Err     error     // the reason; an accusation needs a *round.Blame as cause
	When    time.Time // UTC
	// Key returns the seed and the other half of the public key under which the session's parties
	// prove. It is nil for sessions without such a key.
	Key func() (seed, half []byte)
}

// ErrNothing reports that the failure cannot be proved to others.
var ErrNothing = errors.New("evidence: the failure cannot be proved to others")

// exhibit is a broadcast and the parts of it that an accusation shows.
type exhibit struct {
	*broadcast
	signed  bool // whether its signature is shown; a message in the history needs no signature
	shown   []int
	digest  round.Digest // instead of the frames
	charged *round.Charge
}

// draft is an accusation before it is written.
type draft struct {
	kind    evidencev1.Kind
	culprit round.Party
	history bool
	key     bool
	names   []string
	list    []exhibit
}

// Accuse writes an accusation into an unnamed file in dir, which disappears when it is closed. It
// verifies the file as any reader would and returns the finding. It returns ErrNothing if the
// failure proves nothing to others.
func (r *Recorder) Accuse(ctx context.Context, c Case, dir string) (*Finding, *os.File, error) {
	var blame *round.Blame
	//lodge:check evidence/accuse/self [drop=blame.Party == c.Self] [run=TestWhatIsKept]
	//  [redundant=the file is verified before it is published, and a party that accuses itself
	//  proves nothing] a party accuses itself
	if r == nil || !errors.As(c.Err, &blame) || len(c.Nonces) == 0 || blame.Party == c.Self {
		return nil, nil, ErrNothing
	}
	last := ErrNothing
	for _, d := range r.drafts(c, blame) {
		found, file, err := r.try(ctx, c, d, dir)
		if err == nil {
			return found, file, nil
		}
		last = err
		var unproven *Error
		if !errors.As(err, &unproven) {
			break
		}
	}
	return nil, nil, last
}

// try writes one accusation and verifies it.
func (r *Recorder) try(ctx context.Context, c Case, d draft, dir string) (*Finding, *os.File, error) {
	file, err := unnamed(dir)
	if err != nil {
		return nil, nil, err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	if err = d.write(out, c); err == nil {
		err = out.Flush()
	}
	var found *Finding
	if err == nil {
		if _, err = file.Seek(0, io.SeekStart); err == nil {
			found, err = verify(ctx, bufio.NewReaderSize(file, 1<<20), c.Members)
		}
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return found, file, nil
}

// drafts returns the accusations that may follow from a blame, the likeliest first.
func (r *Recorder) drafts(c Case, blame *round.Blame) (list []draft) {
	var conflicts *round.Abort
	if errors.As(blame.Cause, &conflicts) {
		for _, x := range conflicts.Conflicts {
			list = append(list, r.ofConflict(x, blame.Party)...)
		}
		return list
	}
	for _, b := range r.of(blame.Party, c.Round) {
		list = append(list, r.ofBroadcast(c, b, blame)...)
	}
	return list
}

// of returns the broadcasts of a party in a round, sorted by name. The index may also be that of
// the round's echo.
func (r *Recorder) of(p round.Party, index uint32) (list []*broadcast) {
	for k, b := range r.broadcasts {
		if k.from == p && (k.round == index || k.round+1 == index) && len(b.signature) > 0 && k.name != round.EchoName {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b *broadcast) int { return strings.Compare(a.envelope.Name, b.envelope.Name) })
	return list
}

// find returns the last broadcast of a party under a name, or nil.
func (r *Recorder) find(p round.Party, name string) (last *broadcast) {
	for k, b := range r.broadcasts {
		if k.from == p && k.name == name && len(b.signature) > 0 && (last == nil || k.round > last.envelope.Round) {
			last = b
		}
	}
	return last
}

// commitment returns the commitment that an opening opens, or nil.
func (r *Recorder) commitment(open *broadcast) *broadcast {
	step, ok := strings.CutSuffix(open.envelope.Name, round.OpenName(""))
	if !ok {
		return nil
	}
	return r.find(open.envelope.From, round.CommitName(step))
}

// ofConflict drafts accusations for a report that differs from the broadcast that this party
// received.
func (r *Recorder) ofConflict(x round.Conflict, culprit round.Party) (list []draft) {
	if x.About == culprit && x.ReportedSignature != nil && x.SeenSignature != nil {
		seen := r.find(x.About, x.Name)
		if seen == nil {
			return nil
		}
		other := &broadcast{envelope: seen.envelope, signature: x.ReportedSignature}
		list = append(list, draft{kind: evidencev1.Kind_KIND_EQUIVOCATION, culprit: culprit, list: []exhibit{
			{broadcast: seen, signed: true, digest: x.Seen}, {broadcast: other, signed: true, digest: x.Reported},
		}})
	}
	if echo := r.find(culprit, round.EchoName); x.Reporter == culprit && echo != nil {
		var names []string
		for k := range r.broadcasts {
			if k.round+1 == echo.envelope.Round && k.name != round.EchoName && !slices.Contains(names, k.name) {
				names = append(names, k.name)
			}
		}
		slices.Sort(names)
		list = append(list, draft{
			kind: evidencev1.Kind_KIND_FALSE_ECHO, culprit: culprit, names: names,
			list: []exhibit{{broadcast: echo, signed: true, shown: all(len(echo.frames))}},
		})
	}
	return list
}

func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// write writes the accusation file.
func (d draft) write(out io.Writer, c Case) error {
	spec, err := plain(c.Spec)
	if err != nil {
		return err
	}
	st := &evidencev1.Statement{
		Kind: d.kind, Culprit: uint32(d.culprit), Accuser: uint32(c.Self), When: timestamppb.New(c.When),
		Spec: spec, Params: c.Params[:], Nonces: listed(c.Nonces), Names: d.names,
	}
	if d.history {
		for _, a := range c.History {
			if sent(a) >= d.list[0].envelope.Round {
				break // the signature on the accused message does not cover messages received in its own round
			}
			st.History = append(st.History, &evidencev1.Agreement{Round: uint32(a.Round), Name: a.Name, Digests: listed(a.Digests)})
		}
	}
	var half []byte
	if c.Key != nil && keyed(st) {
		var seed []byte
		seed, half = c.Key()
		hash := keygen.PublicHashOf(seed, half)
		st.KeyHash = hash[:]
		if d.key {
			st.KeySeed = seed
		}
	}
	for _, x := range d.list {
		st.Messages = append(st.Messages, x.message())
	}
	b, err := canonical.Marshal(st)
	if err != nil {
		return err
	}
	accusation, err := canonical.Marshal(&evidencev1.Accusation{Statement: b, Signature: ed25519.Sign(c.Signer, signedStatement(b))})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, magic); err != nil {
		return err
	}
	if err := writeBlock(out, accusation); err != nil {
		return err
	}
	if d.key {
		if err := writeBlock(out, half); err != nil {
			return err
		}
	}
	for _, x := range d.list {
		for _, i := range x.shown {
			frame, err := x.frame(i)
			if err != nil {
				return err
			}
			if err := writeBlock(out, frame); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain returns a copy of a spec without unknown fields. A coordinator could add unknown fields:
// the digest of the spec does not cover them, and a file must not contain them.
func plain(spec *jobv1.SessionSpec) (*jobv1.SessionSpec, error) {
	b, err := canonical.Marshal(spec)
	if err != nil {
		return nil, err
	}
	out := new(jobv1.SessionSpec)
	//lodge:check evidence/accuse/plain [as=return spec, known.Unmarshal(b, out)]
	//  [run=TestProofUnder] a coordinator can prevent evidence by adding unknown fields to a spec
	return out, known.Unmarshal(b, out)
}

// frame returns a frame to show, either from the blame or from the recorder.
func (x exhibit) frame(i int) ([]byte, error) {
	if x.charged != nil && x.charged.Index == i && x.charged.Name == x.envelope.Name && x.charged.Frame != nil {
		return x.charged.Frame, nil
	}
	return x.broadcast.frame(i)
}

func (x exhibit) message() *evidencev1.Message {
	e := x.envelope
	m := &evidencev1.Message{From: uint32(e.From), Round: e.Round, Name: e.Name, Transcript: e.Transcript[:]}
	if x.signed {
		m.Signature = x.signature
	}
	if (x.digest != round.Digest{}) {
		m.Digest = x.digest[:]
		return m
	}
	m.Frames = listed(x.frames)
	for _, i := range x.shown {
		m.Shown = append(m.Shown, uint32(i))
	}
	return m
}
