// Package text reads delimited text: Hive's own layout, and CSV. Its columns are those of a DDL, of the mapping file or
// of a header line.
//
//	sniff.go   what the mapping file does not say of the layout is found in the text's first lines
//	infer.go   the types that nothing gives are those of the values of all files, each of which is read once for it
//	text.go    reads the rows
package text
