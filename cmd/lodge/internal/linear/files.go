package linear

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/npy"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Limits for files that are read completely: entries, and bytes of JSON.
const (
	maxFileEntries = 1 << 28
	maxJSON        = 256 << 20
)

// newFile returns an error if the name of an output file is missing, taken, or has another
// extension.
func newFile(path string) error {
	switch ext := filepath.Ext(path); {
	case path == "":
		return cli.Invalid("name a file that ends in .npy or .json", "no --out")
	case ext != ".npy" && ext != ".json":
		return cli.Invalid("name a file that ends in .npy or .json", "--out %s", path)
	}
	return cli.CheckNewFile(path)
}

// newShare is like newFile for a share. It also rejects JSON, whose numbers are not marked as
// residues.
func newShare(path string) error {
	if filepath.Ext(path) == ".json" {
		return cli.Invalid("name a file that ends in .npy", "shares cannot be written as JSON: %s", path)
	}
	return newFile(path)
}

// readShare reads a share that split or a product wrote.
func readShare(path string, s *linear.Scheme) ([]uint64, []int, error) {
	x, err := openArray(path)
	if err != nil {
		return nil, nil, err
	}
	share := x.Reader != nil && x.Unsigned()
	x.close()
	if !share {
		return nil, nil, cli.Invalid("make shares with `lodge linear split`; they are unsigned integers in .npy", "%s is not a share", path)
	}
	return readResidues(path, linear.Fixed{T: s.T})
}

// array is a file of numbers that is read sequentially.
type array struct {
	*npy.Reader
	path string
	file *os.File
	list []float64 // JSON only
	dims []int
}

// openArray opens a file of numbers. The caller must close it.
func openArray(path string) (*array, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, rpc.Errorf(rpc.NotFound, "name a file", "%v", err)
	}
	x := &array{path: path, file: f}
	switch filepath.Ext(path) {
	case ".npy":
		if x.Reader, err = npy.NewReader(bufio.NewReaderSize(f, 1<<16)); err == nil {
			x.dims = x.Shape
		}
	case ".json":
		x.list, x.dims, err = readJSON(f)
	default:
		err = errors.New("the name ends neither in .npy nor in .json")
	}
	if err != nil {
		f.Close()
		return nil, cli.Invalid("save the array with NumPy, or write JSON", "%s: %v", path, err)
	}
	return x, nil
}

func (x *array) close() { x.file.Close() }

// size returns the number of entries.
func (x *array) size() int {
	n := 1
	for _, d := range x.dims {
		n *= d
	}
	return n
}

// readJSON reads an array of numbers, or of rows of equal length.
func readJSON(r io.Reader) (list []float64, shape []int, err error) {
	b, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(b) > maxJSON:
		return nil, nil, fmt.Errorf("more than %d bytes; save it as .npy", maxJSON)
	case json.Unmarshal(b, &list) == nil:
		return list, []int{len(list)}, nil
	}
	list = nil // it holds everything before the first invalid entry
	var rows [][]float64
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, nil, errors.New("neither an array of numbers nor an array of rows")
	}
	for _, row := range rows {
		if len(row) != len(rows[0]) {
			return nil, nil, errors.New("rows of different lengths")
		}
		list = append(list, row...)
	}
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil, nil, errors.New("no rows")
	}
	return list, []int{len(rows), len(rows[0])}, nil
}

// integers reads the next entries.
func (x *array) integers(dst []int64) error {
	if x.Reader != nil {
		return x.Integers(dst)
	}
	for i := range dst {
		v := x.list[i]
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return errors.New("an entry is not an integer of 53 bits")
		}
		dst[i] = int64(v)
	}
	x.list = x.list[len(dst):]
	return nil
}

// residues reads the next entries: unsigned integers unchanged, others encoded.
func (x *array) residues(dst []uint64, as linear.Fixed) error {
	switch {
	case x.Reader != nil && x.Unsigned():
		return x.Words(dst)
	case x.Reader == nil || x.Float():
		v := make([]float64, len(dst))
		defer clear(v)
		if x.Reader == nil {
			x.list = x.list[copy(v, x.list):]
		} else if err := x.Floats(v); err != nil {
			return err
		}
		return as.EncodeAll(dst, v)
	}
	v := make([]int64, len(dst))
	defer clear(v)
	if err := x.Integers(v); err != nil {
		return err
	}
	numbers := make([]float64, len(v))
	defer clear(numbers)
	for i, n := range v {
		numbers[i] = float64(n) // the encoding accepts no number that a float rounds
	}
	return as.EncodeAll(dst, numbers)
}

// end returns an error if there are more entries.
func (x *array) end() error {
	if x.Reader != nil {
		return x.End()
	}
	return nil
}

// ofFile adds the name of the file to an error.
func ofFile(path string, err error) error {
	if err == nil {
		return nil
	}
	return cli.Invalid("", "%s: %v", path, err)
}

