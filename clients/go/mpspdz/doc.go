// Package mpspdz writes one party's shares in the preprocessing format of MP-SPDZ, which its online
// phase reads when started with -F. docs/guides/mp-spdz.md describes the format and how to use the
// files.
//
// A [Tree] is one party's part of a directory Player-Data. A [File] in it accepts shares in Lodge's
// format: each record's values followed by their MACs as canonical little-endian elements
// (docs/reference/export-format.md). It writes them in MP-SPDZ's format: every value next to its
// MAC, in Montgomery form. Records are streamed: in addition to a buffer of fixed size a File holds
// the values of one record, which are large only for matrices.
//
// A target that is a named pipe is written as fast as its reader reads.
//
// [Export] converts share directories, the form in which shares leave Lodge (package [tuplefile]).
//
// The package contains no protocol code; it depends only on the standard library and package
// tuplefile. Conversion does not branch on values or use them as indices. All files are secret to
// their party: files have mode 0600, directories 0700.
package mpspdz
