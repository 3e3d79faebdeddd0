package bench

import (
	"fmt"
	"strings"

	"github.com/lodge-mpc/lodge/engine/linear"
)

// This file holds the figures of the five papers, and nothing that is computed: each table once,
// with its number, its rows in the paper's order and the subject that a measurement of ours needs.
// papers.go says how a subject is measured.

// A table is a published table or figure.
type table struct {
	name, source, title string
	machine             string   // of the paper
	differs             []string // differences from the paper
	columns             []column
	rows                []tableRow
	measure             string // the measurement of its rows, see papers.measurement
}

type column struct{ name, unit string }

// tableRow is one row of a table: a figure for each column, 0 where the paper gives no number.
type tableRow struct {
	label   string
	of      subject
	figures []float64
	missing string // the reason why Lodge has no figures; then the subject is empty
}

// subject holds the parameters of a row. Only the fields that its measurement uses are set.
type subject struct {
	set, field       string
	dim, parties     int
	threshold        int
	rows, cols, many int // of matrices, and how many there are
	most             uint64
	packing          linear.Packing
	method           linear.Method
	plain            []uint64 // plaintext moduli
	processes        bool     // parties are processes
}

const (
	xeon     = "Intel Xeon Platinum 8268 at 2.9 GHz, one thread"
	earlier  = "a figure of the earlier scheme [4], which Lodge does not implement"
	noBFV    = "Params III are ordinary BFV, which Lodge does not implement"
	noFigure = "the paper has no figure"
)

// setOf are the sets that stand for Params I and II: as many slots with the same b, but other
// primes.
var setOf = map[string]string{"I": "S14-64", "II": "S13-16"}

var gearColumns = []column{{"unit", "s"}, {"amortised", "s"}}

// gearRow is a row of Params I or II.
func gearRow(params string, bits, dim int, figures ...float64) tableRow {
	return tableRow{
		label: fmt.Sprintf("log p = %d, Params %s", bits, params), figures: figures,
		of: subject{set: setOf[params], field: fmt.Sprintf("p%d", bits), dim: dim},
	}
}

// lacking is a row without a measurement.
func lacking(label, missing string, figures ...float64) tableRow {
	return tableRow{label: label, figures: figures, missing: missing}
}

const ms, us = 1e-3, 1e-6

