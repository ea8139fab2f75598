// Package report makes reports about tables: contents, usage, cost and savings.
//
//	snapshot ── segments' indexes ─┐
//	           layers, sets, leases├──> Build ──> Report ──> JSON (docs/reference/dsistat-report.md)
//	usage.Summary ────────────────┘                  ├───> Views: tables and facts for people, CSV
//	                                                  └───> report/page: HTML
//
// A Report is a plain value. Its figures come from directories, the listing and usage records: Build decodes no value.
// It reads each index once, entry by entry, so that it needs memory for the features and not for their stripes.
//
// # Invariants
//
//   - Savings add up: source bytes less stored bytes are the sum of the causes, to the byte, whatever the directories
//     say. Each cause says how much of it is an estimate.
//   - What directories do not say is missing, not guessed.
//   - A damaged usage record is counted and named, and changes nothing else. A damaged index ends the report with an
//     error that says where it is.
package report
