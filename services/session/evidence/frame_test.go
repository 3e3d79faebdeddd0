package evidence_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// frames tries every accusation against every honest party, with all messages that the party signed
// in the session.
func (w *world) frames(kept *evidence.Recorder, c evidence.Case, f *runner.Failure, culprit int) {
	for q := range w.n {
		if q == culprit || q == int(c.Self) {
			continue
		}
		for _, check := range []string{
			round.CheckCommitment, round.CheckShape, popk.CheckBound, popk.CheckEquation, keygen.CheckBound, keygen.CheckShare, keygen.CheckEquation, verdict.Check,
		} {
			for _, charge := range []*round.Charge{
				nil, {Name: "triple/response"}, {Name: "mackey/response"}, {Name: keygen.NameProofs}, {Name: keygen.NameProofs, Index: 30},
			} {
				c.Err = &round.Blame{Party: round.Party(q), Check: check, Charge: charge}
				for back := range uint32(3) {
					c.Round = uint32(f.Index) - back
					found, file, err := kept.Accuse(context.Background(), c, w.dir)
					if err == nil {
						file.Close()
						w.t.Errorf("honest party %d is accused of %s: %v", q, check, found)
					}
				}
			}
		}
	}
}

// parsed is a parsed file.
type parsed struct {
	st     *evidencev1.Statement
	blocks [][]byte
}

const magic = "lodge accusation 1\n"

func parse(t *testing.T, file []byte) parsed {
	t.Helper()
	p, a, rest := parsed{st: new(evidencev1.Statement)}, new(evidencev1.Accusation), file[len(magic):]
	for len(rest) > 0 {
		n := binary.LittleEndian.Uint32(rest)
		p.blocks, rest = append(p.blocks, rest[4:4+n]), rest[4+n:]
	}
	if err := errors.Join(proto.Unmarshal(p.blocks[0], a), proto.Unmarshal(a.GetStatement(), p.st)); err != nil {
		t.Fatal(err)
	}
	p.blocks = p.blocks[1:]
	return p
}

func (p parsed) clone() parsed {
	c := parsed{st: proto.Clone(p.st).(*evidencev1.Statement)}
	for _, b := range p.blocks {
		c.blocks = append(c.blocks, bytes.Clone(b))
	}
	return c
}

// replace turns a message into one of the accuser with a different last frame, which is shown
// completely.
func (p *parsed) replace(w *world, i int) {
	m, at := p.st.Messages[i], len(p.blocks)-1
	m.From = p.st.Accuser
	p.blocks[at] = make([]byte, len(p.blocks[at]))
	last := round.FrameDigest(p.blocks[at])
	copy(m.Frames[len(m.Frames)-len(last):], last[:])
	h := round.NewHasher(m.Name)
	for i := 0; i < len(m.Frames); i += len(last) {
		h.FrameDigest(round.Digest(m.Frames[i:]))
	}
	e := exchange.Envelope{
		Protocol: plan.Name(p.st.Spec.Protocol), Version: p.st.Spec.ProtocolVersion, Session: p.session(w.roster), Round: m.Round, Name: m.Name,
		From: round.Party(m.From), To: round.All, Transcript: round.Digest(m.Transcript), Digest: h.Sum(),
	}
	m.Signature = e.Sign(w.net.Parties[m.From].Signer)
}

// session returns the identifier of the session that a file is about.
func (p *parsed) session(r *config.Roster) round.Digest {
	var nonces []round.Digest
	for i := 0; i < len(p.st.Nonces); i += 32 {
		nonces = append(nonces, round.Digest(p.st.Nonces[i:]))
	}
	return round.SessionID(round.Terms{
		Version: uint64(p.st.Spec.ProtocolVersion), Protocol: plan.Name(p.st.Spec.Protocol), Params: round.Digest(p.st.Params),
		Roster: r.Hash(), Epoch: p.st.Spec.Epoch, Job: job.Digest(p.st.Spec),
	}, nonces)
}

