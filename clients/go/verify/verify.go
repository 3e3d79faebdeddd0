package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"runtime"
	"slices"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
)

// Errors that end a run without a report. Those of tuplefile (truncated, trailing, digest,
// manifest) are passed on.
var (
	ErrRoster       = errors.New("verify: not one directory for each party")
	ErrInconsistent = errors.New("verify: the parties' manifests disagree")
	ErrKey          = errors.New("verify: bad MAC key")
	ErrOnlineKey    = errors.New("verify: the share of the MAC key was drawn for an online phase")
	ErrNotCanonical = errors.New("verify: element is not below the modulus")
)

// ElementError locates an element that is not canonical. It wraps [ErrNotCanonical].
type ElementError struct {
	Party   int
	Tuple   int64
	Element int // within the record
}

func (e *ElementError) Error() string {
	return fmt.Sprintf("%v: party %d, tuple %d, element %d", ErrNotCanonical, e.Party, e.Tuple, e.Element)
}

// Unwrap returns [ErrNotCanonical].
func (e *ElementError) Unwrap() error { return ErrNotCanonical }

// Options configures Dirs. The zero value is valid.
type Options struct {
	MaxFailures int                     // failures listed in the report, 100 if 0; counts are always complete
	Retired     bool                    // all parties have retired the epoch, so shares of the MAC key for an online phase are acceptable
	Progress    func(done, total int64) // triples checked, called in order
}

const (
	scalarsPerChunk = 512
	// Number of sums held at a time: a budget in elements, in addition to one chunk.
	elementsInFlight = 1 << 21
	// Factors are compared for repeats among this many triples, to bound memory.
	maxCompared = 1 << 20
)

// Dirs checks the share directories of all parties of one batch, in any order. A directory without
// a manifest is replaced by its subdirectories. Findings about triples are in the report; an error
// means that no verdict was reached.
func Dirs(ctx context.Context, dirs []string, opt Options) (*Report, error) {
	dirs, err := tuplefile.Find(dirs...)
	if err != nil {
		return nil, err
	}
	manifests := make([]tuplefile.Manifest, len(dirs))
	for i, dir := range dirs {
		if manifests[i], err = tuplefile.ReadManifest(dir); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	if err := consistent(manifests); err != nil {
		return nil, err
	}
	p, err := modulus(manifests[0])
	if err != nil {
		return nil, err
	}
	alpha, err := macKey(manifests, p, opt.Retired)
	if err != nil {
		return nil, err
	}
	size := (p.BitLen() + 7) / 8
	readers := make([]*tuplefile.Reader, len(dirs))
	for i, dir := range dirs {
		r, err := tuplefile.Open(dir, manifests[i], size)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		defer r.Close()
		readers[i] = r
	}
	return run(ctx, readers, newChecker(manifests[0], p, alpha), opt)
}

// consistent checks that every party is present once and that all manifests agree on the common
// fields.
func consistent(ms []tuplefile.Manifest) error {
	shared := func(m tuplefile.Manifest) tuplefile.Manifest {
		m.Party, m.MACKeyShare, m.MACKeyPooled, m.Files = 0, "", false, nil
		return m
	}
	first := ms[0]
	seen := make([]bool, first.Parties)
	for _, m := range ms {
		a, b := shared(first), shared(m)
		if a.Parties != b.Parties {
			return fmt.Errorf("%w: %d parties or %d", ErrInconsistent, a.Parties, b.Parties)
		}
		if !reflect.DeepEqual(a, b) {
			return fmt.Errorf("%w: %v (party %d) or %v (party %d)", ErrInconsistent, a, first.Party, b, m.Party)
		}
		if seen[m.Party] {
			return fmt.Errorf("%w: party %d occurs twice", ErrRoster, m.Party)
		}
		seen[m.Party] = true
	}
	if i := slices.Index(seen, false); i >= 0 {
		return fmt.Errorf("%w: party %d of %d is missing", ErrRoster, i, first.Parties)
	}
	return nil
}

// macKey adds up the key shares. The sum allows forgeries, so shares that are not meant for pooling
// are refused unless their epoch is retired. With a zero key, every MAC of zero would be correct.
func macKey(ms []tuplefile.Manifest, p *big.Int, retired bool) (*big.Int, error) {
	alpha := new(big.Int)
	for _, m := range ms {
		if m.MACKeyShare == "" {
			return nil, fmt.Errorf("%w: party %d's share was not drawn with the tuples", ErrKey, m.Party)
		}
		if !m.MACKeyPooled && !retired {
			return nil, fmt.Errorf("%w: party %d's", ErrOnlineKey, m.Party)
		}
		share, ok := new(big.Int).SetString(m.MACKeyShare, 10)
		if !ok || share.Cmp(p) >= 0 {
			return nil, fmt.Errorf("%w: party %d's share is not below the modulus", ErrKey, m.Party)
		}
		alpha.Add(alpha, share)
	}
	if alpha.Mod(alpha, p).Sign() == 0 {
		return nil, fmt.Errorf("%w: the shares add up to zero", ErrKey)
	}
	return alpha, nil
}

// run passes chunks of summed triples from one reader to the workers and collects their findings in
// order.
func run(ctx context.Context, readers []*tuplefile.Reader, c *checker, opt Options) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	perChunk := scalarsPerChunk
	if c.kind.Shaped() {
		perChunk = 1
	}
	workers := runtime.GOMAXPROCS(0)
	inFlight := max(1, min(workers+2, elementsInFlight/(perChunk*2*c.values)))
	free := make(chan *chunk, inFlight)
	for range inFlight {
		free <- newChunk(perChunk * 2 * c.values)
	}
	work := make(chan *chunk, inFlight)
	ordered := make(chan *chunk, inFlight)
	for range workers {
		go func() {
			for ch := range work {
				c.check(ch)
				ch.done <- struct{}{}
			}
		}()
	}
	readErr := make(chan error, 1)
	go func() {
		defer close(ordered)
		defer close(work)
		readErr <- c.readAll(ctx, readers, perChunk, free, work, ordered)
	}()

	report := c.newReport()
	limit := opt.MaxFailures
	if limit == 0 {
		limit = 100
	}
	var done int64
	for ch := range ordered {
		<-ch.done
		report.add(ch, limit)
		done += int64(ch.tuples)
		free <- ch
		if opt.Progress != nil {
			opt.Progress(done, report.Tuples)
		}
	}
	if err := <-readErr; err != nil {
		return nil, err
	}
	report.ComparedForRepeats = min(report.Tuples, maxCompared)
	return report, nil
}

// add counts a chunk's findings.
func (r *Report) add(ch *chunk, limit int) {
	slices.SortStableFunc(ch.failures, func(a, b Failure) int { return cmp.Compare(a.Tuple, b.Tuple) })
	bad := int64(0)
	for i, f := range ch.failures {
		if i == 0 || ch.failures[i-1].Tuple != f.Tuple {
			bad++
		}
		r.Failed[f.Check]++
		if len(r.Failures) < limit {
			r.Failures = append(r.Failures, f)
		}
	}
	r.Verified += int64(ch.tuples) - bad
}
