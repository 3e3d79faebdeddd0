// Package npy reads and writes NumPy's files of one array, format versions 1.0 and 2.0
// (numpy.lib.format): integers and floating point numbers, little-endian, in C order. [NewReader]
// accepts exactly the files that NumPy writes, and a [Reader] holds only the requested entries, so
// that a large matrix can be read row by row. [Write] writes a file.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// ErrFormat is wrapped by all errors about malformed files, [ErrRange] by those about numbers.
var (
	ErrFormat = errors.New("npy: malformed file")
	ErrRange  = errors.New("npy: number out of range")
)

const (
	magic     = "\x93NUMPY"
	maxHeader = 1 << 10 // bytes; the arrays here need a few dozen
	maxDims   = 8
	align     = 64
	block     = 1 << 12 // number of entries decoded at a time
)

var header = regexp.MustCompile(`^\{'descr': '([<|][iuf][1248])', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n$`)

// sizes holds the sizes of types in bytes.
var sizes = map[string]int{
	"|i1": 1, "<i2": 2, "<i4": 4, "<i8": 8, "|u1": 1, "<u2": 2, "<u4": 4, "<u8": 8, "<f4": 4, "<f8": 8,
}

// Reader reads the entries of an array in order, with the method for their type: [Reader.Integers],
// [Reader.Words] or [Reader.Floats].
type Reader struct {
	Shape []int
	Type  string // as NumPy writes it, such as "<i8"

	r    io.Reader
	size int // of an entry, in bytes
	left int // entries
	held []byte
}

// NewReader reads the header. The error wraps [ErrFormat], or is that of r.
func NewReader(r io.Reader) (*Reader, error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:10]); err != nil {
		return nil, short(err)
	}
	length := int(binary.LittleEndian.Uint16(head[8:]))
	switch {
	case string(head[:6]) != magic:
		return nil, fmt.Errorf("%w: it does not begin as NumPy's files do", ErrFormat)
	case head[6] == 1 && head[7] == 0:
	case head[6] == 2 && head[7] == 0:
		if _, err := io.ReadFull(r, head[10:]); err != nil {
			return nil, short(err)
		}
		length = int(min(binary.LittleEndian.Uint32(head[8:]), maxHeader+1))
	default:
		return nil, fmt.Errorf("%w: version %d.%d; versions 1.0 and 2.0 are read", ErrFormat, head[6], head[7])
	}
	if length > maxHeader {
		return nil, fmt.Errorf("%w: the header has more than %d bytes", ErrFormat, maxHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, short(err)
	}
	m := header.FindStringSubmatch(string(text))
	if m == nil {
		return nil, fmt.Errorf("%w: the header %.100q does not describe a plain array of numbers", ErrFormat, text)
	}
	x := &Reader{Type: m[1], r: r, size: sizes[m[1]]}
	if x.size == 0 {
		return nil, fmt.Errorf("%w: entries of type %s; integers, and floating point numbers of 4 or 8 bytes, are read", ErrFormat, m[1])
	}
	var err error
	if x.Shape, x.left, err = parseShape(m[3]); err != nil {
		return nil, err
	}
	if m[2] == "True" && len(x.Shape) > 1 {
		return nil, fmt.Errorf("%w: column by column; save numpy.ascontiguousarray of it", ErrFormat)
	}
	return x, nil
}

// parseShape reads the text between the parentheses, in the form of a Python tuple.
func parseShape(text string) (shape []int, entries int, err error) {
	entries = 1
	if text == "" {
		return nil, 1, nil
	}
	words := strings.Split(strings.TrimSuffix(text, ","), ", ")
	for _, w := range words {
		n, err := strconv.ParseUint(w, 10, 40)
		if err != nil || strconv.FormatUint(n, 10) != w {
			return nil, 0, fmt.Errorf("%w: the shape (%.60s)", ErrFormat, text)
		}
		if n > 0 && entries > math.MaxInt/8/int(n) {
			return nil, 0, fmt.Errorf("%w: the shape (%.60s) has too many entries", ErrFormat, text)
		}
		entries *= int(n)
		shape = append(shape, int(n))
	}
	if len(shape) > maxDims || (len(shape) == 1) != strings.HasSuffix(text, ",") {
		return nil, 0, fmt.Errorf("%w: the shape (%.60s)", ErrFormat, text)
	}
	return shape, entries, nil
}

// short converts an early end of the file into a format error.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends too early", ErrFormat)
	}
	return err
}

// Len returns the number of entries that have not been read.
func (x *Reader) Len() int { return x.left }

// Float reports whether entries are floating point numbers.
func (x *Reader) Float() bool { return x.Type[1] == 'f' }