// file returns the file with the accuser's signature.
func (p parsed) file(w *world) []byte {
	statement, _ := proto.MarshalOptions{Deterministic: true}.Marshal(p.st)
	var signer ed25519.PrivateKey
	if int(p.st.GetAccuser()) < w.n {
		signer = w.net.Parties[p.st.GetAccuser()].Signer
	}
	out := signedFile(statement, signer)
	for _, b := range p.blocks {
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(b))), b...)
	}
	return out
}

// signedFile returns a file without frames.
func signedFile(statement []byte, signer ed25519.PrivateKey) []byte {
	h := round.Hash("lodge accusation", statement)
	a := &evidencev1.Accusation{Statement: statement}
	if signer != nil {
		a.Signature = ed25519.Sign(signer, append([]byte("lodge accusation v1:"), h[:]...))
	}
	b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(a)
	return append(binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(b))), b...)
}

func flip(b []byte, i int) { b[i%len(b)] ^= 1 }

// lies returns the changes that an accuser may make to a file before signing it.
func lies(w *world, p, other parsed) map[string]func(p *parsed) {
	list := map[string]func(p *parsed){
		"accuses itself":    func(p *parsed) { p.st.Accuser = p.st.Culprit },
		"accuses another":   func(p *parsed) { p.st.Culprit = (p.st.Culprit + 1) % uint32(w.n) },
		"accuses nobody":    func(p *parsed) { p.st.Culprit = uint32(w.n) },
		"is nobody":         func(p *parsed) { p.st.Accuser = uint32(w.n) },
		"other params":      func(p *parsed) { flip(p.st.Params, 0) },
		"no nonces":         func(p *parsed) { p.st.Nonces = nil },
		"other job":         func(p *parsed) { p.st.Spec.Ref.JobId = "another" },
		"other ordinal":     func(p *parsed) { p.st.Spec.Ref.Ordinal++ },
		"other epoch":       func(p *parsed) { p.st.Spec.Epoch++ },
		"other set":         func(p *parsed) { p.st.Spec.Params = "insecure-6" },
		"other dim":         func(p *parsed) { p.st.Spec.Dim *= 2 },
		"other count":       func(p *parsed) { p.st.Spec.Count++ },
		"other kind of job": func(p *parsed) { p.st.Spec.Kind++ },
		"other protocol":    func(p *parsed) { p.st.Spec.Protocol = p.st.Spec.Protocol%3 + 1 },
		"other version":     func(p *parsed) { p.st.Spec.ProtocolVersion++ },
		"other roster":      func(p *parsed) { flip(p.st.Spec.RosterHash, 5) },
		"other session":     func(p *parsed) { p.st.Nonces, p.st.Spec = other.st.Nonces, other.st.Spec },
		"other history": func(p *parsed) {
			p.st.History = append(other.st.History, &evidencev1.Agreement{Round: 99, Digests: make([]byte, 32*w.n)})
		},
		"more history": func(p *parsed) {
			p.st.History = append(p.st.History, &evidencev1.Agreement{Round: 1000, Name: "x", Digests: make([]byte, 32*w.n)})
		},
		"no messages":     func(p *parsed) { p.st.Messages = nil },
		"one more":        func(p *parsed) { p.st.Messages = append(p.st.Messages, p.st.Messages[0]) },
		"a block more":    func(p *parsed) { p.blocks = append(p.blocks, []byte("more")) },
		"other names":     func(p *parsed) { p.st.Names = append(p.st.Names, "zz") },
		"no time":         func(p *parsed) { p.st.When = nil; p.st.Spec.Deadline = nil },
		"unknown kind":    func(p *parsed) { p.st.Kind = 99 },
		"no kind":         func(p *parsed) { p.st.Kind = 0 },
		"no roster":       func(p *parsed) { p.st.Spec.RosterHash = nil },
		"first is others": func(p *parsed) { p.st.Messages[0].From = (p.st.Messages[0].From + 1) % uint32(w.n) },
		"no params":       func(p *parsed) { p.st.Params = nil },
		"one more, of which nothing is shown": func(p *parsed) {
			h := round.NewHasher(p.st.Messages[0].Name)
			for i := 0; i < len(p.st.Messages[0].Frames); i += 32 {
				h.FrameDigest(round.Digest(p.st.Messages[0].Frames[i:]))
			}
			m := proto.Clone(p.st.Messages[0]).(*evidencev1.Message)
			if len(m.Frames) > 0 {
				sum := h.Sum()
				m.Frames, m.Shown, m.Digest = nil, nil, sum[:]
			}
			p.st.Messages = append(p.st.Messages, m)
		},
	}
	if len(p.st.KeyHash) > 0 {
		list["other key"] = func(p *parsed) { flip(p.st.KeyHash, 7) }
	} else {
		list["a key"] = func(p *parsed) { p.st.KeyHash = make([]byte, 32) }
	}
	if len(p.st.KeySeed) > 0 {
		list["other seed"] = func(p *parsed) { flip(p.st.KeySeed, 7) }
		list["ciphertexts of the accuser's"] = func(p *parsed) { p.replace(w, 2) }
	} else {
		list["a seed"] = func(p *parsed) { p.st.KeySeed = make([]byte, 32) }
	}
	for i := range w.n {
		list[fmt.Sprint("other nonce ", i)] = func(p *parsed) { flip(p.st.Nonces, 32*i) }
	}
	for i := range p.st.History {
		list[fmt.Sprint("history ", i)] = func(p *parsed) { flip(p.st.History[i].Digests, 11) }
		list[fmt.Sprint("half of history ", i)] = func(p *parsed) { p.st.History[i].Digests = p.st.History[i].Digests[:32] }
		list[fmt.Sprint("history name ", i)] = func(p *parsed) { p.st.History[i].Name += "x" }
		list[fmt.Sprint("history round ", i)] = func(p *parsed) { p.st.History[i].Round++ }
		list[fmt.Sprint("history without ", i)] = func(p *parsed) { p.st.History = slices.Delete(p.st.History, i, i+1) }
	}
	for i, m := range p.st.Messages {
		at := func(f func(m *evidencev1.Message)) func(p *parsed) { return func(p *parsed) { f(p.st.Messages[i]) } }
		signer := w.net.Parties[p.st.Accuser].Signer
		list[fmt.Sprint("round of ", i)] = at(func(m *evidencev1.Message) { m.Round++ })
		list[fmt.Sprint("name of ", i)] = at(func(m *evidencev1.Message) { m.Name += "/commit" })
		list[fmt.Sprint("sender of ", i)] = at(func(m *evidencev1.Message) { m.From = (m.From + 1) % uint32(w.n) })
		list[fmt.Sprint("no such sender of ", i)] = at(func(m *evidencev1.Message) { m.From = 1 << 31 })
		if len(m.Signature) > 0 {
			list[fmt.Sprint("signature of ", i)] = at(func(m *evidencev1.Message) { flip(m.Signature, 3) })
			list[fmt.Sprint("transcript of ", i)] = at(func(m *evidencev1.Message) { flip(m.Transcript, 9) })
			list[fmt.Sprint("accuser's signature of ", i)] = at(func(m *evidencev1.Message) { m.Signature = ed25519.Sign(signer, m.Transcript) })
		}
		if i == 0 {
			list["unsigned"] = at(func(m *evidencev1.Message) { m.Signature = nil })
		}
		if len(m.Digest) > 0 {
			list[fmt.Sprint("digest of ", i)] = at(func(m *evidencev1.Message) { flip(m.Digest, 0) })
		} else {
			list[fmt.Sprint("frames of ", i)] = at(func(m *evidencev1.Message) { flip(m.Frames, len(m.Frames)-1) })
			list[fmt.Sprint("fewer frames of ", i)] = at(func(m *evidencev1.Message) { m.Frames = m.Frames[32:] })
		}
		if len(m.Shown) > 0 {
			list[fmt.Sprint("shows others of ", i)] = at(func(m *evidencev1.Message) { m.Shown[len(m.Shown)-1]++ })
		}
		list[fmt.Sprint("without ", i)] = func(p *parsed) { p.st.Messages = slices.Delete(p.st.Messages, i, i+1) }
	}
	for i := range p.blocks {
		list[fmt.Sprint("block ", i)] = func(p *parsed) { flip(p.blocks[i], len(p.blocks[i])/2) }
		list[fmt.Sprint("shorter block ", i)] = func(p *parsed) { p.blocks[i] = p.blocks[i][:len(p.blocks[i])-1] }
		list[fmt.Sprint("without block ", i)] = func(p *parsed) { p.blocks = slices.Delete(p.blocks, i, i+1) }
	}
	for kind := range evidencev1.Kind_name {
		if evidencev1.Kind(kind) != p.st.Kind {
			list[fmt.Sprint("kind ", kind)] = func(p *parsed) { p.st.Kind = evidencev1.Kind(kind) }
		}
	}
	return list
}

