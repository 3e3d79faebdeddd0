package threshold_test

import (
	"bytes"
	"crypto/hpke"
	"fmt"
	"slices"
	"testing"
	"testing/cryptotest"

	"github.com/tuneinsight/lattigo/v6/ring"
	lattigobgv "github.com/tuneinsight/lattigo/v6/schemes/bgv"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvdecrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// bgvVectors are the results for BGV ciphertexts and sealed answers that other clients must
// reproduce.
type bgvVectors struct {
	Sets      []bgvSetVectors    `json:"sets"`
	Answers   []bgvAnswerVectors `json:"answers"`
	Questions []questionVectors  `json:"questions"`
	Recipient recipientVectors   `json:"recipient"`
}

type bgvSetVectors struct {
	Name      string   `json:"name"`
	Hash      hexBytes `json:"hash"`
	ChunkSize int      `json:"chunk_size"`
	Sizes     []int    `json:"sizes"`  // of ciphertexts, by level
	Galois    []uint64 `json:"galois"` // of the keys below
	Chunks    int      `json:"chunks"`
	Kinds     []int    `json:"kinds"` // 1000 log eta + log Phi for thresholds 1, 2, ...
	// Slots is the SHA-256 of the coefficients, packed in 32 bits each, of the message with 7 i^2
	// mod T in slot i.
	Slots hexBytes `json:"slots"`
	// In the keys, b of the public key is the transform of X + 2 X^2 + ..., and all other values
	// are zero.
	Header hexBytes `json:"header"`
	Digest hexBytes `json:"digest"`
	Chunk  hexBytes `json:"chunk"` // SHA-256 of the first
	// Uniform is the SHA-256 of the packed half of the public key that is expanded from the seed.
	Uniform    hexBytes              `json:"uniform"`
	Encryption *bgvEncryptionVectors `json:"encryption,omitempty"` // of small sets
}

// bgvEncryptionVectors holds an encryption by Lattigo under the public key, with the randomness
// that it drew, of values i^3 mod T in all places.
type bgvEncryptionVectors struct {
	U            hexBytes `json:"u"` // signed bytes, like the others
	E0           hexBytes `json:"e0"`
	E1           hexBytes `json:"e1"`
	Coefficients hexBytes `json:"coefficients"` // the ciphertexts
	Slots        hexBytes `json:"slots"`
}

// bgvAnswerVectors holds answers to a ciphertext of arbitrary residues, and their result.
type bgvAnswerVectors struct {
	Name       string     `json:"name"`
	Set        string     `json:"set"`
	Threshold  int        `json:"threshold"`
	Flooding   bool       `json:"flooding"`
	Ciphertext hexBytes   `json:"ciphertext"`
	Answers    []hexBytes `json:"answers"`
	Messages   []uint64   `json:"messages"`
}

// questionVectors holds requests to parties, and the context to which sealed answers are bound.
type questionVectors struct {
	Name        string   `json:"name"`
	ID          hexBytes `json:"id"`
	Epoch       uint64   `json:"epoch"`
	Keys        hexBytes `json:"keys"`
	Quorum      []uint32 `json:"quorum"`
	Form        string   `json:"form"`
	Level       int      `json:"level"`
	Flooding    bool     `json:"flooding"`
	Count       int      `json:"count"`
	Each        int      `json:"each"`
	Paper       bool     `json:"paper"`
	Recipient   hexBytes `json:"recipient"`
	Ciphertexts hexBytes `json:"ciphertexts"`
	Info        hexBytes `json:"info"` // of party 2
	Statement   hexBytes `json:"statement"`
}

// recipientVectors holds a key pair and data sealed to it.
type recipientVectors struct {
	Private    hexBytes `json:"private"`
	Public     hexBytes `json:"public"`
	PrivatePEM string   `json:"private_pem"`
	PublicPEM  string   `json:"public_pem"`
	Info       hexBytes `json:"info"`
	Plain      hexBytes `json:"plain"`
	Sealed     hexBytes `json:"sealed"`
	// Files holds files of answers sealed to the recipient, and Messages the messages in each.
	Files    []string   `json:"files"`
	Messages [][]uint64 `json:"messages"`
}

// bgvKeysOf returns the keys of a set's vectors.
func bgvKeysOf(s *bgv.Scheme) *bgv.Keys {
	galois := []uint64{s.Galois(1), s.RotateRows()}
	slices.Sort(galois)
	keys := must(s.NewKeys([bgv.SeedSize]byte(digest([]byte("bgv vectors"))), galois))
	ramp := s.Basis().NewPoly()
	for i := range ramp.C {
		for k := range ramp.C[i] {
			ramp.C[i][k] = uint64(k)
		}
	}
	s.Basis().Forward(keys.B[0], ramp)
	return keys
}

func ofBGVSet(t *testing.T, set *bgv.Set) bgvSetVectors {
	s := must(bgv.New(set))
	hash, keys := set.Hash(), bgvKeysOf(s)
	of := s.KeysDigest(keys)
	v := bgvSetVectors{
		Name: set.Name, Hash: hash[:], ChunkSize: s.ChunkSize(), Galois: keys.Galois, Chunks: s.Samples(len(keys.Galois)),
		Header: s.KeysHeader(keys), Digest: of[:], Chunk: digest(s.AppendChunk(nil, keys, 0)),
	}
	for l := range set.Q {
		v.Sizes = append(v.Sizes, s.CiphertextSize(l))
	}
	for t := 1; t <= 5; t++ {
		k := must(bgvdecrypt.Params(s, t)).Kind
		v.Kinds = append(v.Kinds, 1000*k.LogEta+k.LogPhi)
	}
	a := s.Basis().NewNTT()
	s.Uniform(a, &keys.Seed, 0)
	v.Uniform = digest(codec.AppendPoly(nil, a.C, s.QP()))
	values := make([]uint64, s.N())
	for i := range values {
		values[i] = 7 * uint64(i) * uint64(i) % s.T
	}
	coefficients := must(lattigoRing(s, values))
	v.Slots = digest(codec.AppendPoly(nil, [][]uint64{coefficients}, []uint64{1<<32 - 1}))
	if set.Insecure {
		v.Encryption = bgvEncryption(t, s, keys)
	}
	return v
}

// lattigoRing returns the coefficients of a message in slots.
func lattigoRing(s *bgv.Scheme, slots []uint64) ([]uint64, error) {
	p := s.Lattigo.RingT().NewPoly()
	err := lattigobgv.NewEncoder(s.Lattigo).EncodeRingT(slots, s.Lattigo.NewScale(1), p)
	return p.Coeffs[0], err
}

// bgvEncryption has Lattigo encrypt twice with the same randomness, and draws that randomness once
// more.
func bgvEncryption(t *testing.T, s *bgv.Scheme, keys *bgv.Keys) *bgvEncryptionVectors {
	v := &bgvEncryptionVectors{}
	values := make([]uint64, s.N())
	for i := range values {
		values[i] = uint64(i) * uint64(i) * uint64(i) % s.T
	}
	encrypt := func(slots bool) []byte {
		p := lattigobgv.NewPlaintext(s.Lattigo, s.MaxLevel())
		p.IsBatched = slots
		if err := lattigobgv.NewEncoder(s.Lattigo).Encode(values, p); err != nil {
			t.Fatal(err)
		}
		cryptotest.SetGlobalRandom(t, 1)
		ct := must(lattigobgv.NewEncryptor(s.Lattigo, s.PublicToLattigo(keys)).EncryptNew(p))
		return s.EncodeCiphertext(must(s.FromLattigo(ct)))
	}
	v.Coefficients, v.Slots = encrypt(false), encrypt(true)
	cryptotest.SetGlobalRandom(t, 1)
	source := must(sampling.NewPRNG())
	q := s.Lattigo.RingQ().AtLevel(s.MaxLevel())
	small := func(of ring.DistributionParameters) (out hexBytes) {
		drawn := must(ring.NewSampler(source, q, of, false)).ReadNew()
		for _, x := range drawn.Coeffs[0] {
			if x > s.Q[0]/2 {
				x -= s.Q[0]
			}
			out = append(out, byte(x))
		}
		return out
	}
	v.U, v.E0, v.E1 = small(s.Lattigo.Xs()), small(s.Lattigo.Xe()), small(s.Lattigo.Xe())
	return v
}

// bgvAnswers returns answers to one ciphertext of a level and scale, of which 5 coefficients are
// opened, or all with flooding.
func bgvAnswers(t *testing.T, name string, level int, scale uint64, flooding bool) bgvAnswerVectors {
	s := must(bgv.New(must(bgv.Lookup(name))))
	v := bgvAnswerVectors{Name: fmt.Sprintf("%s, level %d, flooding %v", name, level, flooding), Set: name, Threshold: 2, Flooding: flooding}
	stream := sample.NewSource(digest([]byte("bgv answers of vectors"))).Stream(v.Name)
	uniform := func(rows [][]uint64) {
		for i, row := range rows {
			sample.Uniform(row, s.Q[i], stream)
		}
	}
	c := &bgv.Ciphertext{Level: level, Scale: scale, C0: s.Level(level).NewPoly(), C1: s.Level(level).NewPoly()}
	uniform(c.C0.C)
	uniform(c.C1.C)
	v.Ciphertext = s.EncodeCiphertext(c)
	c = must(s.DecodeCiphertext(v.Ciphertext))
	if flooding {
		var parts [][]byte
		for range v.Threshold + 1 {
			d := s.Level(s.FloodLevel).NewPoly()
			uniform(d.C)
			parts = append(parts, codec.AppendPoly(digest([]byte("run")), d.C, s.Q[:s.FloodLevel+1]))
			v.Answers = append(v.Answers, parts[len(parts)-1])
		}
		v.Messages = must(must(bgvdecrypt.NewFlooding(s, v.Threshold+1)).CombineFlooding(c, 0, parts))
		return v
	}
	params := must(bgvdecrypt.Params(s, v.Threshold))
	parts := make([][]decrypt.Part, params.Parties)
	for i := range 5 {
		rest := uint64(i) * (s.T - 1) / 4 << params.Kind.LogPhi
		for k := range parts {
			word := make([]uint64, 1)
			if sample.Uniform(word, params.Kind.Eta(), stream); k == len(parts)-1 {
				word[0] = rest
			}
			rest = (rest + params.Kind.Eta() - word[0]) % params.Kind.Eta()
			parts[k] = append(parts[k], decrypt.Part{Run: decrypt.RunID(digest([]byte("run"))[:16]), Word: word[0]})
		}
	}
	for _, part := range parts {
		v.Answers = append(v.Answers, must(decrypt.EncodeAnswer(params, part)))
	}
	chosen := must(bgvdecrypt.Select(s, []bgvdecrypt.Chosen{{Ciphertext: c, Degrees: []int{0, 1, 2, 3, 4}}}))
	v.Messages = chosen.Messages(must(decrypt.Plaintexts(params, parts)))[0]
	return v
}

func questions() (list []questionVectors) {
	for _, q := range []struct {
		name string
		of   decrypt.Question
	}{
		{"lwe", decrypt.Question{Count: 3, Each: 1, Paper: true}},
		{"ring", decrypt.Question{Ring: true, Count: 2, Each: 5}},
		{"bgv", decrypt.Question{BGV: true, Level: 1, Count: 2, Each: 4, Recipient: []byte("a public key")}},
		{"flooding", decrypt.Question{BGV: true, Level: 2, Flooding: true, Count: 1, Each: 32, Recipient: []byte("another")}},
	} {
		x := q.of
		x.ID, x.Epoch, x.Quorum = digest([]byte(q.name))[:16], 1<<33+7, []uint32{0, 2}
		x.Keys, x.Ciphertexts = [32]byte(digest([]byte("keys"))), [32]byte(digest([]byte("ciphertexts")))
		v := questionVectors{
			Name: q.name, ID: x.ID, Epoch: x.Epoch, Keys: x.Keys[:], Quorum: x.Quorum, Form: "lwe", Level: x.Level, Flooding: x.Flooding, Count: x.Count,
			Each: x.Each, Paper: x.Paper, Recipient: x.Recipient, Ciphertexts: x.Ciphertexts[:], Info: x.Info(2), Statement: x.Statement("a vote"),
		}
		if x.Ring {
			v.Form = "ring"
		}
		if x.BGV {
			v.Form = "bgv"
		}
		list = append(list, v)
	}
	return list
}

func recipientOfVectors(t *testing.T) recipientVectors {
	v := recipientVectors{Private: digest([]byte("recipient of vectors")), Info: []byte("what was asked"), Plain: []byte("an answer")}
	to := must(threshold.LoadRecipient(v.Private))
	v.Public = to.Public().Bytes()
	v.PrivatePEM, v.PublicPEM = string(must(to.PEM())), string(threshold.PublicPEM(to.Public()))
	cryptotest.SetGlobalRandom(t, 2)
	v.Sealed = must(hpke.Seal(to.Public(), hpke.HKDFSHA256(), hpke.AES256GCM(), v.Info, v.Plain))
	one := answers(t, "one run", "insecure-L8-50", 1, false, 20, 1, nil)
	q := &decrypt.Question{ID: digest([]byte("lwe file"))[:16], Epoch: 7, Quorum: []uint32{0, 2}, Count: 20, Each: 1, Ciphertexts: [32]byte(digest(nil))}
	of := &threshold.Answers{Params: one.Set, Threshold: 1, Question: q}
	v.add(t, to, &threshold.AnswersFile{Messages: 18, Encoding: lwe.Plain}, of, one.Answers)
	flooded := bgvAnswers(t, "insecure-B5-17", 2, 4711, true)
	q = &decrypt.Question{ID: digest([]byte("bgv file"))[:16], Epoch: 8, Quorum: []uint32{0, 1, 2}, BGV: true, Level: 2, Flooding: true, Count: 1, Each: 32}
	q.Ciphertexts = decrypt.CiphertextsDigest(flooded.Ciphertext, len(flooded.Ciphertext))
	of = &threshold.Answers{Params: flooded.Set, Threshold: 2, Question: q, Ciphertexts: flooded.Ciphertext}
	v.add(t, to, &threshold.AnswersFile{Messages: 5, Coefficients: 6, Slots: true}, of, flooded.Answers)
	return v
}

// add adds a file of one request, whose parts are sealed answers.
func (v *recipientVectors) add(t *testing.T, to *threshold.Recipient, f *threshold.AnswersFile, a *threshold.Answers, parts []hexBytes) {
	q := a.Question
	q.Keys, q.Recipient = [32]byte(digest([]byte("keys"))), v.Public
	a.Epoch, a.Sealed = q.Epoch, true
	for i, p := range parts {
		a.Parts = append(a.Parts, must(hpke.Seal(to.Public(), hpke.HKDFSHA256(), hpke.AES256GCM(), q.Info(q.Quorum[i]), p)))
	}
	f.Answers = []*threshold.Answers{a}
	var b bytes.Buffer
	if _, err := f.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	v.Files = append(v.Files, b.String())
	v.Messages = append(v.Messages, must(to.OpenFile(must(threshold.ReadAnswers(&b)))))
}

// TestBGVVectors compares the vectors of the Python client's tests of BGV and sealed answers with
// this client's results.
func TestBGVVectors(t *testing.T) {
	var v bgvVectors
	for _, set := range bgv.Sets() {
		v.Sets = append(v.Sets, ofBGVSet(t, set))
	}
	v.Answers = []bgvAnswerVectors{
		bgvAnswers(t, "insecure-B5-17", 2, 1, false),
		bgvAnswers(t, "insecure-B5-8", 0, 77, false),
		bgvAnswers(t, "insecure-B6-31", 3, 2130706432, false),
		bgvAnswers(t, "insecure-B5-17", 2, 4711, true),
		bgvAnswers(t, "insecure-B5-17", 1, 1, true),
		bgvAnswers(t, "insecure-B6-31", 4, 65536, true),
	}
	v.Questions, v.Recipient = questions(), recipientOfVectors(t)
	compare(t, "bgv.json", v)
}
