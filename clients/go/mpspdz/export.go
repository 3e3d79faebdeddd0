package mpspdz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"

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

// source is a share directory, and group all those that go into one file, in order.
type (
	source struct {
		dir      string
		manifest tuplefile.Manifest
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
	fail   context.CancelCauseFunc // ends everything
	stop   context.CancelCauseFunc // ends what goes into pipes
}

// Export writes the shares of directories that one party drew (see package tuplefile), of any kinds but of one key
// epoch, to out/Player-Data. A directory without a manifest stands for those in it. Batches of the same kind go into one
// file, in the order given. Everything is checked before anything is written: that the directories go together, that
// no batch is there twice, that each file has the length that it should, and that nothing is in the way. Files appear
// when all of them are written; a pipe is fed as it is read, after its sources' digests were checked.
//
// A reader that closes its pipe early is no error: the file's report says so. When one has, and no pipe is being read,
// Export does not wait for readers of the other pipes any longer. An error comes with a report only if shares have left
// through pipes.
func Export(ctx context.Context, from []string, out string, o ExportOptions) (*Report, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	pipes, stop := context.WithCancelCause(ctx)
	e := &exporter{o: o, fail: fail, stop: stop}
	head, err := e.sources(from)
	if err != nil {
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
		return nil, err
	}
	return report, err
}

// sources reads the manifests and sorts the directories by file. It returns what they have in common.
func (e *exporter) sources(from []string) (head tuplefile.Manifest, err error) {
	dirs, err := tuplefile.Find(from...)
	if err != nil {
		return head, err
	}
	batches := make(map[string]string)
	for i, dir := range dirs {
		m, err := tuplefile.ReadManifest(dir)
		if err != nil {
			return head, fmt.Errorf("%s: %w", dir, err)
		}
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
			return head, fmt.Errorf("%w: %s and %s have different %s", ErrSources, dirs[0], dir, differs)
		}
		if first, ok := batches[m.Batch]; ok {
			return head, fmt.Errorf("%w: %s and %s hold the same batch", ErrSources, first, dir)
		}
		batches[m.Batch] = dir
		e.add(targetOf(m), source{dir, m})
	}
	if len(dirs) == 0 {
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
			r, err := tuplefile.Open(s.dir, s.manifest, e.size)
			if err != nil {
				return fmt.Errorf("%s: %w", s.dir, err)
			}
			if pipe && !e.o.DryRun {
				if _, err = io.CopyN(io.Discard, r, s.manifest.Files[0].Bytes); err == nil {
					err = r.Finish()
				}
			}
			if err := errors.Join(err, r.Close()); err != nil {
				return fmt.Errorf("%s: %w", s.dir, err)
			}
			e.total += s.manifest.Files[0].Bytes
		}
	}
	return nil
}

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
	r, err := tuplefile.Open(s.dir, s.manifest, e.size)
	if err != nil {
		return fmt.Errorf("%s: %w", s.dir, err)
	}
	defer r.Close()
	buf := make([]byte, 1<<16)
	defer clear(buf)
	for left := s.manifest.Files[0].Bytes; left > 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := buf[:min(left, int64(len(buf)))]
		if _, err := io.ReadFull(r, part); err != nil {
			return fmt.Errorf("%s: %w", s.dir, err)
		}
		if _, err := f.Write(part); err != nil {
			return fmt.Errorf("%s: %w", s.dir, err)
		}
		left -= int64(len(part))
		e.took(int64(len(part)))
	}
	if err := r.Finish(); err != nil {
		return fmt.Errorf("%s: %w", s.dir, err)
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
