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

// ErrSources means share directories that do not belong together.
var ErrSources = errors.New("mpspdz: sources do not belong together")

// errNoReader ends the wait for readers of pipes when one reader has gone and no pipe is being read.
var errNoReader = errors.New("mpspdz: no reader came")

// ExportOptions say how Export writes; see Options for the first three.
type ExportOptions struct {
	Suffix string
	Force  bool
	Pipes  bool
	DryRun bool // check everything but the shares, and write nothing
	Pooled bool // for trying only: take tuples that were checked with everybody's share of the MAC key
	// Progress is told now and then how many bytes of shares were taken, and of how many. It may be nil.
	Progress func(done, total int64)
}

// Report says what Export wrote, or would write.
type Report struct {
	Dir       string       `json:"dir"` // of the files
	Parties   int          `json:"parties"`
	Party     int          `json:"party"`
	PrimeBits int          `json:"prime_bits"`
	Epoch     uint64       `json:"epoch"`
	DryRun    bool         `json:"dry_run,omitempty"`
	Files     []FileReport `json:"files"`
}

// FileReport describes one file of MP-SPDZ's. Of Records, MP-SPDZ can use the first Usable.
type FileReport struct {
	Path    string   `json:"path"`
	Kind    string   `json:"kind"`
	Batches []string `json:"batches"`
	Records int64    `json:"records"`
	Usable  int64    `json:"usable"`
	Bytes   int64    `json:"bytes"`
	Pipe    bool     `json:"pipe,omitempty"`
	Ended   string   `json:"ended,omitempty"` // why a pipe did not get everything
}

// source is shares of one batch, and group all those that go into one file, in order.
type (
	source struct {
		name     string // for errors
		dir      string // empty for streams
		manifest tuplefile.Manifest
		open     func(context.Context) (shares, error)
		once     bool // it cannot be read to see whether it is whole, and then again
	}
	// shares reads until the manifest's tuples are read; Finish says whether that was all, and as it should be.
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

// exporter is one call of Export.
type exporter struct {
	o      ExportOptions
	tree   *Tree
	size   int // bytes of an element in the sources
	groups []*group
	total  int64 // bytes of shares
	mu     sync.Mutex
	done   int64                   // of total
	gone   atomic.Bool             // the reader of a pipe
	named  bool                    // files, or some of them, have got their names
	fail   context.CancelCauseFunc // ends everything
	stop   context.CancelCauseFunc // ends what goes into pipes
}

// Export writes the shares of directories that one party drew (see package tuplefile), of any kinds but of one key
// epoch, to out/Player-Data. A directory without a manifest stands for those in it. Batches of the same kind go into one
// file, in the order given. Everything is checked before anything is written: that the directories go together, that
// no batch is there twice, that each file has the length that it should, and that nothing is in the way. Files appear
// when all of them are written; a pipe is fed as it is read, after its sources' digests were checked.
//
// A directory that was exported before is refused without Force: the file exported.json in it says where to. It is on disk
// before anything leaves, and taken back if nothing has.
//
// A reader that closes its pipe early is no error: the file's report says so. When one has, and no pipe is being read,
// Export does not wait for readers of the other pipes any longer. An error comes with a report only if shares have left
// through pipes.
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

// Stream is shares that come from elsewhere than a directory. Open is called when they are needed, once, and not in a dry
// run; what it gives ends with io.EOF after the manifest's tuples, and with another error when they are not as they should
// be. The manifest's Files are not looked at.
type Stream struct {
	Manifest tuplefile.Manifest
	Open     func(context.Context) (io.ReadCloser, error)
}

// ExportStreams is Export for streams, which go straight into the files or pipes: what comes into a pipe before a stream
// turns out bad has left.
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

// ended is a stream whose end can be asked for.
type ended struct{ io.ReadCloser }

// Read fills p entirely.
func (r ended) Read(p []byte) (int, error) { return io.ReadFull(r.ReadCloser, p) }

// Finish reports whether the stream ends here, and well.
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

// once refuses directories that were exported before.
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

// note notes in each directory where its shares go.
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

// forget takes the notes back.
func forget(from []source) (err error) {
	for _, s := range from {
		if s.dir != "" {
			err = errors.Join(err, tuplefile.ForgetExport(s.dir))
		}
	}
	return err
}

// sources sorts them by file. It returns what they have in common.
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
	t := Target{Kind: m.Kind, Owner: m.InputParty}
	if m.Kind == tuplefile.Matrix {
		t.Shape = Shape{m.Dims.M, m.Dims.K, m.Dims.N}
	}
	return t
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

// check refuses what cannot succeed, as far as that shows without reading shares. Sources of pipes are read.
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

// bytes of a source's shares.
func (e *exporter) bytes(s source) int64 { return s.manifest.Tuples * s.manifest.RecordBytes(e.size) }

// write makes all files, fills them side by side, since the order in which pipes are read is not known, and gives them
// their names if all went well.
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
		if ctx.Err() != nil { // say once what ended everything
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

// fill writes the sources of a file; a pipe is closed afterwards, so that its reader sees the end.
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

// took counts what was written.
func (e *exporter) took(n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done += n
	if e.o.Progress != nil {
		e.o.Progress(e.done, e.total)
	}
}

// report describes a file that was written, or with DryRun would be.
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