var matriGearTables = []table{
	{
		name: "matrigear-2", source: "MatriGear, table 2", title: "parameters", measure: "parameters",
		differs: []string{
			"S14-64 stands for Params I, S13-16 for Params II: the same N, b and slots",
			"the primes are of 47 and 43 bits, for kernels of 52-bit products; the paper's are of 50 to 60",
		},
		columns: []column{{"log q", "bits"}, {"log N", ""}, {"primes", ""}, {"log D", ""}, {"2^k - b", ""}},
		rows: []tableRow{
			gearRow("I", 128, 0, 426, 14, 7, 13, 3072), gearRow("I", 256, 0, 426, 14, 7, 12, 64),
			gearRow("I", 512, 0, 426, 14, 7, 11, 428), gearRow("I", 1024, 0, 426, 14, 7, 10, 8),
			gearRow("I", 2048, 0, 426, 14, 7, 9, 22), gearRow("I", 4096, 0, 426, 14, 7, 8, 56),
			gearRow("II", 128, 0, 230, 13, 4, 10, 196), gearRow("II", 256, 0, 230, 13, 4, 9, 22),
			gearRow("II", 512, 0, 230, 13, 4, 8, 72), gearRow("II", 1024, 0, 230, 13, 4, 7, 28),
			gearRow("II", 2048, 0, 230, 13, 4, 6, 190), gearRow("II", 4096, 0, 230, 13, 4, 5, 288),
			lacking("log p = 128, Params III", noBFV, 686, 15, 12, 15, 0), lacking("log p = 256, Params III", noBFV, 1202, 16, 20, 16, 0),
			lacking("log p = 512, Params III", noBFV, 2231, 17, 37, 17, 0), lacking("log p = 1024, Params III", noBFV, 4279, 18, 71, 18, 0),
		},
	},
	{
		name: "matrigear-3", source: "MatriGear, table 3", title: "size of all keys", measure: "keys",
		differs: []string{"uniform halves of keys are sent as a seed", "key-switching digits have three primes with S14-64, so that there are fewer digits; one with S13-16, as in the paper"},
		columns: []column{{"keys", "B"}},
		rows: []tableRow{
			{label: "d = 128, Params I", of: subject{set: setOf["I"], dim: 128}, figures: []float64{1.45e9}},
			{label: "d = 256, Params I", of: subject{set: setOf["I"], dim: 256}, figures: []float64{0}},
			{label: "d = 512, Params I", of: subject{set: setOf["I"], dim: 512}, figures: []float64{0}},
			{label: "d = 128, Params II", of: subject{set: setOf["II"], dim: 128}, figures: []float64{0.22e9}},
			lacking("d = 128, previous work", earlier, 27.4e9),
		},
	},
	{
		name: "matrigear-4", source: "MatriGear, table 4", title: "bytes that a party sends, d = 128, log p = 128", measure: "bytes",
		machine: "computed by the paper, not measured",
		differs: []string{
			"counted between parties that are processes: with sacrifice, MAC check and encoding; the paper counts proofs and decryption",
			"of proofs only digests of masks are sent, and ciphertexts are switched to a smaller modulus before decryption",
		},
		columns: []column{{"MAC key", "B"}, {"a triple", "B"}},
		rows: []tableRow{
			{label: "Params I", of: subject{set: setOf["I"], field: "p128", dim: 128}, figures: []float64{121e6, 13.6e6}},
			{label: "Params II", of: subject{set: setOf["II"], field: "p128", dim: 128}, figures: []float64{16.6e6, 29.4e6}},
			lacking("previous work", earlier, 816e6, 12.5e6),
		},
	},
	{
		name: "matrigear-5", source: "MatriGear, table 5", title: "one product of ciphertexts (Mul)", machine: xeon, measure: "mul", columns: gearColumns,
		differs: []string{"amortised: over the slots of a ciphertext"},
		rows: []tableRow{
			gearRow("I", 128, 0, 56.62*ms, 6.91*us), gearRow("I", 256, 0, 56.58*ms, 13.81*us), gearRow("I", 512, 0, 56.53*ms, 27.60*us),
			gearRow("I", 1024, 0, 56.49*ms, 55.17*us), gearRow("I", 2048, 0, 56.46*ms, 110.27*us), gearRow("I", 4096, 0, 56.33*ms, 220.05*us),
			gearRow("II", 128, 0, 12.72*ms, 12.22*us), gearRow("II", 256, 0, 12.76*ms, 24.91*us), gearRow("II", 512, 0, 12.75*ms, 49.79*us),
			gearRow("II", 1024, 0, 12.74*ms, 99.57*us), gearRow("II", 2048, 0, 12.74*ms, 199.03*us), gearRow("II", 4096, 0, 12.75*ms, 398.49*us),
			lacking("log p = 128, Params III", noBFV, 0.25, 7.85*us), lacking("log p = 256, Params III", noBFV, 1.34, 20.52*us),
			lacking("log p = 512, Params III", noBFV, 7.62, 58.15*us), lacking("log p = 1024, Params III", noBFV, 53.22, 203.03*us),
		},
	},
	{
		name: "matrigear-6", source: "MatriGear, table 6", title: "product of encrypted matrices (MatMul), d = 128", machine: xeon, measure: "matmul", columns: gearColumns,
		differs: []string{"amortised: over the matrices of a batch, which fill the slots"},
		rows: []tableRow{
			gearRow("I", 128, 128, 47.77, 0.75), gearRow("I", 256, 128, 47.64, 1.49), gearRow("I", 512, 128, 48.34, 3.02),
			gearRow("I", 1024, 128, 48.45, 6.06), gearRow("I", 2048, 128, 47.83, 11.06), gearRow("I", 4096, 128, 48.23, 24.12),
			gearRow("II", 128, 128, 12.21, 1.53), gearRow("II", 256, 128, 12.31, 3.08), gearRow("II", 512, 128, 12.31, 6.16),
			gearRow("II", 1024, 128, 12.30, 12.30),
			lacking("log p = 2048, Params II", "a ciphertext has 64 slots, fewer than the 128 rows of a matrix; the paper has no figure either", 0, 0),
		},
	},
	{
		name: "matrigear-7", source: "MatriGear, table 7", title: "an authenticated matrix triple, amortised", machine: xeon, measure: "triple",
		differs: []string{
			"as in the paper only MatMul and the products with the MAC key, without proofs, decryption, sacrifice and network",
			"log p = 256 and 512 are not in the paper",
		},
		columns: []column{{"a triple", "s"}},
		rows: []tableRow{
			gearTriple(128, 128, 0.99), gearTriple(128, 256, 0), gearTriple(128, 512, 0),
			gearTriple(256, 128, 6.84), gearTriple(256, 256, 0), gearTriple(256, 512, 0),
			gearTriple(512, 128, 48.62), gearTriple(512, 256, 0), gearTriple(512, 512, 0),
			lacking("d = 128, previous work", earlier, 34.25), lacking("d = 256, previous work", earlier, 207.14),
			lacking("d = 512, previous work", earlier, 1459.63),
		},
	},
}

