package linear

import (
	"errors"
	"slices"
	"testing"
)

// refused checks that all errors wrap the given one.
func refused(t *testing.T, want error, cases map[string]error) {
	t.Helper()
	for name, err := range cases {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

func TestShapesAreRefused(t *testing.T) {
	w := newWorld(t, "insecure-V6-32")
	refused(t, ErrShape, map[string]error{
		"no rows":          second(w.PlanVector(0, 1, Double, 0)),
		"no columns":       second(w.PlanVector(1, 0, Double, 0)),
		"many rows":        second(w.PlanVector(MaxEntries+1, 1, Double, 0)),
		"many columns":     second(w.PlanVector(1, MaxEntries+1, Double, 0)),
		"packing":          second(w.PlanVector(1, 1, Tiled+1, 0)),
		"slots":            second(w.PlanVector(1, 1, Double, 3)),
		"slots below 0":    second(w.PlanVector(1, 1, Double, -1)),
		"slots beyond N":   second(w.PlanVector(1, 1, Tiled, 65)),
		"slots of any":     second(w.PlanVector(1, 1, Cheapest, 2)),
		"rows too long":    second(w.PlanVector(4, 64, Forward, 2)),
		"batch of nothing": second(w.PlanBatch(1, 1, 0, 1)),
		"no outputs":       second(w.PlanBatch(1, 1, 1, 0)),
		"large batch":      second(w.PlanBatch(1, MaxEntries, 2, 1)),
		"no inner":         second(w.PlanProduct(ProductShape{Rows: 1, Cols: 1})),
		"method":           second(w.PlanProduct(ProductShape{Rows: 1, Inner: 1, Cols: 1, Method: Second + 1})),
		"base":             second(w.PlanProduct(ProductShape{Rows: 1, Inner: 1, Cols: 1, Base: 1})),
		"digits": second(w.PlanProduct(ProductShape{
			Rows: 1, Inner: 1, Cols: 1, MaxLeft: 1 << 40, MaxRight: 1, Base: 2,
		})),
	})
}

func TestRangesAreRefused(t *testing.T) {
	w := newWorld(t, "insecure-P6-17")
	shape := ProductShape{Rows: 2, Inner: 2, Cols: 2, MaxLeft: 128, MaxRight: 128} // 2^15 = (T-1)/2
	p, err := w.PlanProduct(shape)
	if err != nil {
		t.Fatal(err)
	}
	over := func(change func(s *ProductShape)) error {
		s := shape
		change(&s)
		return second(w.PlanProduct(s))
	}
	good := []int64{1, 2, 3, -128}
	refused(t, ErrRange, map[string]error{
		"left":         over(func(s *ProductShape) { s.MaxLeft++ }),
		"right":        over(func(s *ProductShape) { s.MaxRight++ }),
		"inner":        over(func(s *ProductShape) { s.Inner++ }),
		"product":      over(func(s *ProductShape) { s.MaxLeft, s.MaxRight = 1<<32, 1<<32 }),
		"sum":          over(func(s *ProductShape) { s.MaxLeft, s.MaxRight = 1<<32, 1<<31 }),
		"digits":       over(func(s *ProductShape) { s.Base, s.MaxLeft, s.MaxRight = 256, 255, 255 }),
		"63 bits":      over(func(s *ProductShape) { s.Base, s.MaxLeft, s.MaxRight = 2, 1<<31, 1<<31 }),
		"entry":        second(p.EncryptLeft(w.secret, []int64{1, 2, 3, 129}, 1, w.source())),
		"minus entry":  second(p.EncryptLeft(w.secret, []int64{1, 2, 3, -129}, 1, w.source())),
		"right entry":  second(p.EncryptRight(w.secret, []int64{1, 2, 3, 129}, 1, w.source())),
		"least number": second(p.EncryptRight(w.secret, []int64{1, 2, 3, -1 << 63}, 1, w.source())),
	})
	refused(t, ErrShape, map[string]error{
		"left":  second(p.EncryptLeft(w.secret, good[:3], 1, w.source())),
		"right": second(p.EncryptRight(w.secret, append(good, 1), 1, w.source())),
	})
	refused(t, nil, map[string]error{
		"left":  second(p.EncryptLeft(w.secret, good, 1, w.source())),
		"right": second(p.EncryptRight(w.secret, good, 1, w.source())),
	})

	v := newWorld(t, "insecure-V6-32")
	vector, err := v.PlanVector(3, 4, Double, 0)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := v.PlanBatch(3, 2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	in, err := vector.Encrypt(v.secret, v.residues(4), 1, v.source())
	if err != nil {
		t.Fatal(err)
	}
	e, err := vector.Evaluator(v.public, in)
	if err != nil {
		t.Fatal(err)
	}
	if in, err = batch.Encrypt(v.secret, v.residues(12), 1, v.source()); err != nil {
		t.Fatal(err)
	}
	b, err := batch.Evaluator(v.public, in)
	if err != nil {
		t.Fatal(err)
	}
	bad := func(n int) []uint64 { return append(constant(n-1, v.T-1), v.T) }
	refused(t, ErrRange, map[string]error{
		"vector":       second(vector.Encrypt(v.secret, bad(4), 1, v.source())),
		"matrix":       third(e.Answer(0, bad(12), nil, v.source())),
		"own vector":   third(e.Answer(0, v.residues(12), bad(4), v.source())),
		"matrices":     second(batch.Encrypt(v.secret, bad(12), 1, v.source())),
		"vectors":      third(b.Answer(0, bad(4), nil, v.source())),
		"own matrices": third(b.Answer(0, v.residues(4), bad(12), v.source())),
	})
	refused(t, ErrShape, map[string]error{
		"vector":       second(vector.Encrypt(v.secret, v.residues(5), 1, v.source())),
		"matrix":       third(e.Answer(0, v.residues(11), nil, v.source())),
		"own vector":   third(e.Answer(0, v.residues(12), v.residues(3), v.source())),
		"answer":       third(e.Answer(1, v.residues(12), nil, v.source())),
		"answer -1":    third(e.Answer(-1, v.residues(12), nil, v.source())),
		"matrices":     second(batch.Encrypt(v.secret, v.residues(11), 1, v.source())),
		"vectors":      third(b.Answer(0, v.residues(5), nil, v.source())),
		"own matrices": third(b.Answer(0, v.residues(4), v.residues(13), v.source())),
		"batch answer": third(b.Answer(1, v.residues(4), nil, v.source())),
		"opening":      second(vector.Open(v.secret, 1, nil)),
		"room":         p.Open(w.secret, 0, nil, make([]int64, 3)),
	})
}

func edited(b []byte, at int, v byte) []byte {
	c := slices.Clone(b)
	c[at] = v
	return c
}

// Keys and ciphertexts of other parties, truncated data, and values that are not residues are
// refused with the right error.
func TestMessagesAreRefused(t *testing.T) {
	w, other := newWorld(t, "insecure-V6-32"), newWorld(t, "insecure-P6-40")
	again := newWorld(t, "insecure-V6-32")
	again.secret, again.public = again.Generate(false, again.source())
	p, err := w.PlanVector(3, 80, Double, 0)
	if err != nil || p.Blocks < 2 {
		t.Fatal(err, p.Blocks)
	}
	in, err := p.Encrypt(w.secret, w.residues(80), 1, w.source())
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Evaluator(w.public, in)
	if err != nil {
		t.Fatal(err)
	}
	answer, _, err := e.Answer(0, w.residues(p.PerAnswer * 80)[:min(3, p.PerAnswer)*80], nil, w.source())
	if err != nil {
		t.Fatal(err)
	}
	key, header, first := w.public.Encode(), in.Header(), in.AppendCiphertext(nil, 0)
	noResidue := slices.Clone(first)
	for i := range 8 {
		noResidue[i] = 0xff
	}
	part, err := w.public.ReceiveInputs(header, in.Len())
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Put(0, first); err != nil {
		t.Fatal(err)
	}
	high := func(b []byte, at int) []byte {
		c := slices.Clone(b)
		for i := range 8 {
			c[at+i] = 0xff
		}
		return c
	}
	refused(t, ErrKeys, map[string]error{
		"nothing":           second(w.DecodePublicKey(nil)),
		"truncated":         second(w.DecodePublicKey(key[:len(key)-1])),
		"long":              second(w.DecodePublicKey(append(slices.Clone(key), 0))),
		"residue":           second(w.DecodePublicKey(high(key, 64))),
		"nothing for these": second((&ProductPlan{scheme: w.Scheme}).Evaluator(again.public, in, in)),
	})
	refused(t, ErrForeign, map[string]error{
		"key of another set":     second(w.DecodePublicKey(edited(key, 0, key[0]^1))),
		"inputs of another set":  second(w.public.ReceiveInputs(edited(header, 0, header[0]^1), 1)),
		"inputs of another key":  second(w.public.ReceiveInputs(edited(header, 32, header[32]^1), 1)),
		"evaluation, other key":  second(p.Evaluator(again.public, in)),
		"encryption, other set":  second(p.Encrypt(other.secret, w.residues(80), 1, w.source())),
		"decryption, other set":  second(p.Open(other.secret, 0, answer)),
		"decryption, other key":  second(p.Open(again.secret, 0, answer)),
		"answer, other key":      second(p.Open(w.secret, 0, edited(answer, 0, answer[0]^1))),
		"left factor, other set": second((&ProductPlan{scheme: other.Scheme}).EncryptLeft(w.secret, nil, 1, w.source())),
	})
	refused(t, ErrCiphertext, map[string]error{
		"short header": second(w.public.ReceiveInputs(header[:95], 1)),
		"long header":  second(w.public.ReceiveInputs(append(slices.Clone(header), 0), 1)),
		"twice":        part.Put(0, first),
		"before":       part.Put(-1, first),
		"after":        part.Put(in.Len(), first),
		"truncated":    part.Put(1, first[:len(first)-1]),
		"long":         part.Put(1, append(slices.Clone(first), 0)),
		"residue":      part.Put(1, noResidue),
		"missing":      second(p.Evaluator(w.public, part)),
		"fewer": second(p.Evaluator(w.public, &Inputs{
			scheme: w.Scheme, key: w.public.digest, b: in.b[:1],
		})),
	})
	refused(t, ErrAnswer, map[string]error{
		"nothing":        second(p.Open(w.secret, 0, nil)),
		"only the key":   second(p.Open(w.secret, 0, answer[:32:32])),
		"truncated":      second(p.Open(w.secret, 0, answer[:len(answer)-1])),
		"long":           second(p.Open(w.secret, 0, append(slices.Clone(answer), 0))),
		"residue of c_0": second(p.Open(w.secret, 0, high(answer, 32))),
		"residue of c_1": second(p.Open(w.secret, 0, high(answer, len(answer)-8))),
	})
}

// Repetitions of a first frame that was refused because of its last response must not be used to
// check the proof: their challenge was chosen before everything else.
func TestRefusedFramesAreForgotten(t *testing.T) {
	w := newWorld(t, provedSet)
	in := w.encrypted(t, 1, 9)
	out, err := w.public.ReceiveInputs(in.Header(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Put(0, in.AppendCiphertext(nil, 0)); err != nil {
		t.Fatal(err)
	}
	bad := slices.Clone(in.sent[0])
	for i := range 40 { // the last response is long
		bad[len(bad)-1-i] = 0x7f
	}
	if err := out.PutProof(0, bad); !errors.Is(err, ErrProof) {
		t.Fatalf("a long response: %v", err)
	}
	for i := range in.sent {
		if err := out.PutProof(i, in.sent[i]); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(out.proof.secrets); n != w.repetitions() || len(out.proof.turns) != n {
		t.Errorf("%d responses, want %d", n, w.repetitions())
	}
	if err := out.verified(); err != nil {
		t.Errorf("a proof after a refused frame: %v", err)
	}
}

// A wiped key cannot be used.
func TestWipedKey(t *testing.T) {
	w := newWorld(t, "insecure-V6-32")
	w.secret.Wipe()
	defer func() {
		if recover() == nil {
			t.Error("a wiped key encrypts")
		}
	}()
	_, _ = w.secret.encrypt(1, 1, func(int, []uint64) {}, w.source())
}

func FuzzDecodePublicKey(f *testing.F) {
	w := newWorld(f, "insecure-V6-32")
	f.Add(w.public.Encode())
	_, alone := w.Generate(false, w.source())
	f.Add(alone.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := w.DecodePublicKey(b); err == nil && !slices.Equal(p.Encode(), b) {
			t.Error("another encoding")
		}
	})
}

func FuzzReceiveInputs(f *testing.F) {
	w := newWorld(f, "insecure-V6-32")
	in := w.encrypted(f, 1, 0)
	f.Add(in.Header(), in.AppendCiphertext(nil, 0))
	f.Fuzz(func(t *testing.T, header, ciphertext []byte) {
		in, err := w.public.ReceiveInputs(header, 1)
		if err != nil {
			return
		}
		if !slices.Equal(in.Header(), header) {
			t.Error("another header")
		}
		if err := in.Put(0, ciphertext); err == nil && !slices.Equal(in.AppendCiphertext(nil, 0), ciphertext) {
			t.Error("another encoding")
		}
	})
}

func FuzzPutProof(f *testing.F) {
	w := newWorld(f, provedSet)
	in := w.encrypted(f, 1, 9)
	for i := range in.sent {
		f.Add(i, in.sent[i])
	}
	f.Fuzz(func(t *testing.T, i int, frame []byte) {
		out, err := w.public.ReceiveInputs(in.Header(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Put(0, in.AppendCiphertext(nil, 0)); err != nil {
			t.Fatal(err)
		}
		honest := true
		for k := range in.sent {
			send := in.sent[k]
			if k == i {
				send = frame
			}
			honest = honest && slices.Equal(send, in.sent[k])
			if err := out.PutProof(k, send); err != nil {
				return
			}
		}
		if _, _, err := out.all(w.public, 1); err == nil && !honest {
			t.Error("another proof")
		}
	})
}

func FuzzDecodeAnswer(f *testing.F) {
	w := newWorld(f, "insecure-V6-32")
	f.Add(w.encodeAnswer(&Answer{key: w.public.digest, c0: make([]uint64, 3), c1: w.first.NewPoly()}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := w.secret.decodeAnswer(b, 3); err == nil && !slices.Equal(w.encodeAnswer(a), b) {
			t.Error("another encoding")
		}
	})
}
