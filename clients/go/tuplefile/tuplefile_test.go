package tuplefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func example() Manifest {
	return Manifest{
		FormatVersion: 1, Kind: Matrix, Params: "S14-32", Field: "p64", Modulus: "18446744073709551557", Parties: 3, Party: 1,
		Epoch: 2, Batch: "b", Tuples: 2, Dims: Dims{1, 2, 1}, MACKeyShare: "7234987", KeygenSecurity: "passive",
	}
}

// One record of example: 2 + 2 + 1 values and the same number of MACs of 8 bytes.
const exampleRecord = 80

func TestWriteThenRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "party-1")
	data := make([]byte, 2*exampleRecord)
	for i := range data {
		data[i] = byte(i)
	}
	w, err := Create(dir, example(), 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range [][]byte{data[:1], data[1:100], data[100:]} {
		if _, err := w.Write(cut); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ManifestName)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the manifest exists before Close")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ManifestName, DataName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info, err)
		}
	}
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := example()
	want.Files = m.Files
	if !reflect.DeepEqual(m, want) || m.Files[0].Bytes != int64(len(data)) {
		t.Errorf("read %#v, files %v", m, m.Files)
	}
	r, err := Open(dir, m, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make([]byte, len(data))
	for i := 0; i < len(got); i += 8 {
		if _, err := r.Read(got[i : i+8]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, data) {
		t.Error("the data that was read differs")
	}
	if err := r.Finish(); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(got[:1]); !errors.Is(err, ErrTruncated) {
		t.Errorf("reading on gives %v", err)
	}
	if _, err := Create(dir, example(), 8); !errors.Is(err, os.ErrExist) {
		t.Errorf("writing over an export gives %v", err)
	}
}

func TestWriterHoldsToTheManifest(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, example(), 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 2*exampleRecord+1)); !errors.Is(err, ErrCount) {
		t.Errorf("too much data gives %v", err)
	}
	if _, err := w.Write(make([]byte, 2*exampleRecord-1)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, ErrCount) {
		t.Errorf("too little data gives %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestOpenChecksLengths(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, example(), 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 2*exampleRecord)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, m, 16); !errors.Is(err, ErrManifest) {
		t.Errorf("other element size: %v", err)
	}
	data := filepath.Join(dir, DataName)
	for size, want := range map[int64]error{2*exampleRecord - 1: ErrTruncated, 2*exampleRecord + 1: ErrTrailing} {
		if err := os.Truncate(data, size); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, m, 8); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
	}
	if err := os.Truncate(data, 2*exampleRecord); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir, m, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Finish(); !errors.Is(err, ErrTrailing) {
		t.Errorf("finishing early: %v", err)
	}
	r.Manifest.Files[0].SHA256 = strings.Repeat("0", 64)
	if _, err := io.ReadFull(r, make([]byte, 2*exampleRecord)); err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(); !errors.Is(err, ErrDigest) {
		t.Errorf("other digest: %v", err)
	}
}

// The record of the party that knows input masks has one more value.
func TestRecordOfTheOwnerIsLonger(t *testing.T) {
	m := example()
	m.Kind, m.Dims, m.InputParty = Input, Dims{1, 1, 1}, 2
	for party, want := range map[int]int64{0: 16, 1: 16, 2: 24} {
		if m.Party = party; m.RecordBytes(8) != want || m.check(false) != nil {
			t.Errorf("party %d: %d bytes, %v", party, m.RecordBytes(8), m.check(false))
		}
	}
}

