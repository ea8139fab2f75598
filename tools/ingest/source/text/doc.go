// Package text reads delimited text: Hive's own layout, and CSV. Its columns are those of a DDL, of the mapping file or
// of a header line; the types of a header's columns can be inferred from the values of all files.
package text
