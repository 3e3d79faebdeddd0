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

// Limits of stock builds of MP-SPDZ, and of what Lodge has.
const (
	MinPrimeBits = 64
	MaxPrimeBits = 256
	maxParties   = 1 << 10
)

var (
	// ErrPrime means a prime that MP-SPDZ's stock builds cannot use, or a number that is none.
	ErrPrime = errors.New("mpspdz: unusable prime")
	// ErrOptions means options that contradict themselves.
	ErrOptions = errors.New("mpspdz: bad options")
	// ErrNoKey means tuples whose manifest lacks the share of the MAC key, which MP-SPDZ needs with every file.
	ErrNoKey = errors.New("mpspdz: the share of the MAC key was not drawn with the tuples")
	// ErrPooled means tuples whose MAC key, or even values, somebody has put together to check them.
	ErrPooled = errors.New("mpspdz: the share of the MAC key was drawn to check the tuples, with those of all parties")
	// ErrExists means that something is in the way: a file with the same name, or one that says something else.
	ErrExists = errors.New("mpspdz: would overwrite")
	// ErrExported means shares that were exported before: used twice, they reveal inputs.
	ErrExported = errors.New("mpspdz: exported before")
)

// Options say whose tree it is. KeyShare is secret; String and GoString leave it out.
type Options struct {
	Prime    *big.Int // of 64 to 256 bits
	Parties  int
	Party    int    // from 0
	KeyShare []byte // of the MAC key: a canonical element, little-endian
	Suffix   string // of the data files: "", or "-T0" for MP-SPDZ's -f, "-T1" for its second thread and so on
	Force    bool   // overwrite
	Pipes    bool   // make named pipes instead of files
}

// String describes the options without their secret.
func (o Options) String() string {
	return fmt.Sprintf("party %d of %d, prime %v, suffix %q, force %v, pipes %v", o.Party, o.Parties, o.Prime, o.Suffix,
		o.Force, o.Pipes)
}

// GoString is String.
func (o Options) GoString() string { return o.String() }

// Tree is one party's part of a directory Player-Data. It is safe for concurrent use; each File is for one goroutine.
type Tree struct {
	ctx    context.Context // ends waiting for the readers of pipes
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

// NewTree prepares the part of a party of dir/Player-Data. It refuses, with ErrExists and unless there is Force, a
// directory that has another prime or another share of the MAC key. Nothing is written before the first File. The
// context is for Files that are pipes: a Write that waits for a reader fails when it ends.
func NewTree(ctx context.Context, dir string, o Options) (*Tree, error) {
	if o.Prime == nil || o.Prime.Sign() <= 0 {
		return nil, fmt.Errorf("%w: it is not positive", ErrPrime)
	}
	n := o.Prime.BitLen()
	if n < MinPrimeBits || n > MaxPrimeBits {
		return nil, fmt.Errorf("%w: it has %d bits, and stock builds of MP-SPDZ take %d to %d", ErrPrime, n, MinPrimeBits,
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

// header is what each data file begins with: the length of the rest, the type, the prime with its sign and length, 1 for
// Montgomery form, and the share of the MAC key in that form.
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

// texts are the files that are no data, by name.
func (t *Tree) texts() map[string]string {
	return map[string]string{"Params-Data": t.params, "Player-MAC-Keys-p-P" + strconv.Itoa(t.o.Party): t.key}
}

// checkText refuses a file of other content, without Force. The error quotes neither.
func (t *Tree) checkText(name, text string) error {
	got, err := os.ReadFile(filepath.Join(t.dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && string(got) == text || err == nil && t.o.Force:
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%w %s, which says something else", ErrExists, filepath.Join(t.dir, name))
	}
}

// make makes the directory and its text files, once.
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

// Path returns where the file of a target goes.
func (t *Tree) Path(target Target) string {
	return filepath.Join(t.dir, target.name(t.o.Party)+t.o.Suffix)
}

// Check refuses what File would refuse, and makes nothing. It reports whether the target is to be a named pipe: it is
// one already, or Options.Pipes says so.
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

// publish returns a finished file its name, which without force must be free.
func publish(temporary, path string, force bool) error {
	if force {
		return os.Rename(temporary, path)
	}
	err := os.Link(temporary, path)
	if err == nil {
		return os.Remove(temporary)
	}
	// A file system without links can only look first.
	if _, stat := os.Lstat(path); stat == nil || errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w %s", ErrExists, path)
	}
	return os.Rename(temporary, path)
}