// readIntegers reads a file of integers.
func readIntegers(path string) ([]int64, []int, error) {
	x, err := openArray(path)
	if err != nil {
		return nil, nil, err
	}
	defer x.close()
	if x.size() > maxFileEntries {
		return nil, nil, cli.Invalid("multiply blocks of the matrix", "%s has %d entries", path, x.size())
	}
	v := make([]int64, x.size())
	err = x.integers(v)
	if err == nil {
		err = x.end()
	}
	return v, x.dims, ofFile(path, err)
}

// readResidues reads a file of numbers, or of shares.
func readResidues(path string, as linear.Fixed) ([]uint64, []int, error) {
	x, err := openArray(path)
	if err != nil {
		return nil, nil, err
	}
	defer x.close()
	if x.size() > maxFileEntries {
		return nil, nil, cli.Invalid("multiply blocks of the matrix", "%s has %d entries", path, x.size())
	}
	v := make([]uint64, x.size())
	err = x.residues(v, as)
	if err == nil {
		err = x.end()
	}
	for _, n := range v {
		if err == nil && n >= as.T {
			err = fmt.Errorf("an entry is not a residue modulo %d", as.T)
		}
	}
	return v, x.dims, ofFile(path, err)
}

// WriteArray creates a file that only its owner can read.
func WriteArray[T int64 | uint64 | float64](path string, shape []int, v []T) error {
	if filepath.Ext(path) == ".npy" {
		return cli.WriteNewFile(path, 0o600, func(w io.Writer) error { return npy.Write(w, shape, v) })
	}
	var whole any = v
	if len(shape) == 2 {
		rows := make([][]T, 0, shape[0])
		for i := range shape[0] {
			rows = append(rows, v[i*shape[1]:(i+1)*shape[1]])
		}
		whole = rows
	}
	return cli.WriteNewFile(path, 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(whole) })
}

// fixedFlags are the flags for the encoding of numbers as residues.
type fixedFlags struct{ bits, fraction uint }

func (e *fixedFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.UintVar(&e.bits, "bits", 0, "bits of a number, sign and fraction included; larger numbers are rejected (default: the largest that T allows)")
	f.UintVar(&e.fraction, "fraction", 0, "bits after the binary point; a product has those of both factors")
}

func (e *fixedFlags) of(s *linear.Scheme) (linear.Fixed, error) {
	wide := e.bits
	if wide == 0 {
		wide = uint(bits.Len64(s.T / 2))
	}
	as, err := s.Fixed(wide, e.fraction)
	if err != nil {
		return as, cli.Invalid("use another value for --bits or --fraction", "%v", err)
	}
	return as, nil
}

func (o *multiplier) splitCommand() *cobra.Command {
	var e fixedFlags
	cmd := cli.Command("split", func(cmd *cobra.Command, args []string) error {
		s, err := o.scheme(linear.DefaultVector)
		if err != nil {
			return err
		}
		for _, path := range args[1:] {
			if err := newShare(path); err != nil {
				return err
			}
		}
		as, err := e.of(s)
		if err != nil {
			return err
		}
		v, shape, err := readResidues(args[0], as)
		if err != nil {
			return err
		}
		source, err := sample.Draw(rand.Reader, "linear shares of a file")
		if err != nil {
			return err
		}
		defer source.Wipe()
		stream := source.Stream("share")
		defer stream.Wipe()
		first := make([]uint64, len(v))
		sample.Uniform(first, s.T, stream)
		for i := range v {
			v[i] = (v[i] + s.T - first[i]) % s.T
		}
		if err := WriteArray(args[1], shape, first); err != nil {
			return err
		}
		return WriteArray(args[2], shape, v)
	})
	e.flags(cmd)
	return cmd
}

func (o *multiplier) joinCommand() *cobra.Command {
	var e fixedFlags
	var out string
	cmd := cli.Command("join", func(cmd *cobra.Command, args []string) error {
		s, err := o.scheme(linear.DefaultVector)
		if err != nil {
			return err
		}
		if err := newFile(out); err != nil {
			return err
		}
		as, err := e.of(s)
		if err != nil {
			return err
		}
		a, shape, err := readShare(args[0], s)
		if err != nil {
			return err
		}
		b, other, err := readShare(args[1], s)
		if err != nil {
			return err
		}
		if fmt.Sprint(shape) != fmt.Sprint(other) {
			return cli.Invalid("name both shares of one array", "%s is of shape %v and %s of %v", args[0], shape, args[1], other)
		}
		numbers := make([]float64, len(a))
		for i := range a {
			a[i] = (a[i] + b[i]) % s.T
		}
		if err := as.DecodeAll(numbers, a); err != nil {
			return cli.Invalid("check that --bits is large enough for the results, and that both shares are from one run", "%v", err)
		}
		return WriteArray(out, shape, numbers)
	})
	e.flags(cmd)
	cmd.Flags().StringVar(&out, "out", "", "file of the numbers to create, .npy or .json")
	return cmd
}
