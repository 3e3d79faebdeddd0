package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var updateReadme = flag.Bool("update", false, "write the table of figures in README.md from docs/measurements")

// readmeRow selects a figure of docs/measurements for the table in README.md.
type readmeRow struct {
	what string
	name string // row of benchmarks.md, whose column Lattigo has the ratio
	by   string // row of benchmarks.md with the rival's figure; empty: the column Lattigo

	section, row, column string // cell of benchmarks-papers.md, instead of name
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

// markdownRows returns the cells of all table rows of a page by the heading of their section.
func markdownRows(page string) map[string][][]string {
	rows, heading := map[string][][]string{}, ""
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if h, ok := strings.CutPrefix(line, "## "); ok {
			heading = h
		}
		if strings.HasPrefix(line, "| ") && strings.HasSuffix(line, " |") {
			var cells []string
			for _, c := range strings.Split(strings.Trim(line, "|"), " | ") {
				cells = append(cells, strings.TrimSpace(c))
			}
			rows[heading] = append(rows[heading], cells)
		}
	}
	return rows
}

// figureTable returns the table for README.md.
func figureTable(benchmarks, papers string) (table string, rows int, err error) {
	measured := map[string][]string{}
	for _, list := range markdownRows(benchmarks) {
		for _, cells := range list {
			if len(cells) > 2 {
				measured[strings.Trim(cells[1], "`")] = cells
			}
		}
	}
	published := markdownRows(papers)
	var b strings.Builder
	b.WriteString("| operation | Lodge | rival |\n|---|---:|---:|\n")
	for _, r := range readmeRows {
		var ours, theirs string
		switch cells := measured[r.name]; {
		case r.section != "":
			found, there := paperCells(published, r)
			if !there {
				continue
			}
			if len(found) < 4 || found[2] == "-" || found[3] == "-" {
				return "", 0, fmt.Errorf("benchmarks-papers.md has no figures for %s, %s, %s", r.section, r.row, r.column)
			}
			ours, theirs = found[3], found[2]+" ("+r.paper+")"
		case len(cells) < 4:
			return "", 0, fmt.Errorf("benchmarks.md has no row %s", r.name)
		case r.by != "":
			rival := measured[r.by]
			if len(rival) < 3 {
				return "", 0, fmt.Errorf("benchmarks.md has no row %s", r.by)
			}
			ours, theirs = cells[2], rival[2]+" (tfhe-go)"
		default:
			ours, theirs = cells[2], strings.TrimSuffix(cells[3], "x")+" times as long (Lattigo)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.what, ours, theirs)
		rows++
	}
	return b.String(), rows, nil
}

// paperCells returns the row of a published table, and whether the page has the table.
func paperCells(published map[string][][]string, r readmeRow) (cells []string, there bool) {
	for heading, list := range published {
		if !strings.HasPrefix(heading, r.section) {
			continue
		}
		for _, c := range list {
			if len(c) > 3 && c[0] == r.row && c[1] == r.column {
				return c, true
			}
			there = there || len(c) > 1 && c[1] == r.column
		}
	}
	return nil, there
}

// TestReadmeFigures checks that the table of figures in README.md is the one that docs/measurements gives. With -update it
// writes the table.
func TestReadmeFigures(t *testing.T) {
	read := func(path ...string) string {
		b, err := os.ReadFile(filepath.Join(append([]string{".."}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	benchmarks, papers := read("docs", "measurements", "benchmarks.md"), read("docs", "measurements", "benchmarks-papers.md")
	want, rows, err := figureTable(benchmarks, papers)
	if err != nil {
		t.Fatal(err)
	}
	if rows < 6 {
		t.Errorf("the table has only %d rows", rows)
	}
	readme := read("README.md")
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
	if _, _, err := figureTable(strings.ReplaceAll(benchmarks, "`mul_s14_64`", "`mul`"), papers); err == nil {
		t.Error("a missing row of the benchmarks is not noticed")
	}
}
