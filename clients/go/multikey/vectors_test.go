package multikey

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
)

var update = flag.Bool("update", false, "update the vectors in the Python client's testdata")

// vectors are the files that other clients must read identically. The tests of the Python client
// read them.
type vectors struct {
	File     string            `json:"file"` // of ciphertexts
	CRS      string            `json:"crs"`
	Digest   string            `json:"digest"` // of the ciphertexts
	Netlists []netlistVectors  `json:"netlists"`
	Refused  map[string]string `json:"refused"` // texts that are no netlists
}

type netlistVectors struct {
	Text    string `json:"text"`
	Digest  string `json:"digest"`
	Inputs  []int  `json:"inputs"`
	Outputs []int  `json:"outputs"`
	Gates   int    `json:"gates"`
}

// everyGate returns a netlist with each gate once, in the forms that other tools write.
func everyGate() string {
	lines := []string{"", "2 2 1\t", "1 3"}
	wire := 3
	add := func(line string, results int) {
		lines, wire = append(lines, line), wire+results
	}
	for _, g := range multikey.Gates() {
		if g.Operands() == 3 {
			add("3 1 0 1 2 WIRE "+g.String(), 1)
		} else {
			add("2 1 0 1 WIRE "+g.String(), 1)
		}
	}
	add("1 1 0 WIRE INV", 1)
	add("1 1 1 WIRE EQW", 1)
	add("1 1 1 WIRE EQ", 1)
	add("4 2 0 1 1 2 WIRE NEXT MAND", 2)
	w := 3
	for i, line := range lines[3:] {
		line = strings.Replace(line, "NEXT", itoa(w+1), 1)
		lines[3+i] = strings.Replace(line, "WIRE", itoa(w), 1)
		w++
	}
	lines[0] = itoa(len(lines)-3) + " " + itoa(wire)
	return strings.Join(lines[:3], "\r\n") + "\r\n\n" + strings.Join(lines[3:], "\n")
}

func itoa(x int) string {
	b, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestVectors compares the vectors of the Python client's tests with this client's results.
func TestVectors(t *testing.T) {
	s := scheme(t, multikey.StandardSeed(), "insecure-M8-32")
	list, crs := groups(s), s.CRS()
	var b bytes.Buffer
	if err := Write(&b, s, list); err != nil {
		t.Fatal(err)
	}
	digest := Digest(s, list)
	v := vectors{File: hex.EncodeToString(b.Bytes()), CRS: hex.EncodeToString(crs[:]), Digest: hex.EncodeToString(digest[:])}
	texts := []string{everyGate()}
	for _, name := range []string{"adder", "comparator"} {
		n, err := circuit.MakeExample(name, 3)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(n.Append(nil)))
	}
	for _, text := range texts {
		n, err := circuit.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		digest := n.Digest()
		v.Netlists = append(v.Netlists, netlistVectors{text, hex.EncodeToString(digest[:]), n.Inputs, n.Outputs, len(n.Gates)})
	}
	const good = "1 3\n1 2\n1 1\n2 1 0 1 2 AND\n"
	v.Refused = map[string]string{
		"nothing": "", "another gate": strings.Replace(good, "AND", "NADA", 1), "no outputs": "1 3\n1 2\n",
		"a letter": strings.Replace(good, "1 2\n", "1 x\n", 1), "a leading zero": strings.Replace(good, "1 2\n", "1 02\n", 1),
		"a sign": strings.Replace(good, "1 2\n", "1 +2\n", 1), "a long number": strings.Replace(good, "1 2\n", "1 0000000002\n", 1),
		"too few wires": strings.Replace(good, "1 3", "1 2", 1), "a wire that is not set": strings.Replace(good, "1 3", "1 4", 1),
		"too many wires": strings.Replace(good, "1 3", "1 1048577", 1), "no wires": strings.Replace(good, "1 3", "0 0", 1),
		"no bits": strings.Replace(good, "1 2\n", "2 2 0\n", 1), "more outputs": strings.Replace(good, "1 1\n", "1 4\n", 1),
		"fields that are missing": strings.Replace(good, "1 2\n", "2 2\n", 1), "a field too many": strings.Replace(good, "0 1 2", "0 1 2 2", 1),
		"a gate too few": strings.Replace(good, "1 3", "2 3", 1), "a gate too many": good + "2 1 0 1 2 AND\n", "text after": good + "x",
		"set twice": strings.Replace(good, "0 1 2", "0 1 1", 1), "its own wire": strings.Replace(good, "0 1 2", "0 2 2", 1),
		"another shape": strings.Replace(good, "2 1 0 1 2", "1 1 0 2", 1), "no bit": strings.Replace(good, "2 1 0 1 2 AND", "1 1 2 2 EQ", 1),
		"an empty MAND": strings.Replace(good, "2 1 0 1 2 AND", "0 0 MAND", 1), "no inputs": strings.Replace(good, "1 2\n", "0\n", 1),
	}
	for name, text := range v.Refused {
		if _, err := circuit.Parse([]byte(text)); err == nil {
			t.Errorf("%s is a netlist", name)
		}
	}
	want, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "python", "tests", "testdata", "multikey_files.json")
	if *update {
		if err := os.WriteFile(path, append(want, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, append(want, '\n')) {
		t.Fatalf("%s is another (%v); if this is intended, run this test with -update, and the Python client's tests", path, err)
	}
}
