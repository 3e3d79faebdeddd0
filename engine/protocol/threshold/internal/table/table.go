// Package table allocates and erases tables of residues.
package table

// New returns a table of n rows, allocated in one block.
func New(n, width int) [][]uint64 {
	all, rows := make([]uint64, n*width), make([][]uint64, n)
	for i := range rows {
		rows[i] = all[i*width : (i+1)*width : (i+1)*width]
	}
	return rows
}

// Wipe erases a table.
func Wipe(rows [][]uint64) {
	for _, r := range rows {
		clear(r)
	}
}
