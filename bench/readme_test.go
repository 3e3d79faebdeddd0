package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var updateReadme = flag.Bool("update", false, "write the pages of docs/measurements and the table of figures in README.md from the JSON files")

// readmeRow selects a figure of docs/measurements for the table in README.md.
type readmeRow struct {
	what string
	name string // row of benchmarks.json, which has the ratio to Lattigo
	by   string // row of benchmarks.json with the rival's figure; empty: the ratio

	section, row, column string // cell of benchmarks-papers.json, instead of name
	paper                string
}

// readmeRows lists the candidates. A figure of a paper is shown if the page has its table.
var readmeRows = []readmeRow{
	{what: "product of two ciphertexts, S14-64", name: "mul_s14_64"},
	{what: "encryption, S14-64", name: "encrypt_s14_64"},
	{what: "transform (NTT) of degree 2^14, 50 bits", name: "ntt_n14_50bit"},
	{what: "NAND gate under the keys of 4 parties", name: "multikey_nand_k4_paper", by: "multikey_nand_k4_paper_tfhe_go"},
	{what: "NAND gate under the keys of 16 parties", name: "multikey_nand_k16_paper", by: "multikey_nand_k16_paper_tfhe_go"},
	{what: "keys for 128 x 128 matrices", section: "MatriGear, table 3", row: "d = 128, Params I", column: "keys", paper: "MatriGear"},
	{what: "128 x 128 matrix triple, evaluation only", section: "MatriGear, table 7", row: "d = 128, log p = 128", column: "a triple", paper: "MatriGear"},
	{what: "rotation keys of a party, set II", section: "Multi-key TFHE, table 3: keys", row: "set II", column: "rotation", paper: "Kwak et al."},
	{what: "decryption by 2 of 3 parties, amortised", section: "Ajax, table 1", row: "t = 1, processes", column: "online", paper: "Ajax"},
	{what: "4000 x 2000 matrix times a shared vector", section: "Crypt-CNN, figure 2(a)", row: "4000 x 2000, double packing", column: "time", paper: "Crypt-CNN"},
	{what: "encrypted 32 x 32 product of bits", section: "Packed products, table 1", row: "second method, m = 32", column: "total", paper: "Duong et al."},
}

// figures reads the JSON file with the figures of a page.
func figures[R any](t *testing.T, name string) (sections []Section[R]) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "docs", "measurements", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&sections); err != nil {
		t.Fatal(err)
	}
	return sections
}

// figureTable returns the table for README.md.
func figureTable(benchmarks []Section[Record], papers []Section[Cell]) (table string, rows int, err error) {
	measured := map[string]Record{}
	for _, s := range benchmarks {
		for _, r := range s.Rows {
			measured[r.Name] = r
		}
	}
	var b strings.Builder
	b.WriteString("| operation | Lodge | rival |\n|---|---:|---:|\n")
	for _, r := range readmeRows {
		var ours, theirs string
		switch own, rival := measured[r.name], measured[r.by]; {
		case r.section != "":
			c, there := paperCell(papers, r)
			if !there {
				continue
			}
			if c.Paper == nil || c.Value == nil {
				return "", 0, fmt.Errorf("benchmarks-papers.json has no figures for %s, %s, %s", r.section, r.row, r.column)
			}
			ours, theirs = c.figure(c.Value), c.figure(c.Paper)+" ("+r.paper+")"
		case own.Name == "" || r.by != "" && rival.Name == "" || r.by == "" && own.LattigoRatio == nil:
			return "", 0, fmt.Errorf("benchmarks.json has no row %s, or no rival for it", r.name)
		case r.by != "":
			ours, theirs = people(own.Value, own.Unit), people(rival.Value, rival.Unit)+" (tfhe-go)"
		default:
			ours, theirs = people(own.Value, own.Unit), fmt.Sprintf("%.2f times as long (Lattigo)", *own.LattigoRatio)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.what, ours, theirs)
		rows++
	}
	return b.String(), rows, nil
}

// paperCell returns the cell of a published table, and whether the file has the table.
func paperCell(papers []Section[Cell], r readmeRow) (cell Cell, there bool) {
	for _, s := range papers {
		if !strings.HasPrefix(s.Heading, r.section) {
			continue
		}
		for _, c := range s.Rows {
			if c.Row == r.row && c.Column == r.column {
				return c, true
			}
			there = there || c.Column == r.column
		}
	}
	return Cell{}, there
}

// TestReadmeFigures checks that the table of figures in README.md is the one that docs/measurements
// gives. With -update it writes the table.
func TestReadmeFigures(t *testing.T) {
	benchmarks, papers := figures[Record](t, "benchmarks"), figures[Cell](t, "benchmarks-papers")
	want, rows, err := figureTable(benchmarks, papers)
	if err != nil {
		t.Fatal(err)
	}
	if rows < 6 {
		t.Errorf("the table has only %d rows", rows)
	}
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	place := regexp.MustCompile(`(?s)(<!-- figures: .*? -->\n)(.*?)(<!-- end of figures -->)`).FindStringSubmatchIndex(readme)
	if place == nil {
		t.Fatal("README.md has no place for figures")
	}
	if *updateReadme {
		readme = readme[:place[3]] + "\n" + want + "\n" + readme[place[6]:]
		if err := os.WriteFile(filepath.Join("..", "README.md"), []byte(readme), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := readme[place[4]:place[5]]; strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("README.md has\n%s\nthe measurements give\n%s\n(run: go test ./bench -run ReadmeFigures -update)", got, want)
	}
	for _, s := range benchmarks {
		for i := range s.Rows {
			if s.Rows[i].Name == "mul_s14_64" {
				s.Rows[i].Name = "mul"
			}
		}
	}
	if _, _, err := figureTable(benchmarks, papers); err == nil {
		t.Error("a missing row of the benchmarks is not noticed")
	}
}

// TestPagesFollowTheirFigures checks that each page of docs/measurements is what lodge-bench writes
// from the JSON file next to it. With -update it writes the pages.
func TestPagesFollowTheirFigures(t *testing.T) {
	for name, write := range map[string]func(page, data io.Writer, old []byte) error{
		"benchmarks": func(page, data io.Writer, old []byte) error {
			return WritePage(page, data, old, Machine{}, "", nil)
		},
		"benchmarks-papers": func(page, data io.Writer, old []byte) error {
			return WriteComparisonPage(page, data, old, Machine{}, "", nil)
		},
	} {
		file := filepath.Join("..", "docs", "measurements", name)
		old, err := os.ReadFile(file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var page, data bytes.Buffer
		if err := write(&page, &data, old); err != nil {
			t.Fatal(err)
		}
		if *updateReadme {
			if err := errors.Join(os.WriteFile(file+".md", page.Bytes(), 0o644), os.WriteFile(file+".json", data.Bytes(), 0o644)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile(file + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, page.Bytes()) || !bytes.Equal(old, data.Bytes()) {
			t.Errorf("%s.md is not what its figures give (run: go test ./bench -run PagesFollow -update)", file)
		}
	}
}
