// Package tuplefile reads and writes exported share directories, the form in which one party's
// shares of a batch of tuples leave Lodge. The format is specified in
// docs/reference/export-format.md.
//
// A directory holds one party's shares: manifest.json, a [Manifest] that describes them, and one
// data file of fixed-width little-endian canonical field elements. The data file is a sequence of
// records, one per tuple, for example:
//
//	scalar   a, b, c, then the shares of their MACs             (6 elements)
//	matrix   A (m x k), B (k x n), C (m x n), row-major, then the shares of their MACs in the same order
//
// A [Writer] writes a directory ([Create]), and a [Reader] reads one ([Open]).
//
// The package knows bytes and names, not arithmetic: it depends on the standard library only, so
// that both the exporter and the independent checker can use it without sharing any protocol code.
//
// Everything in a directory is secret to its party: files are created with mode 0600, directories
// with 0700, and errors never quote the contents of shares or of the manifest's key share.
package tuplefile
