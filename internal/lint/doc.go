// Package lint checks the rules of this repository that the compiler and staticcheck do not know.
//
//	layers.txt ──> Layers ─┐
//	                       ├─> Check ──> findings, each "file:line: what is wrong and what to do"
//	the source tree ───────┘
//
// The rules: a package imports only what layers.txt allows it, and every package stands in that list; Arrow is imported
// only where layers.txt says so; no package is named for being a drawer (util, common, ...); numbers that are written to
// disk are explicit constants, so format packages use no iota; no file is longer than 700 lines; no file carries a mark
// of unfinished work.
//
// The test of this package runs the check over the repository, so that `go test ./...` is the lint run.
package lint
