package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
)

// export is a batch before it is written, so that tests can modify any part.
type export struct {
	manifests []tuplefile.Manifest
	data      [][]byte
	size      int // bytes per element
	values    int
}

func newExport(t testing.TB, kind, params, field string, parties, tuples int, d tuplefile.Dims, shape ...tuplefile.Convolution) *export {
	t.Helper()
	p, err := Modulus(params, field)
	if err != nil {
		t.Fatal(err)
	}
	source := mathrand.NewChaCha8([32]byte{1, byte(parties), byte(tuples)})
	random := func() *big.Int {
		buf := make([]byte, (p.BitLen()+7)/8+16)
		source.Read(buf)
		x := new(big.Int).SetBytes(buf)
		return x.Mod(x, p)
	}
	e := &export{size: (p.BitLen() + 7) / 8}
	alpha := new(big.Int)
	for i := range parties {
		share := random()
		alpha.Add(alpha, share)
		e.manifests = append(e.manifests, tuplefile.Manifest{
			FormatVersion: 1, Kind: kind, Params: params, Field: field, Modulus: p.String(), Parties: parties, Party: i,
			Epoch: 3, Batch: "b-7", Tuples: int64(tuples), Dims: d, MACKeyShare: share.String(), MACKeyPooled: true, KeygenSecurity: "passive",
		})
	}
	for i := range e.manifests {
		if len(shape) > 0 {
			e.manifests[i].Convolution = &shape[0]
		}
	}
	e.values = e.manifests[0].Values()
	e.data = make([][]byte, parties)
	share := func(x *big.Int) {
		rest := new(big.Int).Set(x)
		for i := range parties {
			s := rest
			if i < parties-1 {
				s = random()
				rest.Sub(rest, s)
			}
			b := new(big.Int).Mod(s, p).FillBytes(make([]byte, e.size))
			slices.Reverse(b)
			e.data[i] = append(e.data[i], b...)
		}
	}
	for range tuples {
		a, b := make([]*big.Int, d.M*d.K), make([]*big.Int, d.K*d.N)
		for i := range a {
			a[i] = random()
		}
		for i := range b {
			b[i] = random()
		}
		var c []*big.Int
		for i := range d.M {
			for j := range d.N {
				sum := new(big.Int)
				for k := range d.K {
					sum.Add(sum, new(big.Int).Mul(a[i*d.K+k], b[k*d.N+j]))
				}
				c = append(c, sum.Mod(sum, p))
			}
		}
		all := slices.Concat(a, b, c)
		switch kind {
		case tuplefile.ConvolutionKind:
			all = convolve(shape[0], random, p)
		case tuplefile.Square:
			all = []*big.Int{a[0], new(big.Int).Exp(a[0], big.NewInt(2), p)}
		case tuplefile.Inverse:
			all = []*big.Int{a[0], new(big.Int).ModInverse(a[0], p)}
		case tuplefile.Random, tuplefile.Input:
			all = a
		case tuplefile.Bit:
			all = []*big.Int{big.NewInt(int64(a[0].Bit(0)))}
		}
		for _, x := range all {
			share(x)
		}
		for _, x := range all {
			share(new(big.Int).Mul(x, alpha))
		}
		if kind == tuplefile.Input { // of party 0
			b := a[0].FillBytes(make([]byte, e.size))
			slices.Reverse(b)
			e.data[0] = append(e.data[0], b...)
		}
	}
	return e
}

