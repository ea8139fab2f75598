// Package stream has what all formats share for bytes: fingerprints of files and streams, named pipes, and the names of
// file types that are not supported, for error messages.
package stream
