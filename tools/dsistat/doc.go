// Package dsistat is the command line of dsistat, which reports on the tables of a store: contents, usage, cost and
// savings.
//
//	arguments ──> grammar ──> report.Build ──> a view, CSV, JSON or a page
//
// Figures, layout and advice come from package report. Exit codes are those of dsi: 0 done, 1
// failed, 2 the arguments are wrong, 3 damage was found, 5 not found, 130 interrupted. It is a package, so that a test
// can run dsi and dsistat side by side.
package dsistat
