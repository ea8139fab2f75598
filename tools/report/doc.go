// Package report says of tables what they hold, who reads it, what that costs, and what was saved.
//
//	snapshot ── segments' indexes ─┐
//	           layers, sets, leases├──> Build ──> Report ──> JSON (docs/dsistat.md)
//	usage.Summary ────────────────┘                  ├───> Views: tables and facts for people, CSV
//	                                                  └───> report/page: HTML
//
// A Report is a plain value. All its figures follow from directories, the listing and usage records: no value is
// decoded, and the indexes are gone through once, an entry at a time, so that a report needs memory for the features
// and not for their stripes.
//
// # Invariants
//
//   - Savings add up: source bytes less stored bytes are the sum of the causes, to the byte, whatever the directories
//     say. What of a cause is an estimate is said beside it.
//   - What cannot be known from directories is missing, not guessed.
//   - A damaged usage record is counted and named, and changes nothing else. A damaged index ends the report with an
//     error that says where.
package report
