// Package input says what a format of sources is, and what its readers know of the files that are read together.
//
//	Format    how its files begin and end, what opens them: one value in the package of each format
//	Set       the files of one ingest, the mapping file, the DDL, the features of the table
//	File      one of them, or a stream
//
// A format whose files do not state their types infers them from all files of a Set before the first row is read
// (Set.Scan).
package input