// gearTriple is a row of table 7.
func gearTriple(dim, bits int, figure float64) tableRow {
	row := gearRow("I", bits, dim, figure)
	row.label = fmt.Sprintf("d = %d, log p = %d", dim, bits)
	return row
}

const (
	noWAN   = "needs machines with 100 ms and 100 Mbit/s between them"
	noNoah  = "the paper quotes another scheme, [30], which Lodge does not implement"
	ajaxSet = "L11-53"
)

func ajax(threshold int, noah [4]float64, lan, wan [2]float64) []tableRow {
	label := func(s string) string { return fmt.Sprintf("t = %d, %s", threshold, s) }
	return []tableRow{
		{label: label("protocol alone"), of: subject{set: ajaxSet, threshold: threshold}, figures: []float64{lan[0] * ms, lan[1] * ms}},
		{label: label("processes"), of: subject{threshold: threshold, processes: true}, figures: []float64{lan[0] * ms, lan[1] * ms}},
		lacking(label("WAN"), noWAN, wan[0]*ms, wan[1]*ms),
		lacking(label("LAN, [30]"), noNoah, noah[0]*ms, noah[1]*ms),
		lacking(label("WAN, [30]"), noNoah, noah[2]*ms, noah[3]*ms),
	}
}

var ajaxTables = []table{{
	name: "ajax-1", source: "Ajax, table 1", title: "threshold decryption, a ciphertext of a batch of 20,000", measure: "decrypt",
	machine: "AWS c6i.2xlarge of 8 vCPUs for each party, 1 ms and 1 Gbit/s between them",
	differs: []string{
		"protocol only: CPU time of a party of the quorum on one thread, no network, the paper's form of masks and dimensions, " + ajaxSet,
		"processes: wall time with all 2t+1 parties on this machine, loopback, mutual TLS and a durable ledger, the default set",
		"masks of Lodge are made by oblivious transfer and checked by opening some; the paper's triples come from EMP and are semi-honest",
		"total: with the masks, which are made beforehand",
	},
	columns: []column{{"online", "s"}, {"total", "s"}},
	rows: concat(
		ajax(1, [4]float64{242.44, 242.44, 291.79, 291.79}, [2]float64{0.003, 0.855}, [2]float64{0.037, 5.405}),
		ajax(3, [4]float64{243.41, 0, 294.86, 0}, [2]float64{0.005, 1.499}, [2]float64{0.081, 13.464}),
		ajax(13, [4]float64{259.58, 0, 309.39, 0}, [2]float64{0.045, 5.660}, [2]float64{0.235, 54.499}),
	),
}}

func concat(lists ...[]tableRow) (all []tableRow) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// mkRows are the rows of one set of table 3: times of the paper, and of its parallel variant, for
// 2, 4, 8, ... parties.
func mkRows(set string, times ...float64) (rows []tableRow) {
	for i := 0; i < len(times); i += 2 {
		k := 2 << (i / 2)
		rows = append(rows, tableRow{
			label: fmt.Sprintf("set %s, k = %d", set, k), of: subject{set: "insecure-M11-" + set, parties: k}, figures: times[i : i+2],
		})
	}
	return rows
}

func mkKeys(set string, rotation float64) tableRow {
	return tableRow{label: "set " + set, of: subject{set: "insecure-M11-" + set}, figures: []float64{rotation * 1e6, 109e6}}
}

// mkCCS19 are the figures of the older scheme.
func mkCCS19(set string, times ...float64) (rows []tableRow) {
	for i, t := range times {
		rows = append(rows, lacking(fmt.Sprintf("CCS19 %s', k = %d", set, 2<<i), "the older scheme CCS19, which Lodge does not implement", t, 0))
	}
	return rows
}