// Unsigned reports whether entries are unsigned integers.
func (x *Reader) Unsigned() bool { return x.Type[1] == 'u' }

// each passes the bytes of the next n entries to a function, in order.
func (x *Reader) each(n int, f func(i int, b []byte) error) error {
	if n > x.left {
		return fmt.Errorf("%w: %d entries are left, but %d were requested", ErrFormat, x.left, n)
	}
	if x.held == nil {
		x.held = make([]byte, block*x.size)
	}
	for at := 0; at < n; {
		b := x.held[:min(block, n-at)*x.size]
		if _, err := io.ReadFull(x.r, b); err != nil {
			return short(err)
		}
		for ; len(b) > 0; at++ {
			if err := f(at, b[:x.size]); err != nil {
				return err
			}
			b = b[x.size:]
		}
	}
	x.left -= n
	clear(x.held)
	return nil
}

// word returns an integer's bytes as a word, without sign extension.
func word(b []byte) (v uint64) {
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return v
}

// Integers reads the next entries. The error wraps [ErrFormat]; [ErrRange], for an entry that
// exceeds 63 bits or is not an integer; or is that of the file.
func (x *Reader) Integers(dst []int64) error {
	return x.each(len(dst), func(i int, b []byte) error {
		switch {
		case x.Float():
			f := x.float(b)
			if f != math.Trunc(f) || math.Abs(f) >= 1<<62 {
				return fmt.Errorf("%w: an entry is not an integer of 62 bits", ErrRange)
			}
			dst[i] = int64(f)
		case x.Unsigned():
			v := word(b)
			if v > math.MaxInt64 {
				return fmt.Errorf("%w: an entry has more than 63 bits", ErrRange)
			}
			dst[i] = int64(v)
		default:
			shift := 64 - 8*x.size
			dst[i] = int64(word(b)<<shift) >> shift
		}
		return nil
	})
}

// Words reads the next entries, which are unsigned integers. The error wraps [ErrFormat], or is
// that of the file.
func (x *Reader) Words(dst []uint64) error {
	if !x.Unsigned() {
		return fmt.Errorf("%w: entries of type %s are not unsigned", ErrFormat, x.Type)
	}
	return x.each(len(dst), func(i int, b []byte) error {
		dst[i] = word(b)
		return nil
	})
}

// Floats reads the next entries. Integers of more than 53 bits are rounded to nearest.
func (x *Reader) Floats(dst []float64) error {
	return x.each(len(dst), func(i int, b []byte) error {
		switch {
		case x.Float():
			dst[i] = x.float(b)
		case x.Unsigned():
			dst[i] = float64(word(b))
		default:
			shift := 64 - 8*x.size
			dst[i] = float64(int64(word(b)<<shift) >> shift)
		}
		return nil
	})
}

func (x *Reader) float(b []byte) float64 {
	if x.size == 4 {
		return float64(math.Float32frombits(uint32(word(b))))
	}
	return math.Float64frombits(word(b))
}

// End returns an error if entries have not been read, or if bytes follow them.
func (x *Reader) End() error {
	if x.left > 0 {
		return fmt.Errorf("%w: %d entries are left", ErrFormat, x.left)
	}
	switch n, err := io.ReadFull(x.r, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("%w: data follows the entries", ErrFormat)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// Write writes an array of int64, uint64 or float64 entries, as NumPy would.
func Write[T int64 | uint64 | float64](w io.Writer, shape []int, entries []T) error {
	n := 1
	words := make([]string, len(shape))
	for i, d := range shape {
		n *= d
		words[i] = strconv.Itoa(d)
	}
	if n != len(entries) {
		return fmt.Errorf("%w: %d entries do not match the shape %v", ErrFormat, len(entries), shape)
	}
	tuple := strings.Join(words, ", ")
	if len(shape) == 1 {
		tuple += ","
	}
	var t string
	var bits func(T) uint64
	switch any(T(0)).(type) {
	case int64:
		t, bits = "<i8", func(v T) uint64 { return uint64(v) }
	case uint64:
		t, bits = "<u8", func(v T) uint64 { return uint64(v) }
	default:
		t, bits = "<f8", func(v T) uint64 { return math.Float64bits(float64(v)) }
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", t, tuple)
	fill := align - (10+len(text)+1)%align
	text += strings.Repeat(" ", fill%align) + "\n"
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	b = append(b, text...)
	for len(entries) > 0 {
		for _, v := range entries[:min(block, len(entries))] {
			b = binary.LittleEndian.AppendUint64(b, bits(v))
		}
		entries = entries[min(block, len(entries)):]
		if _, err := w.Write(b); err != nil {
			return err
		}
		b = b[:0]
	}
	_, err := w.Write(b)
	return err
}
