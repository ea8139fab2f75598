// Package page reads the pages of a Parquet column chunk.
//
//	Reader    one page after the other: header, checksum, decompression, dictionary
//	Cursor    a place in a page: its levels, and its values in PLAIN, dictionary and RLE encodings
//	Library   values in the DELTA encodings and BYTE_STREAM_SPLIT, which arrow-go decodes
//
// A page can be dropped from memory between batches and is read again. Every length is checked before memory is made
// for it.
package page