var multikeyTables = []table{
	{
		name: "multikey-3", source: "Multi-key TFHE, table 3", title: "time of a NAND gate of k parties", machine: "Intel Xeon Platinum 8268 at 2.9 GHz, in Julia", measure: "gate",
		differs: []string{
			"the paper's sets, of less than 128 bits and insecure by name; `lodge-bench multikey` measures the sets of 128 bits",
			"binary LWE secrets have at most one 1 in each block of two coordinates, as in tfhe-go",
			"parallel: all processors of this machine, by the clock",
		},
		columns: []column{{"one thread", "s"}, {"parallel", "s"}},
		rows: concat(
			mkRows("I", 0.24, 0.17), mkRows("II", 0.38, 0.25, 0.88, 0.27), mkRows("III", 0.41, 0.30, 1.02, 0.33, 2.23, 0.35),
			mkRows("IV", 0.49, 0.37, 1.22, 0.39, 2.69, 0.42, 5.65, 0.47),
			mkRows("V", 0.58, 0.44, 1.46, 0.48, 3.18, 0.49, 6.78, 0.57, 13.94, 0.88),
			mkCCS19("I", 0.24), mkCCS19("II", 0.30, 0.89), mkCCS19("III", 0.36, 1.01, 3.32), mkCCS19("IV", 0.75, 2.16, 6.92, 24.72),
		),
	},
	{
		name: "multikey-3-keys", source: "Multi-key TFHE, table 3", title: "keys of a party", measure: "gate keys",
		differs: []string{"published keys: uniform halves are a seed, and a switching key is not tabulated for every digit"},
		columns: []column{{"rotation", "B"}, {"switching", "B"}},
		rows:    []tableRow{mkKeys("I", 106), mkKeys("II", 176), mkKeys("III", 141), mkKeys("IV", 176), mkKeys("V", 212)},
	},
}

const hel = "Xeon E5-2640 v3 at 2.6 GHz, one thread, HElib"

// slotsRow is a row of Crypt-CNN's table 3: plaintext moduli that give l slots in degree 2^logM.
func slotsRow(logM, l int, moduli ...uint64) tableRow {
	row := tableRow{label: fmt.Sprintf("m = 2^%d, l = %d, t = %s", logM, l, join(moduli)), of: subject{dim: 1 << logM, many: l, plain: moduli}}
	for range moduli {
		row.figures = append(row.figures, float64(l))
	}
	return row
}

func join(list []uint64) string {
	var b strings.Builder
	for i, x := range list {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprint(&b, x)
	}
	return b.String()
}

