package e2e

import (
	"encoding/base64"
	endian "encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// canaries are secrets that must not appear in any output. search finds them in the forms in which
// programs print values. A piece of a secret that fills a window counts as a match, so the first
// half of a key is found as well.
type canaries struct {
	windows map[int]map[string]string // names of secrets by the length and the bytes of a window
	numbers map[string]string         // names of secrets by decimal numbers of at least 16 bytes
	words   map[uint64]string         // names of secrets by words of 8 bytes
}

// Lengths of windows in bytes: for values with uniform bytes, and for keys with two bytes per
// coefficient, whose coefficients may have only three values.
const (
	uniformWindow     = 16
	coefficientWindow = 128
)

// leastWord excludes small words, which could be counts or sizes, from the secrets.
const leastWord = 1 << 40

func newCanaries() *canaries {
	return &canaries{
		windows: map[int]map[string]string{uniformWindow: {}, coefficientWindow: {}},
		numbers: map[string]string{}, words: map[uint64]string{},
	}
}

// plant adds uniform bytes: a key, or encoded field elements of 16 bytes each, little-endian.
func (c *canaries) plant(name string, secret []byte) {
	c.piecewise(name, secret, uniformWindow)
	whole := secret
	for len(secret) >= 16 {
		c.number(name, secret[:16])
		c.word(name, endian.LittleEndian.Uint64(secret))
		c.word(name, endian.LittleEndian.Uint64(secret[8:]))
		secret = secret[16:]
	}
	if len(whole) <= 64 {
		c.number(name, whole)
	}
}

func (c *canaries) piecewise(name string, secret []byte, window int) {
	reversed := slices.Clone(secret)
	slices.Reverse(reversed)
	for at := 0; at+window <= len(secret); at += window {
		c.windows[window][string(secret[at:at+window])] = name
		c.windows[window][string(reversed[at:at+window])] = name
	}
}

func (c *canaries) number(name string, secret []byte) {
	c.numbers[decimal(secret)] = name
	c.numbers[new(big.Int).SetBytes(secret).String()] = name
}

func (c *canaries) word(name string, w uint64) {
	if w >= leastWord {
		c.words[w] = name
	}
}

// decimal returns the number that little-endian bytes encode, in decimal.
func decimal(b []byte) string {
	b = slices.Clone(b)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b).String()
}

var (
	hexDigits  = regexp.MustCompile(`[0-9a-fA-F]{16,}`)
	hexPairs   = regexp.MustCompile(`(?:[0-9a-fA-F]{2}[ :,-]){15,}[0-9a-fA-F]{2}`)
	base64Run  = regexp.MustCompile(`[0-9a-zA-Z+/_-]{22,}`)
	digits     = regexp.MustCompile(`[0-9]{13,}`)
	numberList = regexp.MustCompile(`(?:-?[0-9]{1,20}[ ,]+){15,}-?[0-9]{1,20}`)
	hexWord    = regexp.MustCompile(`0x[0-9a-fA-F]{10,16}`)
	quoted     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	between    = regexp.MustCompile(`[ ,]+`)
)

