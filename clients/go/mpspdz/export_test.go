//go:build unix

package mpspdz

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
)

// export writes each party's shares of records to a share directory below root/batch.
func (d *dealer) export(t *testing.T, root, batch string, target Target, records int) (dirs []string) {
	t.Helper()
	dims := tuplefile.Dims{M: 1, K: 1, N: 1}
	if target.Kind == Matrix {
		dims = tuplefile.Dims{M: target.Shape.Rows, K: target.Shape.Inner, N: target.Shape.Cols}
	}
	for i, shares := range d.deal(target, records) {
		dir := filepath.Join(root, batch, "party-"+strconv.Itoa(i))
		w, err := tuplefile.Create(dir, tuplefile.Manifest{
			FormatVersion: 1, Kind: target.Kind, Params: "S14-32", Field: "p128", Modulus: d.p.String(), Parties: len(d.keys), Party: i,
			Epoch: 4, Batch: batch, Tuples: int64(records), Dims: dims, InputParty: target.Owner, MACKeyShare: d.keys[i].String(), KeygenSecurity: "passive",
		}, (d.p.BitLen()+7)/8)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write(shares)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// Batches of several kinds become a tree that the independent reader accepts. A dry run reports the
// same in advance and writes nothing.
func TestExport(t *testing.T) {
	root, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	d := newDealer(testPrimes[128], 2)
	mat := Target{Kind: Matrix, Shape: Shape{2, 3, 1}}
	batches := [][]string{
		d.export(t, root, "a", Target{Kind: Scalar}, 60), d.export(t, root, "b", mat, 2), d.export(t, root, "c", Target{Kind: Bit}, 101),
		d.export(t, root, "d", Target{Kind: Scalar}, 41), d.export(t, root, "e", Target{Kind: Square}, 10),
		d.export(t, root, "f", Target{Kind: Inverse}, 10), d.export(t, root, "g", Target{Kind: Input, Owner: 1}, 10),
	}
	for party := range 2 {
		var from []string
		for _, dirs := range batches {
			from = append(from, dirs[party])
		}
		planned, err := Export(t.Context(), from, out, ExportOptions{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(out); (party == 0) != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after a dry run: %v", err)
		}
		var last, of int64
		r, err := Export(t.Context(), from, out, ExportOptions{Progress: func(done, total int64) { last, of = max(last, done), total }})
		if err != nil {
			t.Fatal(err)
		}
		if last != of || of == 0 {
			t.Errorf("progress ended at %d of %d", last, of)
		}
		if r.Parties != 2 || r.Party != party || r.PrimeBits != 128 || r.Epoch != 4 || len(r.Files) != 6 || r.DryRun || !planned.DryRun {
			t.Errorf("%+v", r)
		}
		for i, f := range r.Files {
			if info, err := os.Stat(f.Path); err != nil || info.Size() != f.Bytes || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", f.Path, info, err)
			}
			if p := planned.Files[i]; p.Path != f.Path || p.Records != f.Records || p.Usable != f.Usable || p.Bytes != f.Bytes {
				t.Errorf("planned %+v, written %+v", p, f)
			}
		}
		if f := r.Files[0]; f.Records != 101 || f.Usable != 101 || strings.Join(f.Batches, " ") != "a d" {
			t.Errorf("%+v", f)
		}
		if f := r.Files[1]; f.Records != 2 || f.Usable != 0 {
			t.Errorf("%+v", f)
		}
		for _, o := range []ExportOptions{{}, {DryRun: true}} {
			for _, to := range []string{out, t.TempDir()} {
				if _, err := Export(t.Context(), from, to, o); !errors.Is(err, ErrExported) || !strings.Contains(err.Error(), " went to "+out) {
					t.Errorf("a second time: %v", err)
				}
			}
		}
		for i := range 2 {
			if _, err := Export(t.Context(), from, out, ExportOptions{Force: true}); err != nil {
				t.Errorf("with force: %v", err)
			}
			if list, err := tuplefile.Exports(from[0]); err != nil || len(list) != i+2 {
				t.Errorf("%v, %v", list, err)
			}
		}
		for _, dir := range from {
			if err := os.Remove(filepath.Join(dir, tuplefile.ExportedName)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Export(t.Context(), from, out, ExportOptions{}); !errors.Is(err, ErrExists) {
			t.Errorf("into the same files: %v", err)
		}
		if list, err := tuplefile.Exports(from[0]); err != nil || len(list) != 0 {
			t.Errorf("recorded after a refusal: %v, %v", list, err)
		}
	}
	if text, err := reader(t, out); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

func TestExportRefuses(t *testing.T) {
	root := t.TempDir()
	d, short := newDealer(testPrimes[128], 2), newDealer(power(64, 428, 8), 2)
	a := d.export(t, root, "a", Target{Kind: Bit}, 3)
	b := d.export(t, root, "b", Target{Kind: Bit}, 3)
	random := d.export(t, root, "r", Target{Kind: Bit}, 3)
	if err := edit(filepath.Join(random[0], tuplefile.ManifestName), `"bit"`, `"random"`); err != nil {
		t.Fatal(err)
	}
	cut := d.export(t, root, "c", Target{Kind: Bit}, 3)
	if err := os.Truncate(filepath.Join(cut[0], tuplefile.DataName), 3*bitRecord-1); err != nil {
		t.Fatal(err)
	}
	changed := d.export(t, root, "e", Target{Kind: Scalar}, 3)
	data, err := os.ReadFile(filepath.Join(changed[0], tuplefile.DataName))
	if err != nil {
		t.Fatal(err)
	}
	data[0] ^= 1
	if err := os.WriteFile(filepath.Join(changed[0], tuplefile.DataName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	key := newDealer(testPrimes[128], 2)
	key.keys[0].SetInt64(77)
	other := key.export(t, root, "k", Target{Kind: Bit}, 3)
	for name, c := range map[string]struct {
		from []string
		want error
	}{
		"nothing":     {nil, ErrSources},
		"two parties": {[]string{a[0], b[1]}, ErrSources},
		"all parties": {[]string{filepath.Join(root, "a")}, ErrSources},
		"twice":       {[]string{a[0], b[0], a[0]}, ErrSources},
		"other key":   {[]string{a[0], other[0]}, ErrSources},
		"p512":        {short.export(t, root, "s", Target{Kind: Bit}, 1)[:1], ErrPrime},
		"random":      {[]string{random[0]}, ErrKind},
		"cut":         {[]string{a[0], cut[0]}, tuplefile.ErrTruncated},
		"changed":     {[]string{a[0], changed[0]}, tuplefile.ErrDigest},
		"nowhere":     {[]string{filepath.Join(root, "nowhere")}, fs.ErrNotExist},
	} {
		for _, pipes := range []bool{false, true} { // no process reads these
			out := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a test that is not refused waits for readers
			if r, err := Export(ctx, c.from, out, ExportOptions{Pipes: pipes}); r != nil || !errors.Is(err, c.want) {
				t.Errorf("%s, pipes %v: %v, %v", name, pipes, r, err)
			}
			cancel()
			if left, err := filepath.Glob(filepath.Join(out, "Player-Data", "*", "*-p-P0*")); err != nil || len(without(left, "MAC")) > 0 {
				t.Errorf("%s: left behind: %v, %v", name, left, err)
			}
		}
	}
}

func without(names []string, word string) (rest []string) {
	for _, n := range names {
		if !strings.Contains(n, word) {
			rest = append(rest, n)
		}
	}
	return rest
}

func edit(file, before, after string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, bytes.Replace(text, []byte(before), []byte(after), 1), 0o600)
}

// Pipes are fed in any order in which they are read. When a reader has gone, pipes without a reader
// are abandoned, and the report states how much was written to each.
func TestExportToPipes(t *testing.T) {
	root, out := t.TempDir(), t.TempDir()
	d := newDealer(testPrimes[128], 2)
	from := []string{
		d.export(t, root, "a", Target{Kind: Bit}, 5)[0], d.export(t, root, "b", Target{Kind: Scalar}, 3000)[0],
		d.export(t, root, "c", Target{Kind: Square}, 5)[0],
	}
	type result struct {
		r   *Report
		err error
	}
	done := make(chan result)
	go func() {
		r, err := Export(t.Context(), from, out, ExportOptions{Pipes: true})
		done <- result{r, err}
	}()
	dir := filepath.Join(out, "Player-Data", "2-p-128")
	open := func(name string) *os.File {
		for {
			f, err := os.Open(filepath.Join(dir, name))
			if err == nil {
				return f
			}
			if !errors.Is(err, fs.ErrNotExist) || t.Context().Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	triples := open("Triples-p-P0")
	if _, err := io.ReadFull(triples, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	bits := open("Bits-p-P0")
	all, err := io.ReadAll(bits)
	if err := errors.Join(err, bits.Close()); err != nil || len(all) != 57+5*bitRecord {
		t.Fatalf("%d bytes of bits: %v", len(all), err)
	}
	if err := triples.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	f := got.r.Files
	if f[0].Records != 5 || f[0].Ended != "" || f[1].Records < 10 || f[1].Records >= 3000 || f[1].Ended != ErrReaderGone.Error() ||
		f[2].Records != 0 || f[2].Ended != errNoReader.Error() {
		t.Errorf("%+v", f)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*s-p-P0")); err != nil || len(without(left, "MAC")) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// An interrupt without any reader is an error without a report: no share was written.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if r, err := Export(ctx, from, t.TempDir(), ExportOptions{Pipes: true}); r != nil || !errors.Is(err, ErrExported) {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := Export(ctx, from, t.TempDir(), ExportOptions{Pipes: true, Force: true}); r != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, %v", r, err)
	}
	if list, err := tuplefile.Exports(from[0]); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}