// write creates the directories, with manifests whose digests match the data.
func (e *export) write(t testing.TB) []string {
	t.Helper()
	root := t.TempDir()
	var dirs []string
	for i, m := range e.manifests {
		dir := filepath.Join(root, fmt.Sprintf("dir-%d", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(e.data[i])
		m.Files = []tuplefile.File{
			{Name: tuplefile.DataName, SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(e.data[i]))},
		}
		if err := os.WriteFile(filepath.Join(dir, tuplefile.DataName), e.data[i], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := tuplefile.WriteManifest(dir, m); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// at returns the element of a party's record.
func (e *export) at(party, tuple, element int) []byte {
	return e.data[party][(tuple*(2*e.values+e.manifests[party].Clear())+element)*e.size:][:e.size]
}

// ownedBy makes another party the owner of the input masks by swapping it with party 0.
func (e *export) ownedBy(owner int) *export {
	e.data[0], e.data[owner] = e.data[owner], e.data[0]
	for i := range e.manifests {
		e.manifests[i].InputParty = owner
	}
	e.manifests[0].MACKeyShare, e.manifests[owner].MACKeyShare = e.manifests[owner].MACKeyShare, e.manifests[0].MACKeyShare
	return e
}

// bump adds one to a share; the tests' shares are random and so never p-1.
func bump(b []byte) {
	for i := range b {
		b[i]++
		if b[i] != 0 {
			return
		}
	}
}

func scalars(t testing.TB) *export {
	return newExport(t, tuplefile.Scalar, "S14-32", "p128", 3, 1100, tuplefile.Dims{M: 1, K: 1, N: 1})
}

func matrices(t testing.TB) *export {
	return newExport(t, tuplefile.Matrix, "S13-8", "p64", 2, 3, tuplefile.Dims{M: 4, K: 3, N: 5})
}

// others returns tuples of a kind without its own products.
func others(kind string) func(t testing.TB) *export {
	return func(t testing.TB) *export {
		return newExport(t, kind, "S14-32", "p128", 2, 40, tuplefile.Dims{M: 1, K: 1, N: 1})
	}
}

func TestGoodTuplesPass(t *testing.T) {
	one := tuplefile.Dims{M: 1, K: 1, N: 1}
	for _, e := range []*export{
		scalars(t), matrices(t), others(tuplefile.Square)(t), others(tuplefile.Random)(t), others(tuplefile.Bit)(t), others(tuplefile.Inverse)(t),
		others(tuplefile.Input)(t), others(tuplefile.Input)(t).ownedBy(1),
		newExport(t, tuplefile.Scalar, "S13-16", "p4096", 2, 3, one), // 4095 bits
		newExport(t, tuplefile.Scalar, "insecure-8-64", "p512", 5, 2, one),
		newExport(t, tuplefile.Scalar, "S15-128", "p256", 1, 2, one),
		newExport(t, tuplefile.Matrix, "S14-64", "p1024", 3, 1, tuplefile.Dims{M: 2, K: 7, N: 1}),
		convolutions(t), newExport(t, tuplefile.ConvolutionKind, "S13-8", "p64", 2, 3, one, tuplefile.Convolution{
			Channels: 1, Height: 6, Width: 3, Outputs: 1, KernelHeight: 4, KernelWidth: 2, StrideHeight: 2, StrideWidth: 1,
			PaddingHeight: 2, PaddingWidth: 1,
		}),
	} {
		var last int64
		dirs := e.write(t)
		slices.Reverse(dirs) // the order is irrelevant
		r, err := Dirs(context.Background(), dirs, Options{Progress: func(done, _ int64) { last = done }})
		if err != nil {
			t.Fatal(err)
		}
		m := e.manifests[0]
		if !r.OK() || r.Verified != m.Tuples || len(r.Failed) != 0 || len(r.Failures) != 0 || last != m.Tuples {
			t.Errorf("%v: %+v", m, r)
		}
		if want := map[string]int{"p64": 2, "p1024": 1}[m.Field]; m.Kind == tuplefile.Matrix && r.FreivaldsVectors != want {
			t.Errorf("%v: %d vectors, want %d", m, r.FreivaldsVectors, want)
		}
	}
}

// Every single wrong number of a triple is detected, named and counted, at every position.
func TestWrongValuesAreFound(t *testing.T) {
	type spoil struct {
		name string
		at   int // element of the record
		want []string
	}
	type family struct {
		make   func(testing.TB) *export
		tuple  int
		spoils []spoil
	}
	m := matrices(t).manifests[0]
	mk, kn, v := m.Dims.M*m.Dims.K, m.Dims.K*m.Dims.N, m.Values()
	nx, nw, ny := convolutions(t).manifests[0].Convolution.Sizes()
	for _, f := range []family{
		{scalars, 1099, []spoil{
			{"a", 0, []string{CheckMACA, CheckProduct}},
			{"b", 1, []string{CheckMACB, CheckProduct}},
			{"c", 2, []string{CheckMACC, CheckProduct}},
			{"mac a", 3, []string{CheckMACA}},
			{"mac b", 4, []string{CheckMACB}},
			{"mac c", 5, []string{CheckMACC}},
		}},
		{others(tuplefile.Square), 39, []spoil{
			{"a", 0, []string{CheckMACA, CheckProduct}}, {"a^2", 1, []string{CheckMACB, CheckProduct}},
			{"mac a", 2, []string{CheckMACA}}, {"mac a^2", 3, []string{CheckMACB}},
		}},
		{others(tuplefile.Inverse), 0, []spoil{
			{"a", 0, []string{CheckMACA, CheckProduct}}, {"1/a", 1, []string{CheckMACB, CheckProduct}},
			{"mac a", 2, []string{CheckMACA}}, {"mac 1/a", 3, []string{CheckMACB}},
		}},
		{others(tuplefile.Random), 5, []spoil{{"a", 0, []string{CheckMACA}}, {"mac a", 1, []string{CheckMACA}}}},
		{others(tuplefile.Input), 39, []spoil{
			{"a", 0, []string{CheckClear, CheckMACA}}, {"mac a", 1, []string{CheckMACA}}, {"the value in clear", 2, []string{CheckClear}},
		}},
		{others(tuplefile.Bit), 5, []spoil{{"mac", 1, []string{CheckMACA}}}},
		{matrices, 1, []spoil{
			{"first of A", 0, []string{CheckMACA, CheckProduct}},
			{"last of A", mk - 1, []string{CheckMACA, CheckProduct}},
			{"first of B", mk, []string{CheckMACB, CheckProduct}},
			{"last of B", mk + kn - 1, []string{CheckMACB, CheckProduct}},
			{"first of C", mk + kn, []string{CheckMACC, CheckProduct}},
			{"last of C", v - 1, []string{CheckMACC, CheckProduct}},
			{"first MAC of A", v, []string{CheckMACA}},
			{"last MAC of B", v + mk + kn - 1, []string{CheckMACB}},
			{"last MAC of C", 2*v - 1, []string{CheckMACC}},
		}},
		{convolutions, 2, []spoil{
			{"first of X", 0, []string{CheckMACA, CheckProduct}}, {"last of X", nx - 1, []string{CheckMACA, CheckProduct}},
			{"first of W", nx, []string{CheckMACB, CheckProduct}}, {"last of W", nx + nw - 1, []string{CheckMACB, CheckProduct}},
			{"first of Y", nx + nw, []string{CheckMACC, CheckProduct}}, {"last of Y", nx + nw + ny - 1, []string{CheckMACC, CheckProduct}},
			{"first MAC of X", nx + nw + ny, []string{CheckMACA}}, {"last MAC of W", 2*(nx+nw) + ny - 1, []string{CheckMACB}},
			{"last MAC of Y", 2*(nx+nw+ny) - 1, []string{CheckMACC}},
		}},
	} {
		for _, s := range f.spoils {
			for party := range 2 {
				e := f.make(t)
				if s.at >= 2*e.values { // a party's plaintext value
					e = e.ownedBy(party)
				}
				bump(e.at(party, f.tuple, s.at))
				r, err := Dirs(context.Background(), e.write(t), Options{})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, fail := range r.Failures {
					if fail.Tuple != int64(f.tuple) || fail.Wrong < 1 || r.Failed[fail.Check] != 1 {
						t.Errorf("%s: %+v, counts %v", s.name, fail, r.Failed)
					}
					got = append(got, fail.Check)
				}
				slices.Sort(got)
				if !slices.Equal(got, s.want) || r.OK() || r.Verified != r.Tuples-1 {
					t.Errorf("%s of %s: failed %v, want %v; %d verified", s.name, r.Kind, got, s.want, r.Verified)
				}
			}
		}
	}
}

// A value other than 0 and 1 fails as a bit, whatever its MAC. Bits may repeat; other values may
// not.
func TestBitsAndRepeats(t *testing.T) {
	for value, want := range map[int64][]string{0: {CheckMACA}, 1: {CheckMACA}, 2: {CheckMACA, CheckProduct}, -1: {CheckMACA, CheckProduct}} {
		e := others(tuplefile.Bit)(t)
		p, _ := new(big.Int).SetString(e.manifests[0].Modulus, 10)
		rest := new(big.Int).Sub(big.NewInt(value), element(e.at(1, 7, 0)))
		wrong := new(big.Int).Mod(rest, p).FillBytes(make([]byte, e.size))
		slices.Reverse(wrong)
		if copy(e.at(0, 7, 0), wrong); e.at(0, 7, 1)[0]&1 == 0 { // and its MAC is wrong
			e.at(0, 7, 1)[0]++
		} else {
			e.at(0, 7, 1)[0]--
		}
		r, err := Dirs(context.Background(), e.write(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range r.Failures {
			got = append(got, f.Check)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%d as a bit: failed %v, want %v", value, got, want)
		}
	}
	for _, kind := range []string{tuplefile.Square, tuplefile.Random, tuplefile.Bit, tuplefile.Inverse, tuplefile.Input} {
		e := others(kind)(t)
		for party := range 2 {
			for k := range 2*e.values + e.manifests[party].Clear() {
				copy(e.at(party, 9, k), e.at(party, 3, k))
			}
		}
		r, err := Dirs(context.Background(), e.write(t), Options{})
		if err != nil || r.Failed[CheckRepeated] != 1 || len(r.Failed) != 1 {
			t.Errorf("%s: %v, %v", kind, r.Failed, err)
		}
	}
}

// Many equal bits are rejected as not random.
func TestConstantBitsAreFound(t *testing.T) {
	for _, tuples := range []int{manyBits - 1, manyBits} {
		e := newExport(t, tuplefile.Bit, "S14-32", "p128", 2, tuples, tuplefile.Dims{M: 1, K: 1, N: 1})
		p, _ := new(big.Int).SetString(e.manifests[0].Modulus, 10)
		for i := range tuples { // the second party's shares are minus the first one's
			for k := range 2 {
				b := new(big.Int).Sub(p, element(e.at(0, i, k))).FillBytes(make([]byte, e.size))
				slices.Reverse(b)
				copy(e.at(1, i, k), b)
			}
		}
		r, err := Dirs(context.Background(), e.write(t), Options{})
		if want := tuples / manyBits; err != nil || r.Failed[CheckDegenerate] != int64(want) || len(r.Failed) != want {
			t.Errorf("%d zeros: %v, %v", tuples, r.Failed, err)
		}
	}
}

// element returns the integer of an encoded element.
func element(b []byte) *big.Int {
	b = slices.Clone(b)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b)
}

func TestWrongKeyShareFailsEveryMAC(t *testing.T) {
	e := scalars(t)
	x, _ := new(big.Int).SetString(e.manifests[2].MACKeyShare, 10)
	e.manifests[2].MACKeyShare = x.Add(x, big.NewInt(1)).String()
	r, err := Dirs(context.Background(), e.write(t), Options{MaxFailures: 5})
	if err != nil {
		t.Fatal(err)
	}
	if r.OK() || r.Verified != 0 || r.Failed[CheckMACB] != r.Tuples || r.Failed[CheckProduct] != 0 || len(r.Failures) != 5 {
		t.Errorf("%+v", r)
	}
}

func TestZeroAndRepeatedFactorsAreFound(t *testing.T) {
	e := scalars(t)
	for party := range e.data {
		copy(e.at(party, 1000, 0)[:6*e.size], e.at(party, 4, 0)[:6*e.size]) // a whole triple again
		for _, element := range []int{0, 2, 3, 5} {                         // a = 0, and c and the MACs to match
			clear(e.at(party, 9, element))
		}
	}
	r, err := Dirs(context.Background(), e.write(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Failure{{9, CheckDegenerate, 1}, {1000, CheckRepeated, 1}, {1000, CheckRepeated, 1}}
	if !slices.Equal(r.Failures, want) || r.Verified != r.Tuples-2 {
		t.Errorf("%+v", r)
	}
}

// A wrong C is detected although its MACs are correct and only the product is wrong. Errors that
// add up to zero in their row do not pass either.
func TestWrongProductWithRightMACs(t *testing.T) {
	for _, c := range []struct {
		make   func(testing.TB) *export
		errors []int64 // of the last entries of C
	}{{scalars, []int64{5}}, {matrices, []int64{5}}, {matrices, []int64{5, -5}}, {matrices, []int64{1, 0, 2, -3}}} {
		e := c.make(t)
		p, _ := new(big.Int).SetString(e.manifests[0].Modulus, 10)
		alpha := new(big.Int)
		for _, m := range e.manifests {
			x, _ := new(big.Int).SetString(m.MACKeyShare, 10)
			alpha.Add(alpha, x)
		}
		add := func(b []byte, x *big.Int) {
			slices.Reverse(b)
			y := new(big.Int).SetBytes(b)
			y.Add(y, x).Mod(y, p).FillBytes(b)
			slices.Reverse(b)
		}
		for i, x := range c.errors {
			at := e.values - len(c.errors) + i
			add(e.at(0, 2, at), big.NewInt(x))
			add(e.at(1, 2, e.values+at), new(big.Int).Mul(alpha, big.NewInt(x)))
		}
		r, err := Dirs(context.Background(), e.write(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := []Failure{{2, CheckProduct, 1}}; !slices.Equal(r.Failures, want) {
			t.Errorf("%s, errors %v: %+v", r.Kind, c.errors, r.Failures)
		}
	}
}

func TestUnusableExportsAreRefused(t *testing.T) {
	modulus := func(e *export) *big.Int {
		p, _ := new(big.Int).SetString(e.manifests[0].Modulus, 10)
		return p
	}
	all := func(e *export, f func(*tuplefile.Manifest)) {
		for i := range e.manifests {
			f(&e.manifests[i])
		}
	}
	for name, c := range map[string]struct {
		before func(*export)           // changes the batch before it is written
		after  func([]string)          // changes the written files
		dirs   func([]string) []string // changes the checker's arguments
		want   error
	}{
		"party missing":        {dirs: func(d []string) []string { return d[:2] }, want: ErrRoster},
		"party twice":          {dirs: func(d []string) []string { return append(d, d[0]) }, want: ErrRoster},
		"one instead of other": {dirs: func(d []string) []string { return []string{d[0], d[1], d[1]} }, want: ErrRoster},
		"other batch":          {before: func(e *export) { e.manifests[1].Batch = "b-8" }, want: ErrInconsistent},
		"other epoch":          {before: func(e *export) { e.manifests[1].Epoch++ }, want: ErrInconsistent},
		"other field":          {before: func(e *export) { e.manifests[1].Field = "p256" }, want: ErrInconsistent},
		"other set":            {before: func(e *export) { e.manifests[1].Params = "S14-64" }, want: ErrInconsistent},
		"other claim":          {before: func(e *export) { e.manifests[1].KeygenSecurity = "active" }, want: ErrInconsistent},
		"other roster":         {before: func(e *export) { e.manifests[1].Parties = 4 }, want: ErrInconsistent},
		"wrong modulus": {before: func(e *export) {
			wrong := new(big.Int).Add(modulus(e), big.NewInt(2)).String()
			all(e, func(m *tuplefile.Manifest) { m.Modulus = wrong })
		}, want: ErrModulus},
		"another set's modulus": {before: func(e *export) {
			all(e, func(m *tuplefile.Manifest) { m.Params = "S14-64" })
		}, want: ErrModulus},
		"unknown set": {before: func(e *export) { all(e, func(m *tuplefile.Manifest) { m.Params = "S9" }) }, want: ErrModulus},
		"unknown field": {before: func(e *export) {
			all(e, func(m *tuplefile.Manifest) { m.Field = "p127" })
		}, want: ErrModulus},
		"key share too large": {before: func(e *export) { e.manifests[0].MACKeyShare = modulus(e).String() }, want: ErrKey},
		"zero key":            {before: func(e *export) { all(e, func(m *tuplefile.Manifest) { m.MACKeyShare = "0" }) }, want: ErrKey},
		"element not canonical": {before: func(e *export) {
			b := modulus(e).FillBytes(e.at(1, 700, 4))
			slices.Reverse(b)
		}, want: ErrNotCanonical},
		"value in clear not canonical": {before: func(e *export) {
			*e = *others(tuplefile.Input)(t).ownedBy(1)
			b := modulus(e).FillBytes(e.at(1, 7, 2))
			slices.Reverse(b)
		}, want: ErrNotCanonical},
		"one tuple less": {before: func(e *export) { e.data[0] = e.data[0][:len(e.data[0])-6*e.size] }, want: tuplefile.ErrManifest},
		"one byte more":  {before: func(e *export) { e.data[0] = append(e.data[0], 0) }, want: tuplefile.ErrManifest},
		"truncated": {after: func(d []string) {
			resize(t, filepath.Join(d[1], tuplefile.DataName), -1)
		}, want: tuplefile.ErrTruncated},
		"trailing": {after: func(d []string) {
			resize(t, filepath.Join(d[1], tuplefile.DataName), 1)
		}, want: tuplefile.ErrTrailing},
		"swapped data files": {after: func(d []string) {
			swap(t, filepath.Join(d[0], tuplefile.DataName), filepath.Join(d[1], tuplefile.DataName))
		}, want: tuplefile.ErrDigest},
		"bit flipped": {after: func(d []string) {
			file := filepath.Join(d[0], tuplefile.DataName)
			data, _ := os.ReadFile(file)
			data[3] ^= 1
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}, want: tuplefile.ErrDigest},
		"no manifest": {dirs: func([]string) []string { return []string{t.TempDir()} }, want: tuplefile.ErrManifest},
		"no such dir": {dirs: func([]string) []string { return []string{"nowhere"} }, want: os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			e := scalars(t)
			if c.before != nil {
				c.before(e)
			}
			dirs := e.write(t)
			if c.after != nil {
				c.after(dirs)
			}
			if c.dirs != nil {
				dirs = c.dirs(dirs)
			}
			r, err := Dirs(context.Background(), dirs, Options{})
			if !errors.Is(err, c.want) || r != nil {
				t.Errorf("got %v, %v; want %v", r, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), e.manifests[0].MACKeyShare) && len(e.manifests[0].MACKeyShare) > 1 {
				t.Errorf("the error quotes a key share: %v", err)
			}
			if c.want == ErrNotCanonical {
				var where *ElementError
				if !errors.As(err, &where) || *where != (ElementError{Party: 1, Tuple: 700, Element: 4}) && *where != (ElementError{Party: 1, Tuple: 7, Element: 2}) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

func TestEmptyBatchIsNotVerified(t *testing.T) {
	e := newExport(t, tuplefile.Scalar, "S14-32", "p64", 2, 0, tuplefile.Dims{M: 1, K: 1, N: 1})
	r, err := Dirs(context.Background(), e.write(t), Options{})
	if err != nil || r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := Dirs(ctx, scalars(t).write(t), Options{}); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}

func TestParentDirectoryStandsForItsParties(t *testing.T) {
	dirs := scalars(t).write(t)
	r, err := Dirs(context.Background(), []string{filepath.Dir(dirs[0])}, Options{})
	if err != nil || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
}

func resize(t *testing.T, file string, by int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, bytes.Repeat([]byte{0}, max(by, 0))...)
	if err := os.WriteFile(file, data[:len(data)+min(by, 0)], 0o600); err != nil {
		t.Fatal(err)
	}
}

func swap(t *testing.T, a, b string) {
	x, errX := os.ReadFile(a)
	y, errY := os.ReadFile(b)
	if err := errors.Join(errX, errY, os.WriteFile(a, y, 0o600), os.WriteFile(b, x, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Compares the random check of matrices with plain multiplication, over every wrong entry of a
// small product.
func TestFreivaldsFindsEveryEntry(t *testing.T) {
	e := matrices(t)
	p, _ := new(big.Int).SetString(e.manifests[0].Modulus, 10)
	c := newChecker(e.manifests[0], p, big.NewInt(1))
	values := make([]big.Int, c.values)
	parts := c.split(values)
	a, b, ab := parts[0], parts[1], parts[2]
	for i := range a {
		a[i].SetInt64(int64(i * i))
	}
	for i := range b {
		b[i].SetInt64(int64(3*i + 1))
	}
	d := c.manifest.Dims
	for j := range d.N {
		column := make([]big.Int, d.K)
		for k := range d.K {
			column[k].Set(&b[k*d.N+j])
		}
		for i, x := range c.times(a, column, d.M, d.K) {
			ab[i*d.N+j].Set(&x)
		}
	}
	if wrong := c.wrongRows(values); wrong != 0 {
		t.Fatalf("%d rows of a correct product are reported as wrong", wrong)
	}
	one := big.NewInt(1)
	for i := range ab {
		ab[i].Add(&ab[i], one)
		if wrong := c.wrongRows(values); wrong != 1 {
			t.Errorf("entry %d: %d rows", i, wrong)
		}
		ab[i].Sub(&ab[i], one)
	}
}

func TestEveryModulusIsPrimeAndFitsItsName(t *testing.T) {
	sets := 0
	for set, logB := range baseBits {
		for field := range formulas[logB] {
			p, err := Modulus(set, field)
			if err != nil {
				t.Fatal(err)
			}
			if testing.Short() && p.BitLen() > 1100 {
				continue
			}
			var bits int
			fmt.Sscanf(field, "p%d", &bits)
			if got := p.BitLen(); got != bits && got != bits-1 || !p.ProbablyPrime(2) {
				t.Errorf("%s of %s: %d bits, or not prime", field, set, p.BitLen())
			}
			sets++
		}
	}
	if sets == 0 {
		t.Error("no set was checked")
	}
}

func BenchmarkScalar12288(b *testing.B) {
	bench(b, newExport(b, tuplefile.Scalar, "S14-32", "p128", 3, 12288, tuplefile.Dims{M: 1, K: 1, N: 1}))
}

func BenchmarkMatrix128(b *testing.B) {
	bench(b, newExport(b, tuplefile.Matrix, "S14-32", "p128", 3, 2, tuplefile.Dims{M: 128, K: 128, N: 128}))
}

func bench(b *testing.B, e *export) {
	dirs := e.write(b)
	for b.Loop() {
		if r, err := Dirs(context.Background(), dirs, Options{}); err != nil || !r.OK() {
			b.Fatal(r, err)
		}
	}
}
