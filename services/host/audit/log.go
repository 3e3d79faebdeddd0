package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// ErrClosed reports that the log was closed.
var ErrClosed = errors.New("audit: the log is closed")

// defaultFileSize is the size of a file, about 200,000 entries, after which the next one begins.
const defaultFileSize = 64 << 20

// Options of a log.
type Options struct {
	Party    string           // owner of the log; with Known it may have had another name before
	FileSize int64            // bytes of a file before the next one begins; 0 means 64 MiB
	Now      func() time.Time // nil means the machine's clock
	Known    []Hash           // hashes that were kept elsewhere; a log without one of them is rejected
}

// Log is an open log. All methods are safe for concurrent use, and do nothing on a nil log.
type Log struct {
	dir  string
	opts Options
	lock *os.File
	file *os.File // the writer's

	wake    chan struct{}
	stopped chan struct{} // closed when the writer has stopped
	room    room          // disk space reserved for further entries; owned by the writer

	mu       sync.Mutex
	filling  *batch // the batch that the writer writes next
	sealed   Head   // the last entry that has a place in the chain
	durable  Head
	segments []*segment // the durable part
	closed   bool
	failed   error // the reason why the log cannot be written now; nil after the next successful write
	held     int64 // bytes promised by Hold
}

// batch is a set of entries that one write and one fsync make durable.
type batch struct {
	lines []byte
	sizes []int // length of each line including its end
	head  Head
	done  chan struct{}
	err   error // set before done is closed
	asks  bool  // Hold waits for the result of a reservation of disk space
	full  error // error of that reservation; set before done is closed
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// Open opens or creates the log in dir and locks it for this process. It verifies the whole chain,
// at about the speed of SHA-256, and returns a BrokenError for a broken one. An unfinished last
// line, cut off by a crash, was never acknowledged: Open removes it and appends an entry
// TornRepaired.
func Open(dir string, o Options) (_ *Log, err error) {
	if o.FileSize == 0 {
		o.FileSize = defaultFileSize
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if !name(o.Party, maxName) {
		return nil, fmt.Errorf("audit: party %.80q is not a name", o.Party)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	l := &Log{dir: dir, opts: o, wake: make(chan struct{}, 1), stopped: make(chan struct{}), filling: newBatch()}
	defer func() {
		if err != nil {
			l.release()
		}
	}()
	if l.lock, err = lock(filepath.Join(dir, "lock")); err != nil {
		return nil, err
	}
	torn, err := l.load()
	if err != nil {
		return nil, err
	}
	go l.write()
	if len(torn) > 0 {
		_, err = l.Append(Entry{
			Event: TornRepaired, Count: uint64(len(torn)), Digest: sha256.Sum256(torn),
			Note: fmt.Sprintf("a crash left a line unfinished: %.200q", torn),
		})
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// lock takes the log for this process.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("audit: %s: another process has the log open: %w", filepath.Dir(path), err)
	}
	return f, nil
}

// load verifies the log, opens the last file, and returns the unfinished line that it cut off.
func (l *Log) load() (torn []byte, err error) {
	if l.segments, err = segments(l.dir); err != nil {
		return nil, err
	}
	c := newChain(l.opts.Known)
	for i, s := range l.segments {
		if err := c.file(s); err != nil {
			return nil, err
		}
		if len(s.torn) > 0 && i < len(l.segments)-1 {
			return nil, &BrokenError{s.name(), int(s.entries) + 1, "is unfinished, and another file follows"}
		}
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	if len(l.segments) == 0 {
		return nil, errors.Join(l.begin(1, 0), syncDir(filepath.Dir(l.dir)))
	}
	l.sealed, l.durable = c.head, c.head
	last := l.segments[len(l.segments)-1]
	if err := l.owner(last); err != nil {
		return nil, err
	}
	if l.file, err = os.OpenFile(last.path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if torn = last.torn; len(torn) > 0 {
		last.torn = nil
		if err := l.file.Truncate(last.size); err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
	}
	return torn, nil
}

// owner reads the last entry in full, and refuses the log of another party.
func (l *Log) owner(last *segment) error {
	if l.durable.Seq == 0 {
		return nil
	}
	if last.entries == 0 {
		last = l.segments[len(l.segments)-2]
	}
	got, err := last.read(l.durable.Seq, 1)
	if err != nil {
		return err
	}
	if got[0].Party != l.opts.Party && len(l.opts.Known) == 0 { // a known hash proves the ownership
		return fmt.Errorf("audit: %s is the log of party %s, not of %s", l.dir, got[0].Party, l.opts.Party)
	}
	return nil
}

// begin creates the next file of the log, with space for the held bytes that Hold has promised.
// After an error the log continues in its present file.
func (l *Log) begin(number int, held int64) (err error) {
	s := &segment{path: filepath.Join(l.dir, fileName(number)), number: number}
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(s.path))
		}
	}()
	if held > 0 {
		if err := allocate(f, 0, held); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("audit: no space for the next file: %w", err)
		}
	}
	if err := syncDir(l.dir); err != nil {
		return err
	}
	if l.file != nil {
		l.file.Close() // all of it is durable
	}
	l.file, l.room = f, room{held}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments = append(l.segments, s)
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// Append adds e to the chain and returns when it is durable. Concurrent calls share one fsync.
// After an error the entry counts as not written: the writer cuts the file back to the last durable
// entry, and until that has succeeded every call fails. A full disk therefore stops the log only
// until there is space again.
func (l *Log) Append(e Entry) (Head, error) {
	if l == nil {
		return Head{}, nil
	}
	e.Version, e.Party = version, l.opts.Party
	if err := e.validate(); err != nil {
		return Head{}, err
	}
	b, head, err := l.enter(&e) // the caller waits for b
	if err != nil {
		return Head{}, err
	}
	<-b.done
	return head, b.err
}

// enter puts e into the batch that is written next.
func (l *Log) enter(e *Entry) (*batch, Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.appendable(); err != nil {
		return nil, Head{}, err
	}
	e.Seq, e.Prev, e.Time = l.sealed.Seq+1, l.sealed.Hash, l.opts.Now().UTC()
	line, err := seal(e)
	if err != nil {
		return nil, Head{}, err
	}
	b := l.filling
	b.lines = append(append(b.lines, line...), '\n')
	b.sizes = append(b.sizes, len(line)+1)
	b.head = Head{e.Seq, e.Hash}
	l.sealed = b.head
	l.rouse()
	return b, b.head, nil
}

// rouse wakes the writer.
func (l *Log) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// mendEvery is the interval between attempts to repair a log that cannot be written.
const mendEvery = time.Second

// write makes batches durable until the log is closed.
func (l *Log) write() {
	defer close(l.stopped)
	tick := time.NewTicker(mendEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.wake:
		case <-tick.C:
			l.recover()
			continue
		}
		l.mu.Lock()
		b := l.filling
		l.filling = newBatch()
		closed, held := l.closed, l.held
		l.mu.Unlock()
		if len(b.sizes) > 0 {
			b.err = l.store(b)
			l.settle(b)
		}
		if b.asks {
			if b.full = b.err; b.full == nil {
				b.full = l.reserve(held)
			}
		}
		close(b.done)
		if closed {
			return
		}
	}
}

// store writes a batch, to the next file if this one is full.
func (l *Log) store(b *batch) error {
	if last := l.segments[len(l.segments)-1]; last.size >= l.opts.FileSize { // only the writer changes them
		l.mu.Lock()
		held := l.held
		l.mu.Unlock()
		if err := l.begin(last.number+1, held); err != nil && held == 0 {
			return err
		} // otherwise this file has the space that Hold has promised, and stays in use
	}
	if _, err := l.file.Write(b.lines); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// settle records that a batch is durable, or that the log has failed for the batch and all entries
// after it.
func (l *Log) settle(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.err != nil {
		l.fail(b)
		return
	}
	l.failed = nil
	last := l.segments[len(l.segments)-1]
	seq := b.head.Seq - uint64(len(b.sizes))
	for _, n := range b.sizes {
		seq++
		last.add(seq, n)
	}
	l.durable = b.head
}

// fail sets the error of a failed batch and of the entries that follow it in the chain, and
// restarts after the last durable entry. The caller holds the lock.
func (l *Log) fail(b *batch) {
	b.err = fmt.Errorf("audit: cannot write the log; the party retries when its disk has space: %w", b.err)
	next := l.filling
	next.err, next.full = b.err, b.err
	l.filling, l.sealed = newBatch(), l.durable
	if l.failed = l.mend(); l.failed != nil {
		l.failed = fmt.Errorf("%w, and cannot repair its end: %w", b.err, l.failed)
	}
	close(next.done)
}

// mend truncates the last file to its durable entries.
func (l *Log) mend() error {
	last := l.segments[len(l.segments)-1]
	f, err := os.OpenFile(last.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if err = f.Truncate(last.size); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("audit: %w", err), f.Close())
	}
	l.file.Close() // its unwritten data is not needed
	l.file, l.room = f, room{}
	return nil
}

// recover retries a repair that failed before.
func (l *Log) recover() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil && l.mend() == nil {
		l.failed = nil
	}
}

// Fault returns the reason why the log cannot be written now, or nil.
func (l *Log) Fault() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Head returns the last durable entry.
func (l *Log) Head() Head {
	if l == nil {
		return Head{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// Close waits for pending entries and closes the log. It may be called again.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	l.rouse()
	<-l.stopped
	if again {
		return nil
	}
	_ = l.file.Truncate(l.segments[len(l.segments)-1].size) // frees the reserved space
	return l.release()
}

// release closes the files and releases the lock.
func (l *Log) release() error {
	var errs []error
	for _, f := range []*os.File{l.file, l.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