func TestManifestIsStrict(t *testing.T) {
	good := example()
	good.Files = []File{{Name: DataName, SHA256: strings.Repeat("ab", 32), Bytes: 2 * exampleRecord}}
	text := func(change func(*Manifest)) string {
		m := good
		m.Files = append([]File(nil), good.Files...)
		change(&m)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	same := text(func(*Manifest) {})
	if _, err := ParseManifest([]byte(same)); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"empty":             "",
		"not an object":     "7",
		"unknown key":       strings.Replace(same, `"kind"`, `"x":1,"kind"`, 1),
		"data after it":     same + "{}",
		"version":           text(func(m *Manifest) { m.FormatVersion = 2 }),
		"kind":              text(func(m *Manifest) { m.Kind = "square" }),
		"owner of a matrix": text(func(m *Manifest) { m.InputParty = 1 }),
		"owner of none":     text(func(m *Manifest) { m.Kind, m.Dims, m.InputParty = Input, Dims{1, 1, 1}, 3 }),
		"negative owner":    text(func(m *Manifest) { m.Kind, m.Dims, m.InputParty = Input, Dims{1, 1, 1}, -1 }),
		"no product":        text(func(m *Manifest) { m.Kind, m.Dims, m.NoSacrifice = Random, Dims{1, 1, 1}, true }),
		"no parties":        text(func(m *Manifest) { m.Parties = 0 }),
		"many parties":      text(func(m *Manifest) { m.Parties = 1 << 20 }),
		"party":             text(func(m *Manifest) { m.Party = 3 }),
		"negative party":    text(func(m *Manifest) { m.Party = -1 }),
		"negative tuples":   text(func(m *Manifest) { m.Tuples = -1 }),
		"many tuples":       text(func(m *Manifest) { m.Tuples = 1 << 50 }),
		"a matrix with the shape of a convolution": text(func(m *Manifest) {
			m.Convolution = &Convolution{Channels: 1, Height: 3, Width: 3, Outputs: 1, KernelHeight: 2, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1}
		}),
		"a convolution without its shape":       text(func(m *Manifest) { m.Kind, m.Dims = ConvolutionKind, Dims{1, 1, 1} }),
		"a convolution with a shape of nothing": text(func(m *Manifest) { m.Kind, m.Dims, m.Convolution = ConvolutionKind, Dims{1, 1, 1}, &Convolution{} }),
		"a convolution with dims": text(func(m *Manifest) {
			m.Kind, m.Convolution = ConvolutionKind, &Convolution{Channels: 1, Height: 3, Width: 3, Outputs: 1, KernelHeight: 2, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1}
		}),
		"zero dim":         text(func(m *Manifest) { m.Dims.K = 0 }),
		"huge dims":        text(func(m *Manifest) { m.Dims = Dims{1 << 16, 1 << 16, 1 << 16} }),
		"scalar with dims": text(func(m *Manifest) { m.Kind = Scalar }),
		"modulus":          text(func(m *Manifest) { m.Modulus = "0x11" }),
		"modulus with 0":   text(func(m *Manifest) { m.Modulus = "011" }),
		"negative key":     text(func(m *Manifest) { m.MACKeyShare = "-7234987" }),
		"no file":          text(func(m *Manifest) { m.Files = nil }),
		"two files":        text(func(m *Manifest) { m.Files = append(m.Files, m.Files[0]) }),
		"file elsewhere":   text(func(m *Manifest) { m.Files[0].Name = "../tuples.bin" }),
		"digest":           text(func(m *Manifest) { m.Files[0].SHA256 = "ab" }),
		"negative bytes":   text(func(m *Manifest) { m.Files[0].Bytes = -1 }),
		"key of a type":    strings.Replace(same, `"7234987"`, `7234987`, 1),
	} {
		_, err := ParseManifest([]byte(bad))
		if !errors.Is(err, ErrManifest) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "7234987") {
			t.Errorf("%s: the error quotes the key share: %v", name, err)
		}
	}
	big := append([]byte(same), bytes.Repeat([]byte{' '}, maxManifestBytes)...)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ManifestName), big, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadManifest(dir); !errors.Is(err, ErrManifest) {
		t.Errorf("oversized: %v", err)
	}
}

func TestManifestDoesNotPrintItsSecret(t *testing.T) {
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(format, example()); strings.Contains(s, "7234987") || !strings.Contains(s, "party 1 of 3") {
			t.Errorf("%s gives %s", format, s)
		}
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	for _, sub := range []string{"b/party-1", "b/party-0", "b/other", "empty"} {
		if err := os.MkdirAll(filepath.Join(root, sub), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(sub, "party") {
			if err := os.WriteFile(filepath.Join(root, sub, ManifestName), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := filepath.Join(root, "b")
	want := []string{filepath.Join(b, "party-0"), filepath.Join(b, "party-1")}
	if got, err := Find(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Find(want...); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Find(filepath.Join(root, "empty")); !errors.Is(err, ErrManifest) {
		t.Error(err)
	}
	if _, err := Find(filepath.Join(root, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzParseManifest(f *testing.F) {
	m := example()
	m.Files = []File{{Name: DataName, SHA256: strings.Repeat("ab", 32), Bytes: 2 * exampleRecord}}
	seed, err := json.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"format_version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			if !errors.Is(err, ErrManifest) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		same, err := ParseManifest(again)
		if err != nil || !reflect.DeepEqual(m, same) {
			t.Errorf("%v does not survive encoding: %v", m, err)
		}
	})
}
