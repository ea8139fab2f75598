// Package stream is what all sources need of bytes: fingerprints of files and streams, named pipes, and names for files
// that are not read here.
package stream