// search lists the secrets found in b, by form and name, without the secrets themselves.
func (c *canaries) search(b []byte) (found []string) {
	hit := func(form, name string) { found = append(found, fmt.Sprintf("%s, %s", name, form)) }
	raw := func(form string, b []byte) {
		for window, secrets := range c.windows {
			for at := 0; len(secrets) > 0 && at+window <= len(b); at++ {
				if name, ok := secrets[string(b[at:at+window])]; ok {
					hit(form, name)
				}
			}
		}
	}
	word := func(form, text string, base int) {
		if w, err := strconv.ParseUint(text, base, 64); err == nil && c.words[w] != "" {
			hit(form, c.words[w])
		}
	}
	raw("raw", b)
	for _, run := range hexDigits.FindAll(b, -1) {
		for a := range 2 {
			decoded, _ := hex.DecodeString(string(run[a : a+(len(run)-a)/2*2]))
			raw("hexadecimal", decoded)
		}
		word("hexadecimal word", string(run), 16)
	}
	for _, run := range hexPairs.FindAll(b, -1) {
		decoded, _ := hex.DecodeString(strings.NewReplacer(" ", "", ":", "", ",", "", "-", "").Replace(string(run)))
		raw("hexadecimal in pairs", decoded)
	}
	for _, run := range base64Run.FindAll(b, -1) {
		standard := strings.NewReplacer("-", "+", "_", "/").Replace(string(run))
		for a := range 4 {
			end := len(standard)
			if (end-a)%4 == 1 {
				end--
			}
			decoded, _ := base64.RawStdEncoding.DecodeString(standard[a:end])
			raw("base64", decoded)
		}
	}
	for _, run := range digits.FindAll(b, -1) {
		if name, ok := c.numbers[string(run)]; ok {
			hit("decimal", name)
		}
		word("decimal word", string(run), 10)
	}
	for _, run := range hexWord.FindAll(b, -1) {
		word("hexadecimal word", string(run[2:]), 16)
	}
	for _, run := range numberList.FindAll(b, -1) {
		var bytes, coefficients []byte
		for _, text := range between.Split(string(run), -1) {
			n, _ := strconv.ParseInt(text, 10, 64) // out-of-range values are handled as words
			bytes, coefficients = append(bytes, byte(n)), endian.LittleEndian.AppendUint16(coefficients, uint16(n))
		}
		raw("list of bytes", bytes)
		raw("list of coefficients", coefficients)
	}
	for _, run := range quoted.FindAll(b, -1) {
		if text, err := strconv.Unquote(string(run)); err == nil {
			raw("quoted", []byte(text))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// samples returns a piece of each secret, by name.
func (c *canaries) samples() map[string][]byte {
	out := map[string][]byte{}
	for _, secrets := range c.windows {
		for piece, name := range secrets {
			out[name] = []byte(piece)
		}
	}
	for w, name := range c.words {
		if out[name] == nil {
			out[name] = endian.BigEndian.AppendUint64(nil, w)
		}
	}
	return out
}

// The search finds secrets in every form, and reports no false matches.
var _ = Describe("the search for secrets", func() {
	secret := make([]byte, 48)
	for i := range secret {
		secret[i] = byte(37*i*i + 11*i + 200)
	}
	ternary := make([]int64, 2048)
	var stored []byte
	for i := range ternary {
		ternary[i] = int64(i*i*i/7%3) - 1
		stored = endian.LittleEndian.AppendUint16(stored, uint16(ternary[i]))
	}
	const ntt = uint64(0x3ffedcba98765)
	c := newCanaries()
	c.plant("secret", secret)
	c.piecewise("key", stored, coefficientWindow)
	c.word("transformed", ntt)
	reversed := slices.Clone(secret)
	slices.Reverse(reversed)

	DescribeTable("finds", func(text string) {
		Expect(c.search([]byte("before " + text + " after"))).NotTo(BeEmpty())
	},
		Entry("bytes", string(secret)),
		Entry("bytes, most significant first", string(reversed)),
		Entry("a part of the bytes", string(secret[7:40])),
		Entry("hexadecimal", fmt.Sprintf("%x", secret)),
		Entry("hexadecimal in capitals, shifted", fmt.Sprintf("a%X", secret)),
		Entry("hexadecimal with blanks", fmt.Sprintf("% x", secret)),
		Entry("hexadecimal of the number", fmt.Sprintf("%x", new(big.Int).SetBytes(reversed))),
		Entry("base64", base64.StdEncoding.EncodeToString(secret)),
		Entry("base64 for addresses, shifted", "x"+base64.RawURLEncoding.EncodeToString(append([]byte("y"), secret...))),
		Entry("an element in decimal", decimal(secret[16:32])),
		Entry("the whole in decimal", decimal(secret)),
		Entry("a list of bytes", fmt.Sprint(secret)),
		Entry("a list in JSON", strings.ReplaceAll(fmt.Sprint(secret), " ", ",")),
		Entry("a quoted string", fmt.Sprintf("%q", secret)),
		Entry("words in decimal", fmt.Sprint([]uint64{endian.LittleEndian.Uint64(secret)})),
		Entry("words in a stack trace", fmt.Sprintf("f(0xc000123456, %#x)", endian.LittleEndian.Uint64(secret[8:]))),
		Entry("coefficients as they are stored", string(stored[100:600])),
		Entry("coefficients in a list", fmt.Sprint(ternary)),
		Entry("coefficients in base64", base64.StdEncoding.EncodeToString(stored)),
		Entry("transformed coefficients", fmt.Sprintf("[1 2 %d]", ntt)),
	)

	It("finds nothing else", func() {
		other := slices.Clone(secret)
		for i := range other {
			other[i] ^= 0x55
		}
		text := fmt.Sprintf("%s %x % x %s %v %q %d %v", other, other, other, base64.StdEncoding.EncodeToString(other), other, other,
			endian.LittleEndian.Uint64(other), make([]int64, 4000))
		Expect(c.search([]byte(text + strings.Repeat("\x00", 4096)))).To(BeEmpty())
		Expect(c.search(secret[:15])).To(BeEmpty())
	})
})
