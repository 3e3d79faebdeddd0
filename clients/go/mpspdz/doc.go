// Package mpspdz writes one party's shares in the preprocessing format of MP-SPDZ, which its online phase reads when it
// is started with -F. The format, and how to use the files, is in docs/mp-spdz.md.
//
// A Tree is one party's part of a directory Player-Data; a File of it takes shares as Lodge has them, which is each
// record's values and then their MACs as canonical little-endian elements (docs/export-format.md), and writes them as
// MP-SPDZ has them: every value next to its MAC, in Montgomery form. Records are streamed: beyond a buffer of fixed size
// a File holds the values of one record, which is much only for matrices.
//
// A target that is a named pipe is written to as its reader reads.
//
// Export does that with share directories, the form in which shares leave Lodge (package tuplefile).
//
// The package knows no protocol code; it depends on the standard library and package tuplefile only. Conversion neither
// branches nor indexes on values. Everything that it writes is secret to its party: files have mode 0600, directories
// 0700.
package mpspdz
