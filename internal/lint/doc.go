// Package lint checks the rules of this repository that the compiler and staticcheck do not know.
//
//	layers.txt ────> Layers ─────┐
//	glossary.txt ──> Glossary ───┼─> Check ──> findings, each "file:line: what is wrong and what to do"
//	prose.txt ─────> Patterns ───┤
//	pending.txt ───> Exceptions ─┤
//	the source tree ─────────────┘
//
// The rules:
//
//   - A package imports only what layers.txt allows, and every package stands in that list.
//   - Only the packages that layers.txt names import Arrow.
//   - No package has a name that says nothing of it (util, common, ...).
//   - Numbers that are written to disk are explicit constants: packages below format use no iota.
//   - No Go file is longer than 700 lines, and no package has more than 25 Go files, tests aside.
//   - No line of Go, Python, shell, assembly or Markdown is longer than 120 columns. Struct tags, tables and addresses
//     may be.
//   - Identifiers and comments use the words of the glossary: glossary.txt lists the words that are not used.
//   - So do docs/ and README.md, which also avoid the patterns of prose.txt. A page of docs/ has at most 1,500 words
//     beside what programs fill in; what is looked up, docs/reference, may have more. mkdocs.yml names every page.
//   - What a link of Markdown leads to is there.
//   - No file carries a mark of unfinished work.
//
// pending.txt lists directories that the rules about files, columns and words do not apply to yet.
//
// The test of this package runs the check over the repository, so that `go test ./...` is the lint run.
package lint
