package bench

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/lodge-mpc/lodge/engine/linear"
)

// publishedJSON holds the figures of the five papers, and nothing that is computed: each table
// once, with its number, its rows in the paper's order and the subject that a measurement of ours
// needs. papers.go says how a subject is measured.
//
//go:embed published.json
var publishedJSON []byte

// A table is a published table or figure.
type table struct {
	Name, Source, Title string
	Machine             string   // of the paper
	Differs             []string // differences from the paper
	Columns             []column
	Rows                []tableRow
	Measure             string // the measurement of its rows, see papers.measurement
}

type column struct{ Name, Unit string }

// tableRow is one row of a table: a figure for each column, 0 where the paper gives no number.
type tableRow struct {
	Label   string
	Of      subject
	Figures []float64
	Missing string // the reason why Lodge has no figures; then the subject is empty
}

// subject holds the parameters of a row. Only the fields that its measurement uses are set.
type subject struct {
	Set, Field       string
	Dim, Parties     int
	Threshold        int
	Rows, Cols, Many int // of matrices, and how many there are
	Most             uint64
	Packing          string
	Method           linear.Method
	Plain            []uint64 // plaintext moduli
	Processes        bool     // parties are processes
}

// tables returns all tables, by paper. The caller must not change them.
var tables = sync.OnceValue(func() (all []table) {
	d := json.NewDecoder(bytes.NewReader(publishedJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		panic(fmt.Sprintf("bench: published.json: %v", err))
	}
	return all
})