// vectorRows are points of figure 2(a), with both packings; the paper draws most of them and gives
// the numbers of two.
func vectorRows() (rows []tableRow) {
	for _, n := range [][2]int{{100, 100}, {100, 2000}, {1000, 100}, {1000, 2000}, {4000, 100}, {4000, 1000}, {4000, 2000}} {
		for _, p := range []linear.Packing{linear.Double, linear.Forward} {
			row := tableRow{
				label:   fmt.Sprintf("%d x %d, %v packing", n[0], n[1], p),
				of:      subject{set: linear.DefaultVector, rows: n[0], cols: n[1], packing: p},
				figures: []float64{0, 0},
			}
			if n == [2]int{4000, 2000} {
				row.figures = map[linear.Packing][]float64{linear.Double: {8, 12e6}, linear.Forward: {29, 195e6}}[p]
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// batchRows are points of figure 2(b): sums over c matrices of n' x 4.
func batchRows() (rows []tableRow) {
	for _, c := range []int{3, 8, 12} {
		for _, side := range []int{4, 64, 124} {
			row := tableRow{
				label: fmt.Sprintf("c = %d, n' = %d^2", c, side), figures: []float64{0, 0},
				of: subject{set: linear.DefaultVector, rows: side * side, cols: 4, many: c},
			}
			if c == 12 && side == 124 {
				row.figures[0] = 0.8
			}
			rows = append(rows, row)
		}
	}
	return rows
}

var cryptCNNTables = []table{
	{
		name: "cryptcnn-2a", source: "Crypt-CNN, figure 2(a)", title: "a matrix times a shared vector (MvM-v)", machine: hel, measure: "vector",
		differs: []string{
			"T is a prime of 32 bits, the paper's t = 257^4; N = 2^13 as in the paper, q of 148 bits",
			"answers are flooded and switched to one prime; the matrix is encoded while it is multiplied, and that is counted",
			"the owner proves its inputs, and that is counted; the paper's inputs are not proved",
			"the paper draws its points, and gives numbers only for 4000 x 2000",
		},
		columns: []column{{"time", "s"}, {"bytes", "B"}}, rows: vectorRows(),
	},
	{
		name: "cryptcnn-2b", source: "Crypt-CNN, figure 2(b)", title: "a sum over c matrices of n' x 4 times vectors (MvM-m)", machine: hel, measure: "batch",
		differs: []string{"parameters as for figure 2(a)", "the owner proves its inputs, and that is counted; the paper's inputs are not proved", "the paper draws its points, and gives a number only for the largest"},
		columns: []column{{"time", "s"}, {"bytes", "B"}}, rows: batchRows(),
	},
	{
		name: "cryptcnn-3", source: "Crypt-CNN, table 3", title: "plaintext moduli t that give l slots", measure: "slots",
		differs: []string{
			"computed: m over the order of t modulo 2m, if 2l divides t-1",
			"m = 2^13, l = 8: the text of the paper has t = 338, which is even; 337 is the nearest prime that fits",
		},
		columns: []column{{"slots, first t", ""}, {"slots, second t", ""}},
		rows: []tableRow{
			slotsRow(12, 8, 113, 401), slotsRow(12, 16, 353, 673), slotsRow(12, 32, 577, 193), slotsRow(12, 64, 641, 1153), slotsRow(12, 128, 769, 3329),
			slotsRow(13, 8, 113, 337), slotsRow(13, 16, 353, 673), slotsRow(13, 32, 577, 193), slotsRow(13, 64, 641, 1153), slotsRow(13, 128, 7937, 3329),
		},
	},
}

// packed is a row of the tables of packed products.
func packed(label, set string, n int, most uint64, method linear.Method, figures ...float64) tableRow {
	return tableRow{label: label, of: subject{set: set, rows: n, most: most, method: method}, figures: figures}
}

const noPrevious = "the previous method, one ciphertext for each row and column, which Lodge does not implement"

var packedColumns = []column{{"encryption", "s"}, {"product", "s"}, {"decryption", "s"}, {"total", "s"}}

var packedTables = []table{
	{
		name: "packed-1", source: "Packed products, table 1", title: "product of encrypted m x m matrices of bits", machine: "Intel Core i7-4790 at 3.6 GHz, PARI", measure: "packed",
		differs: []string{
			"N = 2^13 and q of 144 bits for 128 bits of security, flooding included; the paper's n = 2^11 to 2^15, q of 60 bits, 80 bits of security or less",
			"the first method moves columns side by side before it multiplies, and so has few answers",
		},
		columns: packedColumns,
		rows: []tableRow{
			lacking("previous method, m = 16", noPrevious, 0.3987, 11.5704, 3.5352, 15.5043),
			lacking("previous method, m = 32", noPrevious, 0.7950, 47.8745, 14.063, 62.7325),
			packed("first method, m = 16", "P13-17", 16, 1, linear.First, 0.0150, 0.3064, 0.2170, 0.5384),
			packed("first method, m = 32", "P13-17", 32, 1, linear.First, 0.0160, 0.5780, 0.3592, 0.9532),
			packed("second method, m = 16", "P13-17", 16, 1, linear.Second, 0.0439, 0.0438, 0.0328, 0.1205),
			packed("second method, m = 32", "P13-17", 32, 1, linear.Second, 0.1814, 0.5220, 0.4036, 1.1070),
		},
	},
	{
		name: "packed-2", source: "Packed products, table 2", title: "product of encrypted 16 x 16 matrices, entries of 10 bits", machine: "Intel Core i7-4790 at 3.6 GHz, PARI", measure: "packed",
		differs: []string{
			"N = 2^13, q of 188 bits and T of 40 bits, with entries as they are; the paper packs their bits, with n = 2^13 and 2^17, q of 70 bits",
		},
		columns: packedColumns,
		rows: []tableRow{
			lacking("previous method", noPrevious, 1.4454, 9.4483, 3.6581, 14.5518),
			packed("first method", linear.DefaultProduct, 16, 1023, linear.First, 1.5996, 1.5797, 0.7624, 3.9417),
			packed("second method", linear.DefaultProduct, 16, 1023, linear.Second, 4.2024, 2.0834, 0.9797, 7.2655),
		},
	},
}

// tables are all tables, by paper.
func tables() (all []table) {
	for _, list := range [][]table{matriGearTables, ajaxTables, multikeyTables, cryptCNNTables, packedTables} {
		all = append(all, list...)
	}
	return all
}
