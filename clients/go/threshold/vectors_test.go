package threshold_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/sample"
)

var update = flag.Bool("update", false, "update the vectors in the Python client's testdata")

// vectors are the results that other clients must reproduce. The tests of the Python client read
// them.
type vectors struct {
	Sets    []setVectors    `json:"sets"`
	Answers []answerVectors `json:"answers"`
	// Statement is the message that attesters sign.
	Statement statementVectors `json:"statement"`
	Digest    digestVectors    `json:"digest"`
}

type setVectors struct {
	Name       string           `json:"name"`
	Hash       hexBytes         `json:"hash"`
	ChunkSizes []int            `json:"chunk_sizes"`
	Sizes      [2]int           `json:"sizes"` // of LWE and ring ciphertexts
	Kinds      map[string][]int `json:"kinds"` // by form, 1000 log eta + log Phi for thresholds 1, 2, ...
	// Encodings holds the residues of all messages.
	Encodings map[string][]uint64 `json:"encodings"`
	// Transform and Expanded are SHA-256 of packed residues: of the transform of X + 2 X^2 + ...,
	// and of the half of the public key that is expanded from the seed.
	Transform  hexBytes          `json:"transform"`
	Expanded   hexBytes          `json:"expanded"`
	Encryption encryptionVectors `json:"encryption"`
}

// encryptionVectors holds an encryption of messages k mod p in the first 100 coefficients, under a
// public key whose b is the transform of X + 2 X^2 + ..., and with the given u, e1 and e2. The keys
// consist only of the public key.
type encryptionVectors struct {
	Header       hexBytes            `json:"header"`
	Digest       hexBytes            `json:"digest"`
	U            hexBytes            `json:"u"` // signed bytes, like the others
	E1           hexBytes            `json:"e1"`
	E2           hexBytes            `json:"e2"`
	Ring         map[string]hexBytes `json:"ring"` // SHA-256 of the ciphertext, by encoding
	LWE          map[string]hexBytes `json:"lwe"`  // the same for the extracted LWE ciphertexts, concatenated
	Coefficients []int               `json:"coefficients"`
}

type answerVectors struct {
	Name      string     `json:"name"`
	Set       string     `json:"set"`
	Threshold int        `json:"threshold"`
	Masks     string     `json:"masks"`
	Answers   []hexBytes `json:"answers"`
	Messages  []uint64   `json:"messages"` // none if the runs differ or the words do not fit
}

type statementVectors struct {
	Epoch       uint64   `json:"epoch"`
	Keys        hexBytes `json:"keys"`
	Ciphertexts hexBytes `json:"ciphertexts"`
	Circuit     string   `json:"circuit"`
	Statement   hexBytes `json:"statement"`    // of LWE ciphertexts
	Ring        hexBytes `json:"of_3_of_each"` // of ring ciphertexts of which 3 coefficients are opened
}

// digestVectors holds the names of count ciphertexts of one size.
type digestVectors struct {
	Count       int      `json:"count"`
	Ciphertexts hexBytes `json:"ciphertexts"`
	Digest      hexBytes `json:"digest"`
}

type hexBytes []byte

func (b hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(b)), nil }

