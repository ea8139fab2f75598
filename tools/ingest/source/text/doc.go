// Package text reads delimited text: Hive's own layout, and CSV. Its columns are those of a DDL, of the mapping file or
// of a header line.
//
//	sniff.go      what the mapping file does not say of the layout is found in the text's first lines
//	onecolumn.go  texts without a delimiter, and those that only look so
//	infer.go      the types that nothing gives are those of the values of all files, each of which is read once for it
//	text.go       reads the rows
//	lists.go      columns of text that look like lists, and the mapping file that reads them so
//	brackets.go   lists as Python and JSON write them
package text