// A file of any kind proves nothing if its accuser changes any part, or if another party changes
// any byte.
func TestLimitsOfWhoIsAccused(t *testing.T) {
	w := newWorld(t, 3)
	w.hold()
	files := map[string][]byte{}
	everyday := []string{"alter:mackey/response", "malformed-relin", "alter:keygen/relin/open", "mackey/statement/open", round.EchoName}
	for name, kind := range map[string]evidence.Kind{
		"alter:keygen/relin/open": evidence.WrongOpening, "alter:mackey/ciphertexts": evidence.BadProof, "alter:mackey/response": evidence.BadProof,
		"wrong-relin-h0": evidence.BadKeyProof, "malformed-relin": evidence.BadKeyProof, "long-secret": evidence.BadKeyProof,
		"cut:triple/response": evidence.Malformed, "alter:verdict": evidence.WrongVerdict,
	} {
		files[name] = w.proved(t, cheattest.Find(name), kind)
	}
	for name, kind := range map[string]evidence.Kind{"mackey/statement/open": evidence.Equivocation, round.EchoName: evidence.FalseEcho} {
		files[name] = proves(w, w.batch(w.spec(jobv1.Kind_KIND_SCALAR), w.forger.cheat(name, 96), 2), 2, kind, round.CheckEcho)
	}
	var cases []longtest.Case
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := files[name]
		cases = append(cases, longtest.Case{Name: name, Everyday: slices.Contains(everyday, name), Run: func(t *testing.T) {
			p := parse(t, file)
			if again := p.file(w); !bytes.Equal(again, file) {
				t.Fatal("the test does not sign as accusers do")
			}
			other := parse(t, files["alter:mackey/response"])
			if name == "alter:mackey/response" {
				other = parse(t, files["alter:mackey/ciphertexts"])
			}
			for what, lie := range lies(w, p, other) {
				c := p.clone()
				lie(&c)
				refused(t, w, c.file(w), what)
			}
			step := max(1, len(file)/100)
			for i := 0; i < len(file); i += step {
				c := bytes.Clone(file)
				c[i] ^= 1
				refused(t, w, c, fmt.Sprint("byte ", i))
				refused(t, w, file[:i], fmt.Sprint("the first bytes, ", i))
			}
		}})
	}
	longtest.Run(t, cases)
}

// refused checks that a file proves nothing and that Verify blames the file.
func refused(t *testing.T, w *world, file []byte, what string) {
	t.Helper()
	found, err := evidence.Verify(context.Background(), bytes.NewReader(file), w.roster)
	var known *evidence.Error
	if err == nil {
		t.Errorf("%s: proves %v", what, found)
	} else if !errors.As(err, &known) {
		t.Errorf("%s: %v", what, err)
	}
}
