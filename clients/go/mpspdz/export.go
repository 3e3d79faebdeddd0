package mpspdz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
)

// ErrSources reports share directories that do not belong together.
var ErrSources = errors.New("mpspdz: sources do not belong together")

// errNoReader ends the wait for readers of pipes when one reader has gone and no pipe is being
// read.
var errNoReader = errors.New("mpspdz: no reader came")

// ExportOptions configures [Export]; see [Options] for the first three fields.
type ExportOptions struct {
	Suffix string
	Force  bool
	Pipes  bool
	DryRun bool // check everything but the shares, and write nothing
	Pooled bool // for trials only: accept tuples that were checked with all parties' shares of the MAC key
	// Progress, unless nil, is called from time to time with the number of bytes of shares
	// processed, and their total.
	Progress func(done, total int64)
}

// Report describes the files that [Export] wrote or, in a dry run, would write.
type Report struct {
	Dir       string       `json:"dir"` // of the files
	Parties   int          `json:"parties"`
	Party     int          `json:"party"`
	PrimeBits int          `json:"prime_bits"`
	Epoch     uint64       `json:"epoch"`
	DryRun    bool         `json:"dry_run,omitempty"`
	Files     []FileReport `json:"files"`
}

// FileReport describes one of MP-SPDZ's files. MP-SPDZ can use the first Usable of its Records.
type FileReport struct {
	Path    string   `json:"path"`
	Kind    string   `json:"kind"`
	Batches []string `json:"batches"`
	Records int64    `json:"records"`
	Usable  int64    `json:"usable"`
	Bytes   int64    `json:"bytes"`
	Pipe    bool     `json:"pipe,omitempty"`
	Ended   string   `json:"ended,omitempty"` // why a pipe did not receive everything
}

// source holds the shares of one batch, and group all sources of one file, in order.
type (
	source struct {
		name     string // for errors
		dir      string // empty for streams
		manifest tuplefile.Manifest
		open     func(context.Context) (shares, error)
		once     bool // it cannot be read twice, for a check and for the export
	}
	// shares reads the manifest's tuples. Finish reports whether the data ended there and was
	// valid.
	shares interface {
		io.ReadCloser
		Finish() error
	}
	group struct {
		target  Target
		sources []source
		file    *File
		ended   error
	}
)

// exporter is the state of one call of Export.
type exporter struct {
	o      ExportOptions
	tree   *Tree
	size   int // bytes of an element in the sources
	groups []*group
	total  int64 // bytes of shares
	mu     sync.Mutex
	done   int64                   // of total
	gone   atomic.Bool             // the reader of a pipe closed it
	named  bool                    // some files have been given their final names
	fail   context.CancelCauseFunc // cancels everything
	stop   context.CancelCauseFunc // cancels writing to pipes
}

