// Package dsistat is the command line of dsistat, which says of a store's tables what they hold, who reads it, what
// that costs, and what was saved.
//
//	arguments ──> cli (kong) ──> report.Build ──> a view, CSV, JSON or a page
//
// There is no logic here: figures, layout and advice are package report's. Exit codes are those of dsi: 0 done, 1
// failed, 2 the arguments are wrong, 5 not found, 130 interrupted. It is a package so that a test can run dsi and
// dsistat side by side.
package dsistat
