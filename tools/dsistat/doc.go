// Package dsistat is the command line of dsistat, which says of a store's tables what they hold, who reads it, what
// that costs, and what was saved.
//
//	arguments ──> grammar ──> report.Build ──> a view, CSV, JSON or a page
//
// Figures, layout and advice come from package report. Exit codes are those of dsi: 0 done, 1
// failed, 2 the arguments are wrong, 5 not found, 130 interrupted. It is a package, so that a test can run dsi and
// dsistat side by side.
package dsistat
