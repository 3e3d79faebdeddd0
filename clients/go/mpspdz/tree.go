package mpspdz

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// Limits of stock builds of MP-SPDZ, and of Lodge's fields.
const (
	MinPrimeBits = 64
	MaxPrimeBits = 256
	maxParties   = 1 << 10
)

var (
	// ErrPrime reports a prime that MP-SPDZ's stock builds cannot use, or a number that is not
	// prime.
	ErrPrime = errors.New("mpspdz: unusable prime")
	// ErrOptions reports contradictory options.
	ErrOptions = errors.New("mpspdz: bad options")
	// ErrNoKey reports tuples whose manifest lacks the share of the MAC key, which MP-SPDZ needs
	// with every file.
	ErrNoKey = errors.New("mpspdz: the share of the MAC key was not drawn with the tuples")
	// ErrPooled reports tuples whose MAC key, or even values, were reconstructed to check them.
	ErrPooled = errors.New("mpspdz: the share of the MAC key was drawn to check the tuples, with those of all parties")
	// ErrExists reports an existing file with the same name, or one with different content.
	ErrExists = errors.New("mpspdz: would overwrite")
	// ErrExported reports shares that were exported before: used twice, they reveal inputs.
	ErrExported = errors.New("mpspdz: exported before")
)

// Options describes the owner of a [Tree]. KeyShare is secret; String and GoString omit it.
type Options struct {
	Prime    *big.Int // of 64 to 256 bits
	Parties  int
	Party    int    // from 0
	KeyShare []byte // of the MAC key: a canonical element, little-endian
	Suffix   string // of the data files: "", or "-T0" for MP-SPDZ's -f, "-T1" for its second thread and so on
	Force    bool   // overwrite
	Pipes    bool   // create named pipes instead of files
}

// String describes the options without their secret.
func (o Options) String() string {
	return fmt.Sprintf("party %d of %d, prime %v, suffix %q, force %v, pipes %v", o.Party, o.Parties, o.Prime, o.Suffix,
		o.Force, o.Pipes)
}

// GoString is String.
func (o Options) GoString() string { return o.String() }

// Tree is one party's part of a directory Player-Data. It is safe for concurrent use; each
// [File] is for one goroutine.
type Tree struct {
	ctx    context.Context // ends the wait for readers of pipes
	dir    string          // Player-Data/<n>-p-<bits>
	o      Options
	m      *montgomery
	header []byte
	params string
	key    string

	mu   sync.Mutex
	made bool
	open map[string]bool // names of files that File returned
}

var suffixes = regexp.MustCompile(`^(-T(0|[1-9][0-9]{0,5}))?$`)