// Export writes the shares of one party's directories (see package [tuplefile]), of any kinds but
// of one key epoch, to out/Player-Data. A directory without a manifest is replaced by its
// subdirectories. Batches of the same kind go into one file, in the given order. Before it writes
// anything, Export checks that the directories belong together, that no batch occurs twice, that
// each file has the right length, and that no file is in the way. Files get their names when all of
// them are complete; a pipe is fed as it is read, after its sources' digests were checked.
//
// Without Force, a directory that was exported before is refused: its file exported.json records
// the destination. The record is on disk before any share is written, and is removed if none was.
//
// A reader that closes its pipe early is not an error; the file's report states it. After that, if
// no pipe is being read, Export stops waiting for readers of the other pipes. A report accompanies
// an error only if shares have left through pipes.
func Export(ctx context.Context, from []string, out string, o ExportOptions) (*Report, error) {
	dirs, err := tuplefile.Find(from...)
	if err != nil {
		return nil, err
	}
	var list []source
	for _, dir := range dirs {
		m, err := tuplefile.ReadManifest(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		list = append(list, source{name: dir, dir: dir, manifest: m, open: func(context.Context) (shares, error) {
			p, _ := new(big.Int).SetString(m.Modulus, 10)
			return tuplefile.Open(dir, m, (p.BitLen()+7)/8)
		}})
	}
	return export(ctx, list, out, o)
}

// Stream provides shares from a source other than a directory. Open is called once, when the shares
// are needed, and never in a dry run. Its reader must return [io.EOF] after the manifest's tuples,
// and another error if the shares are invalid. The manifest's Files are ignored.
type Stream struct {
	Manifest tuplefile.Manifest
	Open     func(context.Context) (io.ReadCloser, error)
}

// ExportStreams is Export for streams, which are written directly to the files or pipes: shares
// written to a pipe before a stream fails cannot be recalled.
func ExportStreams(ctx context.Context, from []Stream, out string, o ExportOptions) (*Report, error) {
	var list []source
	for _, s := range from {
		list = append(list, source{name: s.Manifest.Batch, manifest: s.Manifest, once: true, open: func(ctx context.Context) (shares, error) {
			r, err := s.Open(ctx)
			return ended{r}, err
		}})
	}
	return export(ctx, list, out, o)
}

// ended is a stream whose end can be checked.
type ended struct{ io.ReadCloser }

// Read fills p completely.
func (r ended) Read(p []byte) (int, error) { return io.ReadFull(r.ReadCloser, p) }

// Finish reports whether the stream ends here without an error.
func (r ended) Finish() error {
	n, err := r.ReadCloser.Read(make([]byte, 1))
	if n > 0 || err == nil {
		return tuplefile.ErrTrailing
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func export(ctx context.Context, from []source, out string, o ExportOptions) (*Report, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	pipes, stop := context.WithCancelCause(ctx)
	e := &exporter{o: o, fail: fail, stop: stop}
	head, err := e.sources(from)
	if err != nil {
		return nil, err
	}
	if err := e.once(from); err != nil {
		return nil, err
	}
	if e.tree, err = treeOf(pipes, head, out, o); err != nil {
		return nil, err
	}
	e.size = e.tree.m.size
	if err := e.check(); err != nil {
		return nil, err
	}
	report := &Report{
		Dir: e.tree.dir, Parties: head.Parties, Party: head.Party, PrimeBits: e.tree.o.Prime.BitLen(), Epoch: head.Epoch, DryRun: o.DryRun,
	}
	if !o.DryRun {
		if err := e.note(from); err != nil {
			return nil, err
		}
		err = e.write(ctx)
	}
	delivered := false
	for _, g := range e.groups {
		r, err := e.report(g)
		if err != nil {
			return nil, err
		}
		delivered = delivered || r.Pipe && r.Bytes > 0
		report.Files = append(report.Files, r)
	}
	if err != nil && !delivered {
		if !e.named {
			err = errors.Join(err, forget(from))
		}
		return nil, err
	}
	return report, err
}

// once returns an error for directories that were exported before.
func (e *exporter) once(from []source) error {
	for _, s := range from {
		if s.dir == "" || e.o.Force {
			continue
		}
		list, err := tuplefile.Exports(s.dir)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			last := list[len(list)-1]
			return fmt.Errorf("%w: %s went to %s at %s", ErrExported, s.dir, last.To, last.Time.Format(time.RFC3339))
		}
	}
	return nil
}

// note records the destination in each directory.
func (e *exporter) note(from []source) error {
	to, err := filepath.Abs(e.tree.dir)
	if err != nil {
		return err
	}
	for i, s := range from {
		if s.dir == "" {
			continue
		}
		if err := tuplefile.NoteExport(s.dir, to); err != nil {
			if errors.Is(err, fs.ErrExist) {
				err = fmt.Errorf("%w: %s is being exported", ErrExported, s.dir)
			}
			return errors.Join(err, forget(from[:i]))
		}
	}
	return nil
}

// forget removes the records.
func forget(from []source) (err error) {
	for _, s := range from {
		if s.dir != "" {
			err = errors.Join(err, tuplefile.ForgetExport(s.dir))
		}
	}
	return err
}

// sources sorts the sources by file. It returns the common part of their manifests.
func (e *exporter) sources(from []source) (head tuplefile.Manifest, err error) {
	batches := make(map[string]string)
	for i, s := range from {
		m := s.manifest
		if i == 0 {
			head = m
		}
		var differs string
		switch {
		case m.Party != head.Party:
			differs = "parties: export each party's shares on their own"
		case m.Parties != head.Parties:
			differs = "numbers of parties"
		case m.Modulus != head.Modulus:
			differs = "primes"
		case m.Epoch != head.Epoch || m.MACKeyShare != head.MACKeyShare:
			differs = "key epochs, so different MAC keys"
		}
		if differs != "" {
			return head, fmt.Errorf("%w: %s and %s have different %s", ErrSources, from[0].name, s.name, differs)
		}
		if first, ok := batches[m.Batch]; ok {
			return head, fmt.Errorf("%w: %s and %s hold the same batch", ErrSources, first, s.name)
		}
		batches[m.Batch] = s.name
		e.add(targetOf(m), s)
	}
	if len(from) == 0 {
		return head, fmt.Errorf("%w: there are none", ErrSources)
	}
	return head, nil
}

func targetOf(m tuplefile.Manifest) Target {
	s := m.Shape().Matrix
	return Target{Kind: m.Kind, Owner: m.InputParty, Shape: Shape{s.Rows, s.Inner, s.Cols}}
}

func (e *exporter) add(t Target, s source) {
	i := slices.IndexFunc(e.groups, func(g *group) bool { return g.target == t })
	if i < 0 {
		i = len(e.groups)
		e.groups = append(e.groups, &group{target: t})
	}
	e.groups[i].sources = append(e.groups[i].sources, s)
}

func treeOf(ctx context.Context, m tuplefile.Manifest, out string, o ExportOptions) (*Tree, error) {
	p, _ := new(big.Int).SetString(m.Modulus, 10)
	if m.MACKeyShare == "" {
		return nil, ErrNoKey
	}
	if m.MACKeyPooled && !o.Pooled {
		return nil, ErrPooled
	}
	key, ok := new(big.Int).SetString(m.MACKeyShare, 10)
	if p == nil || !ok || key.Cmp(p) >= 0 {
		return nil, fmt.Errorf("%w: the share of the MAC key is not below the prime", ErrOptions)
	}
	share := key.FillBytes(make([]byte, (p.BitLen()+7)/8))
	slices.Reverse(share)
	return NewTree(ctx, out, Options{
		Prime: p, Parties: m.Parties, Party: m.Party, KeyShare: share, Suffix: o.Suffix, Force: o.Force, Pipes: o.Pipes,
	})
}

// check reports problems that can be detected without reading shares. Sources of pipes are read.
func (e *exporter) check() error {
	for _, g := range e.groups {
		pipe, err := e.tree.Check(g.target)
		if err != nil {
			return err
		}
		for _, s := range g.sources {
			e.total += e.bytes(s)
			if s.once {
				continue
			}
			r, err := s.open(context.Background())
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if pipe && !e.o.DryRun {
				if _, err = io.CopyN(io.Discard, r, e.bytes(s)); err == nil {
					err = r.Finish()
				}
			}
			if err := errors.Join(err, r.Close()); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// bytes returns the size of a source's shares.
func (e *exporter) bytes(s source) int64 { return s.manifest.Tuples * s.manifest.RecordBytes(e.size) }

// write creates all files, fills them concurrently, since the order in which pipes are read is
// unknown, and gives them their final names if there was no error.
func (e *exporter) write(ctx context.Context) (err error) {
	defer func() {
		for _, g := range e.groups {
			if g.file != nil && err != nil {
				err = errors.Join(err, g.file.Abort())
			}
		}
	}()
	for _, g := range e.groups {
		if g.file, err = e.tree.File(g.target); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	errs := make([]error, len(e.groups))
	for i, g := range e.groups {
		wg.Go(func() {
			if errs[i] = e.fill(ctx, g); errs[i] != nil {
				e.fail(errs[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		if ctx.Err() != nil { // report the cause only once
			err = context.Cause(ctx)
		}
		return err
	}
	e.named = true
	for _, g := range e.groups {
		if !g.file.Pipe() {
			err = errors.Join(err, g.file.Close())
		}
	}
	return err
}

// fill writes the sources of a file. It closes a pipe afterwards, so that the reader sees the end.
func (e *exporter) fill(ctx context.Context, g *group) error {
	var err error
	for _, s := range g.sources {
		if err = e.copy(ctx, g.file, s); err != nil {
			break
		}
	}
	if !g.file.Pipe() {
		return err
	}
	if err == nil {
		err = g.file.Close()
	} else {
		err = errors.Join(err, g.file.Abort())
	}
	if errors.Is(err, ErrReaderGone) {
		e.gone.Store(true)
		g.ended, err = ErrReaderGone, nil
	}
	if errors.Is(err, errNoReader) {
		g.ended, err = errNoReader, nil
	}
	if reading := func(g *group) bool { return g.file.reading.Load() }; e.gone.Load() && !slices.ContainsFunc(e.groups, reading) {
		e.stop(errNoReader)
	}
	return err
}

func (e *exporter) copy(ctx context.Context, f *File, s source) error {
	r, err := s.open(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	defer r.Close()
	buf := make([]byte, 1<<16)
	defer clear(buf)
	for left := e.bytes(s); left > 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := buf[:min(left, int64(len(buf)))]
		if _, err := io.ReadFull(r, part); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if _, err := f.Write(part); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		left -= int64(len(part))
		e.took(int64(len(part)))
	}
	if err := r.Finish(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// took counts the written bytes.
func (e *exporter) took(n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done += n
	if e.o.Progress != nil {
		e.o.Progress(e.done, e.total)
	}
}

// report describes a file that was written, or would be written in a dry run.
func (e *exporter) report(g *group) (FileReport, error) {
	r := FileReport{Path: e.tree.Path(g.target), Kind: g.target.Kind}
	for _, s := range g.sources {
		r.Batches = append(r.Batches, s.manifest.Batch)
		r.Records += s.manifest.Tuples
	}
	if e.o.DryRun {
		pipe, err := e.tree.Check(g.target)
		record := int64(g.target.elements(e.tree.o.Party) * e.tree.m.bytes())
		r.Pipe, r.Bytes = pipe, int64(len(e.tree.header))+r.Records*record
		r.Usable = g.target.Usable(r.Records)
		return r, err
	}
	if g.file == nil {
		return r, nil
	}
	r.Records, r.Usable, r.Bytes, r.Pipe = g.file.Records(), g.file.Usable(), g.file.Bytes(), g.file.Pipe()
	if g.ended != nil {
		r.Ended = g.ended.Error()
	}
	return r, nil
}