func digest(b []byte) hexBytes {
	d := sha256.Sum256(b)
	return d[:]
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// packed returns the encoding of N residues.
func packed(s *lwe.Scheme, v []uint64) []byte {
	return s.AppendRing(nil, &lwe.Ring{A: v, B: v})[:s.RingSize()/2]
}

func ofSet(set *lwe.Set) setVectors {
	s := must(lwe.New(set))
	hash := set.Hash()
	v := setVectors{
		Name: set.Name, Hash: hash[:], Sizes: [2]int{s.LWESize(), s.RingSize()}, Kinds: map[string][]int{}, Encodings: map[string][]uint64{},
	}
	for i := range s.Chunks() {
		v.ChunkSizes = append(v.ChunkSizes, s.ChunkSize(i))
	}
	for t := 1; t <= 7; t++ {
		for form, paper := range map[string]bool{"exact": false, "paper": true} {
			k := must(decrypt.ParamsOf(s, t, paper)).Kind
			v.Kinds[form] = append(v.Kinds[form], 1000*k.LogEta+k.LogPhi)
		}
	}
	for _, e := range []lwe.Encoding{lwe.Plain, lwe.Padded, lwe.Boolean} {
		for m := uint64(0); m < s.P && (e != lwe.Boolean || m < 2); m++ {
			v.Encodings[e.String()] = append(v.Encodings[e.String()], must(s.Encode(m, e)))
		}
	}
	ramp := make([]uint64, s.N())
	for i := range ramp {
		ramp[i] = uint64(i)
	}
	s.Forward(ramp, ramp)
	v.Transform = digest(packed(s, ramp))

	seed := [lwe.SeedSize]byte(digest([]byte("vectors")))
	keys := s.NewKeys(seed)
	copy(keys.Public, ramp)
	v.Encryption = encryption(s, keys)
	s.UniformPublic(ramp, &seed)
	v.Expanded = digest(packed(s, ramp))
	return v
}

func encryption(s *lwe.Scheme, keys *lwe.Keys) encryptionVectors {
	of := keys.Digest()
	v := encryptionVectors{Header: keys.Header(), Digest: of[:], Ring: map[string]hexBytes{}, LWE: map[string]hexBytes{}, Coefficients: []int{0, 7, s.N() - 1}}
	source := sample.NewSource(digest([]byte("encryption of vectors")))
	errors := must(lwe.NewErrors(s.Variance))
	signed := func(draw func([]int64, *sample.Stream), name string) (out hexBytes) {
		small := make([]int64, s.N())
		draw(small, source.Stream("lwe encryption "+name))
		for _, x := range small {
			out = append(out, byte(x))
		}
		return out
	}
	v.U, v.E1, v.E2 = signed(lwe.Differences, "u"), signed(errors.Sample, "e1"), signed(errors.Sample, "e2")
	public := must(s.PublicKey(keys))
	for _, e := range []lwe.Encoding{lwe.Plain, lwe.Padded, lwe.Boolean} {
		messages := make([]uint64, 100)
		for k := range messages {
			if messages[k] = uint64(k) % s.P; e == lwe.Boolean {
				messages[k] %= 2
			}
		}
		c := must(public.Encrypt(messages, e, source))
		v.Ring[e.String()] = digest(s.AppendRing(nil, c))
		var all []byte
		for _, k := range v.Coefficients {
			x := s.NewLWE()
			s.Extract(x, c, k)
			all = s.AppendLWE(all, x)
		}
		v.LWE[e.String()] = digest(all)
	}
	return v
}

// answers returns the answers of a quorum for messages k mod p, of runs with the given number of
// different ids; change may modify them.
func answers(t *testing.T, name, set string, threshold int, paper bool, count, runs int, change func([][]decrypt.Part)) answerVectors {
	s := must(lwe.New(must(lwe.Lookup(set))))
	p := must(decrypt.ParamsOf(s, threshold, paper))
	v := answerVectors{Name: name, Set: set, Threshold: threshold, Masks: "exact"}
	if paper {
		v.Masks = "paper"
	}
	parts, mask := make([][]decrypt.Part, p.Parties), uint64(1)<<p.Kind.LogEta-1
	stream := sample.NewSource(digest([]byte("answers of vectors"))).Stream(name)
	for i := range count {
		id, rest := decrypt.RunID(digest([]byte{byte(i % runs)})[:16]), uint64(i)%s.P<<p.Kind.LogPhi
		for k := range parts {
			word := stream.Uint64() & mask
			if k == len(parts)-1 {
				word = rest
			}
			rest = (rest - word) & mask
			parts[k] = append(parts[k], decrypt.Part{Run: id, Word: word})
		}
	}
	if change != nil {
		change(parts)
	}
	for _, part := range parts {
		v.Answers = append(v.Answers, must(decrypt.EncodeAnswer(p, part)))
	}
	messages, err := decrypt.Plaintexts(p, parts)
	if (err == nil) != (change == nil) {
		t.Fatalf("%s: %v", name, err)
	}
	v.Messages = messages
	return v
}

// TestVectors compares the vectors of the Python client's tests with this client's results.
func TestVectors(t *testing.T) {
	var v vectors
	for _, set := range lwe.Sets() {
		v.Sets = append(v.Sets, ofSet(set))
	}
	const small = "insecure-L8-50"
	v.Answers = []answerVectors{
		answers(t, "one run", small, 1, false, 20, 1, nil),
		answers(t, "several runs", small, 2, false, 21, 3, nil),
		answers(t, "large words", "T11-53", 3, true, 19, 2, nil),
		answers(t, "large words of a legacy set", "L11-53", 3, true, 19, 2, nil),
		answers(t, "another run", small, 1, false, 5, 1, func(parts [][]decrypt.Part) { parts[1][4].Run[0]++ }),
		answers(t, "another word", small, 1, false, 5, 1, func(parts [][]decrypt.Part) { parts[0][3].Word ^= 1 }),
	}
	x := statementVectors{Epoch: 7, Keys: digest([]byte("keys")), Ciphertexts: digest([]byte("ciphertexts")), Circuit: "a vote, größer"}
	q := decrypt.Question{Epoch: x.Epoch, Keys: [32]byte(x.Keys), Ciphertexts: [32]byte(x.Ciphertexts), Each: 1}
	x.Statement = q.Statement(x.Circuit)
	q.Ring, q.Each = true, 3
	x.Ring = q.Statement(x.Circuit)
	v.Statement = x
	d := digestVectors{Count: 3, Ciphertexts: []byte("three ciphertexts of 14 bytes, all different")[:42]}
	of := decrypt.CiphertextsDigest(d.Ciphertexts, len(d.Ciphertexts)/d.Count)
	d.Digest = of[:]
	v.Digest = d

	compare(t, "threshold.json", v)
}

// compare compares a file of the Python client's testdata with vectors.
func compare(t *testing.T, name string, v any) {
	t.Helper()
	want := append(must(json.MarshalIndent(v, "", " ")), '\n')
	path := filepath.Join("..", "..", "python", "tests", "testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		at := 0
		for ; at < min(len(got), len(want)) && got[at] == want[at]; at++ {
		}
		t.Fatalf("%s differs from byte %d on; if this is intended, run this test with -update, and the Python client's tests", path, at)
	}
}
