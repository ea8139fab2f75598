// Package footer reads the footer of a Parquet file, once: the schema as a tree of Elements, the RowGroups, and who
// wrote the file. Column chunks are read when their row group is.
//
// What has no place in a table is refused by name (Element.Refused), and the rest of the file can be read.
package footer