// NewTree prepares a party's part of dir/Player-Data. Without Force it returns [ErrExists] for a
// directory with a different prime or a different share of the MAC key. Nothing is written before
// the first File. The context applies to Files that are pipes: a Write that waits for a reader
// fails when it ends.
func NewTree(ctx context.Context, dir string, o Options) (*Tree, error) {
	if o.Prime == nil || o.Prime.Sign() <= 0 {
		return nil, fmt.Errorf("%w: it is not positive", ErrPrime)
	}
	n := o.Prime.BitLen()
	if n < MinPrimeBits || n > MaxPrimeBits {
		return nil, fmt.Errorf("%w: it has %d bits, but stock builds of MP-SPDZ support %d to %d", ErrPrime, n, MinPrimeBits,
			MaxPrimeBits)
	}
	if !o.Prime.ProbablyPrime(20) {
		return nil, fmt.Errorf("%w: it is composite", ErrPrime)
	}
	switch {
	case o.Parties < 2 || o.Parties > maxParties || o.Party < 0 || o.Party >= o.Parties:
		return nil, fmt.Errorf("%w: party %d of %d", ErrOptions, o.Party, o.Parties)
	case !suffixes.MatchString(o.Suffix):
		return nil, fmt.Errorf("%w: suffix %q; write -T0 and the like", ErrOptions, o.Suffix)
	}
	t := &Tree{
		ctx: ctx, o: o, m: newMontgomery(o.Prime), open: make(map[string]bool),
		dir:    filepath.Join(dir, "Player-Data", fmt.Sprintf("%d-p-%d", o.Parties, n)),
		params: o.Prime.String() + "\n1\n",
	}
	share := make([]byte, t.m.bytes())
	if len(o.KeyShare) != t.m.size || !t.m.convert(share, o.KeyShare) {
		return nil, fmt.Errorf("%w: the share of the MAC key is not an element of %d bytes below the prime", ErrOptions,
			t.m.size)
	}
	t.header = header(o.Prime, share)
	big := slices.Clone(o.KeyShare)
	slices.Reverse(big)
	t.key = strconv.Itoa(o.Parties) + " " + decimal(big) + "\n"
	clear(big)
	for name, text := range t.texts() {
		if err := t.checkText(name, text); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func decimal(bigEndian []byte) string { return new(big.Int).SetBytes(bigEndian).String() }

// header returns the beginning of each data file: the length of the rest, the type, the prime with
// its sign and length, 1 for Montgomery form, and the share of the MAC key in that form.
func header(p *big.Int, share []byte) []byte {
	h := append(make([]byte, 8), "SPDZ gfp"...)
	h = append(h, 0)
	h = binary.LittleEndian.AppendUint32(h, uint32((p.BitLen()+7)/8))
	h = append(h, p.Bytes()...)
	h = binary.LittleEndian.AppendUint32(h, 1)
	h = append(h, share...)
	binary.LittleEndian.PutUint64(h, uint64(len(h)-8))
	return h
}

// texts returns the content of the text files, by name.
func (t *Tree) texts() map[string]string {
	return map[string]string{"Params-Data": t.params, "Player-MAC-Keys-p-P" + strconv.Itoa(t.o.Party): t.key}
}

// checkText returns an error for an existing file with different content, unless Force is set. The
// error quotes neither content.
func (t *Tree) checkText(name, text string) error {
	got, err := os.ReadFile(filepath.Join(t.dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && string(got) == text || err == nil && t.o.Force:
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%w %s, which has different content", ErrExists, filepath.Join(t.dir, name))
	}
}

// make creates the directory and its text files, once.
func (t *Tree) make() error {
	if t.made {
		return nil
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	for name, text := range t.texts() {
		path := filepath.Join(t.dir, name)
		if got, err := os.ReadFile(path); err == nil && string(got) == text {
			continue
		}
		f, err := os.CreateTemp(t.dir, ".export-*") // mode 0600
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return errors.Join(err, os.Remove(f.Name()))
		}
		if err := publish(f.Name(), path, t.o.Force); err != nil {
			return errors.Join(err, os.Remove(f.Name()))
		}
	}
	t.made = true
	return nil
}

// Path returns the path of a target's file.
func (t *Tree) Path(target Target) string {
	return filepath.Join(t.dir, target.name(t.o.Party)+t.o.Suffix)
}

// Check returns the errors of File without creating anything. It reports whether the target will be
// a named pipe: because it already is one, or because of Options.Pipes.
func (t *Tree) Check(target Target) (pipe bool, err error) {
	if err := target.check(t.o.Parties); err != nil {
		return false, err
	}
	path := t.Path(target)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[path] {
		return false, fmt.Errorf("%w %s, which is being written", ErrExists, path)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t.o.Pipes, nil
	case err != nil:
		return false, err
	case info.Mode().Type() == fs.ModeNamedPipe:
		return true, nil
	case !t.o.Force || !info.Mode().IsRegular():
		return false, fmt.Errorf("%w %s", ErrExists, path)
	}
	return t.o.Pipes, nil
}

// publish gives a completed file its final name, which must be free unless Force is set.
func publish(temporary, path string, force bool) error {
	if force {
		return os.Rename(temporary, path)
	}
	err := os.Link(temporary, path)
	if err == nil {
		return os.Remove(temporary)
	}
	// On a file system without links the only way is to look first.
	if _, stat := os.Lstat(path); stat == nil || errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w %s", ErrExists, path)
	}
	return os.Rename(temporary, path)
}
