package toss

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/host/config"
)

const testSet = "insecure-M8-32"

// world holds founders with fixed keys, and the values that they drew, in the order of the
// ceremony.
type world struct {
	*Ceremony
	keys        []ed25519.PrivateKey
	secrets     []*Secret
	commitments []*Commitment
}

func key(i int) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte{byte(i)})
	return ed25519.NewKeyFromSeed(seed[:])
}

func founders(n int) (list []Founder) {
	for i := range n {
		list = append(list, Founder{fmt.Sprintf("p%d", i), key(i).Public().(ed25519.PublicKey)})
	}
	return list
}

// drawn returns a fixed value for a founder.
func drawn(what ...byte) opening {
	return opening{sha256.Sum256(append([]byte("value"), what...)), sha256.Sum256(append([]byte("blind"), what...))}
}

func newWorld(t testing.TB, n int, label string) *world {
	t.Helper()
	c, err := New(label, testSet, founders(n))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Ceremony: c, keys: make([]ed25519.PrivateKey, n), secrets: make([]*Secret, n), commitments: make([]*Commitment, n)}
	for i := range n {
		seat, err := c.seat(key(i).Public().(ed25519.PublicKey))
		if err != nil {
			t.Fatal(err)
		}
		w.keys[seat] = key(i)
		if w.secrets[seat], w.commitments[seat], err = c.commit(key(i), drawn(byte(i))); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) reveals(t testing.TB) (list []*Reveal) {
	t.Helper()
	for i, s := range w.secrets {
		m, err := s.Reveal(w.keys[i], w.commitments)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// resign signs a modified reveal again, as its founder can.
func (w *world) resign(m *Reveal) {
	m.signature = [64]byte(ed25519.Sign(w.keys[m.seat], w.revealSigned(m.seat, m.list, &m.opening)))
}

// faulty checks that an error names exactly these founders.
func faulty(t *testing.T, err error, kind error, names ...string) {
	t.Helper()
	slices.Sort(names)
	var f *Fault
	if !errors.As(err, &f) || !errors.Is(err, kind) || !slices.Equal(f.Founders, names) {
		t.Errorf("%v, want %v of %v", err, kind, names)
	}
}

func TestToss(t *testing.T) {
	for _, n := range []int{2, 3, config.MaxParties} {
		w := newWorld(t, n, "first")
		transcript, err := Combine(w.reveals(t))
		if err != nil {
			t.Fatal(err)
		}
		b := transcript.Bytes()
		read, err := ParseTranscript(b)
		if err != nil || read.Verify() != nil || read.Seed() != transcript.Seed() || !bytes.Equal(read.Bytes(), b) {
			t.Errorf("%d founders: the transcript decodes to another: %v", n, err)
		}
		if len(b) > MaxSize || len(w.reveals(t)[0].Bytes()) > MaxSize {
			t.Error("messages exceed MaxSize")
		}
		reveals := w.reveals(t)
		slices.Reverse(reveals)
		if other, err := Combine(append(reveals, reveals[0])); err != nil || !bytes.Equal(other.Bytes(), b) {
			t.Errorf("in another order: %v", err)
		}
		if got := transcript.NotFounders(founders(n + 1)); !slices.Equal(got, []string{fmt.Sprintf("p%d", n)}) {
			t.Errorf("%v took no part", got)
		}
	}
}

// The seed depends on every founder's value, and on label and founders.
func TestSeedDependsOnEverybody(t *testing.T) {
	seeds := map[[multikey.SeedSize]byte]string{}
	toss := func(name string, w *world) {
		t.Helper()
		transcript, err := Combine(w.reveals(t))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seeds[transcript.Seed()]; ok {
			t.Errorf("%s and %s give the same seed", name, other)
		}
		seeds[transcript.Seed()] = name
	}
	toss("first", newWorld(t, 3, "first"))
	toss("second", newWorld(t, 3, "second"))
	toss("two", newWorld(t, 2, "first"))
	for i := range 3 {
		w := newWorld(t, 3, "first")
		var err error
		if w.secrets[i], w.commitments[i], err = w.commit(w.keys[i], drawn(7)); err != nil {
			t.Fatal(err)
		}
		toss(fmt.Sprint("another value of founder ", i), w)
	}
}

func TestDrawn(t *testing.T) {
	w := newWorld(t, 2, "first")
	a, m, err := w.Commit(w.keys[0])
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := w.Commit(w.keys[0])
	if err != nil || a.value == b.value || a.blind == b.blind || a.value == a.blind {
		t.Errorf("values are reused: %v", err)
	}
	if _, err := a.Reveal(w.keys[0], []*Commitment{m, w.commitments[1]}); err != nil {
		t.Error(err)
	}
	if _, _, err := w.Commit(key(9)); !errors.Is(err, ErrFounder) {
		t.Errorf("a stranger commits: %v", err)
	}
	if a.Wipe(); a.opening != (opening{}) {
		t.Error("the secret is not wiped")
	}
}

func TestCeremonyRefused(t *testing.T) {
	two := founders(2)
	for name, x := range map[string]struct {
		label, set string
		founders   []Founder
	}{
		"label":        {"The First", testSet, two},
		"no label":     {"", testSet, two},
		"set":          {"first", "M99-1", two},
		"one founder":  {"first", testSet, two[:1]},
		"too many":     {"first", testSet, founders(config.MaxParties + 1)},
		"name":         {"first", testSet, []Founder{{"P 0", two[0].Key}, two[1]}},
		"name twice":   {"first", testSet, []Founder{two[0], {"p0", two[1].Key}}},
		"key twice":    {"first", testSet, []Founder{two[0], {"p1", two[0].Key}}},
		"short key":    {"first", testSet, []Founder{two[0], {"p1", two[1].Key[:31]}}},
		"two of three": {"first", testSet, append(founders(2), Founder{"p3", two[0].Key})},
	} {
		if _, err := New(x.label, x.set, x.founders); !errors.Is(err, ErrCeremony) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := newWorld(t, 2, "first").Ceremony
	if c.Hash[0]++; !errors.Is(c.check(), ErrCeremony) {
		t.Error("a set with another hash is accepted")
	}
	c = newWorld(t, 3, "first").Ceremony
	if slices.Reverse(c.Founders); !errors.Is(c.check(), ErrCeremony) {
		t.Error("founders in another order are accepted")
	}
}

// Inputs for which a founder reveals nothing.
func TestRevealRefused(t *testing.T) {
	w := newWorld(t, 3, "first")
	s, k := w.secrets[0], w.keys[0]
	reveal := func(list ...*Commitment) error {
		m, err := s.Reveal(k, list)
		if err != nil && m != nil {
			t.Error("a value is revealed")
		}
		return err
	}
	a, b, c := w.commitments[0], w.commitments[1], w.commitments[2]
	faulty(t, reveal(a, b), ErrMissing, c.Founder())
	faulty(t, reveal(a), ErrMissing, b.Founder(), c.Founder())
	_, again, err := w.commit(w.keys[1], drawn(8))
	if err != nil {
		t.Fatal(err)
	}
	faulty(t, reveal(a, b, c, again), ErrTwice, b.Founder())
	if err := reveal(a, b, c, b); err != nil {
		t.Errorf("the same commitment twice: %v", err)
	}
	_, own, err := w.commit(k, drawn(8))
	if err != nil {
		t.Fatal(err)
	}
	if err := reveal(own, b, c); !errors.Is(err, ErrOwn) {
		t.Errorf("another commitment of the same founder: %v", err)
	}
	if err := reveal(a, b, newWorld(t, 3, "second").commitments[2]); !errors.Is(err, ErrOther) {
		t.Errorf("of another ceremony: %v", err)
	}
	// Another founder's commitment, as one's own and in the other's name.
	copied := *b
	copied.seat = 2
	if err := reveal(a, b, &copied); !errors.Is(err, ErrSignature) {
		t.Errorf("a copied commitment: %v", err)
	}
	forged := *c
	forged.commitment[0]++
	if err := reveal(a, b, &forged); !errors.Is(err, ErrSignature) {
		t.Errorf("a forged commitment: %v", err)
	}
	for _, other := range []ed25519.PrivateKey{w.keys[1], key(9)} {
		if _, err := s.Reveal(other, w.commitments); !errors.Is(err, ErrFounder) {
			t.Errorf("with another key: %v", err)
		}
	}
}

// A founder that signs another's commitment as its own cannot open it: the digest contains the
// founder.
func TestCopiedCommitment(t *testing.T) {
	w := newWorld(t, 3, "first")
	thief := w.commitments[2]
	thief.commitment = w.commitments[1].commitment
	thief.signature = [64]byte(ed25519.Sign(w.keys[2], w.commitSigned(2, thief.commitment)))
	var reveals []*Reveal
	for i := range 2 {
		m, err := w.secrets[i].Reveal(w.keys[i], w.commitments)
		if err != nil {
			t.Fatal(err)
		}
		reveals = append(reveals, m)
	}
	last := *reveals[1]
	last.seat = 2
	w.resign(&last)
	_, err := Combine(append(reveals, &last))
	faulty(t, err, ErrOpening, w.Founders[2].Name)
}

func TestCombineRefused(t *testing.T) {
	w := newWorld(t, 3, "first")
	names := []string{w.Founders[0].Name, w.Founders[1].Name, w.Founders[2].Name}
	with := func(change func(m *Reveal)) []*Reveal {
		list := w.reveals(t)
		change(list[2])
		return list
	}
	combine := func(list []*Reveal) error {
		got, err := Combine(list)
		if err == nil {
			return errors.Join(errors.New("it is accepted"), got.Verify())
		}
		return err
	}
	faulty(t, combine(w.reveals(t)[:2]), ErrMissing, names[2])
	faulty(t, combine(w.reveals(t)[2:]), ErrMissing, names[0], names[1])
	faulty(t, combine(with(func(m *Reveal) { m.value[0]++; w.resign(m) })), ErrOpening, names[2])
	faulty(t, combine(with(func(m *Reveal) { m.blind[31] ^= 1; w.resign(m) })), ErrOpening, names[2])
	if err := combine(with(func(m *Reveal) { m.value[0]++ })); !errors.Is(err, ErrSignature) {
		t.Errorf("a value that is not signed: %v", err)
	}
	if err := combine(with(func(m *Reveal) { m.seat = 1 })); !errors.Is(err, ErrSignature) {
		t.Errorf("in the name of another: %v", err)
	}
	if err := combine(with(func(m *Reveal) { m.list[0].signature[0] ^= 1 })); !errors.Is(err, ErrList) {
		t.Errorf("a commitment that is not signed: %v", err)
	}
	if err := combine(with(func(m *Reveal) { m.list[0].commitment[0] ^= 1; w.resign(m) })); !errors.Is(err, ErrList) {
		t.Errorf("an invented commitment: %v", err)
	}
	if err := combine(append(w.reveals(t), newWorld(t, 3, "second").reveals(t)[0])); !errors.Is(err, ErrOther) {
		t.Errorf("of another ceremony: %v", err)
	}
	if err := combine(nil); !errors.Is(err, ErrFile) {
		t.Errorf("nothing: %v", err)
	}
	// A founder sends different commitments to the others, and opens the one that it prefers.
	_, again, err := w.commit(w.keys[1], drawn(8))
	if err != nil {
		t.Fatal(err)
	}
	list := w.reveals(t)
	if list[2], err = w.secrets[2].Reveal(w.keys[2], []*Commitment{w.commitments[0], again, w.commitments[2]}); err != nil {
		t.Fatal(err)
	}
	faulty(t, combine(list), ErrTwice, names[1])
}

// Every reader of the transcript can verify all of it.
func TestVerifyRefused(t *testing.T) {
	w := newWorld(t, 3, "first")
	for name, x := range map[string]struct {
		change func(*Transcript)
		want   error
	}{
		"commitment":        {func(t *Transcript) { t.list[1].commitment[0]++ }, ErrSignature},
		"commitment signed": {func(t *Transcript) { t.list[1].signature[0]++ }, ErrSignature},
		"reveal":            {func(t *Transcript) { t.opened[1].value[0]++ }, ErrSignature},
		"reveal signed":     {func(t *Transcript) { t.opened[1].signature[0]++ }, ErrSignature},
		"exchanged":         {func(t *Transcript) { t.opened[0], t.opened[1] = t.opened[1], t.opened[0] }, ErrSignature},
		"another list": {func(t *Transcript) { // the reveals were made for another list
			_, again, _ := w.commit(w.keys[1], drawn(8))
			t.list[1] = again.signedCommitment
		}, ErrSignature},
		"opening": {func(t *Transcript) {
			o := &t.opened[1]
			o.value[0]++
			o.signature = [64]byte(ed25519.Sign(w.keys[1], w.revealSigned(1, t.list, &o.opening)))
		}, ErrOpening},
	} {
		transcript, err := Combine(w.reveals(t))
		if err != nil {
			t.Fatal(err)
		}
		x.change(transcript)
		if err := transcript.Verify(); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The messages are pinned, because founders may use different releases.
func TestTossIsPinned(t *testing.T) {
	w := newWorld(t, 2, "first")
	transcript, err := Combine(w.reveals(t))
	if err != nil {
		t.Fatal(err)
	}
	seed := transcript.Seed()
	for name, x := range map[string][2]string{
		"seed":       {hex.EncodeToString(seed[:]), pinnedSeed},
		"secret":     {digest(w.secrets[0].Bytes()), pinnedSecret},
		"commitment": {digest(w.commitments[0].Bytes()), pinnedCommitment},
		"reveal":     {digest(w.reveals(t)[0].Bytes()), pinnedReveal},
		"transcript": {digest(transcript.Bytes()), pinnedTranscript},
	} {
		if x[0] != x[1] {
			t.Errorf("%s: %s", name, x[0])
		}
	}
}

func digest(b []byte) string {
	d := sha256.Sum256(b)
	return hex.EncodeToString(d[:])
}

const (
	pinnedSeed       = "69fdd1e8e9e12a67cacd239d858d5b56a7e4e5ac68bb2eed17b555fcaabaea09"
	pinnedSecret     = "67d4f282b6b19514daca7f6dac415c00f7a9226a42132e58326dd625058de6b4"
	pinnedCommitment = "5cbb360fe2c44e793c4528920f4ab6d9abe8f9cf0ae88abb51e8d1f9e02331dd"
	pinnedReveal     = "58f326def27f8cbf812c9652c91096212ccb61df25ba14389ded70e55ebaa389"
	pinnedTranscript = "df23e30b441f90fbbc11112239ae936f94005749632d147fa7e2b200ee59ae0c"
)

// messages returns one message of each kind, with functions that decode and encode it again.
func messages(t testing.TB) map[string]struct {
	b    []byte
	read func([]byte) ([]byte, error)
} {
	w := newWorld(t, 2, "first")
	reveals := w.reveals(t)
	transcript, err := Combine(reveals)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]struct {
		b    []byte
		read func([]byte) ([]byte, error)
	}{
		"secret": {w.secrets[0].Bytes(), func(b []byte) ([]byte, error) {
			return encoded(ParseSecret(b))
		}},
		"commitment": {w.commitments[0].Bytes(), func(b []byte) ([]byte, error) { return encoded(ParseCommitment(b)) }},
		"reveal":     {reveals[0].Bytes(), func(b []byte) ([]byte, error) { return encoded(ParseReveal(b)) }},
		"transcript": {transcript.Bytes(), func(b []byte) ([]byte, error) { return encoded(ParseTranscript(b)) }},
	}
}

func encoded(m interface{ Bytes() []byte }, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return m.Bytes(), nil
}

func TestMessagesRefused(t *testing.T) {
	for name, m := range messages(t) {
		if b, err := m.read(m.b); err != nil || !bytes.Equal(b, m.b) {
			t.Errorf("%s: it decodes to another: %v", name, err)
		}
		for n := range m.b {
			if _, err := m.read(m.b[:n]); !errors.Is(err, ErrFile) && !errors.Is(err, ErrCeremony) {
				t.Fatalf("%s of %d bytes: %v", name, n, err)
			}
		}
		if _, err := m.read(append(slices.Clone(m.b), 0)); !errors.Is(err, ErrFile) {
			t.Errorf("%s with an extra byte: %v", name, err)
		}
		if _, err := m.read(append(slices.Clone(m.b), make([]byte, MaxSize)...)); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "messages have at most") {
			t.Errorf("%s that is too large: %v", name, err)
		}
		for other, x := range messages(t) {
			if _, err := x.read(m.b); other != name && !errors.Is(err, ErrFile) {
				t.Errorf("%s as %s: %v", name, other, err)
			}
		}
	}
	w := newWorld(t, 2, "first")
	m := w.reveals(t)[0]
	m.seat, w.secrets[0].seat, w.commitments[0].seat = 2, 2, 2
	for name, b := range map[string][]byte{"secret": w.secrets[0].Bytes(), "commitment": w.commitments[0].Bytes(), "reveal": m.Bytes()} {
		if _, err := messages(t)[name].read(b); !errors.Is(err, ErrFile) {
			t.Errorf("%s of the third of two: %v", name, err)
		}
	}
}

// FuzzMessages decodes arbitrary bytes as each kind of message: a decoded message encodes to the
// same bytes, and verifying it does not panic.
func FuzzMessages(f *testing.F) {
	all := messages(f)
	for _, m := range all {
		f.Add(m.b)
	}
	f.Add([]byte(transcriptLine))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, m := range all {
			if again, err := m.read(b); err == nil && !bytes.Equal(b, again) {
				t.Errorf("%s: %x is decoded as %x", name, b, again)
			}
		}
		if r, err := ParseReveal(b); err == nil {
			_, _ = Combine([]*Reveal{r})
		}
		if x, err := ParseTranscript(b); err == nil {
			_ = x.Verify()
		}
	})
}
