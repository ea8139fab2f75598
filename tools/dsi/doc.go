// Package dsi is the command line of dsi: it ingests dumps into a store, says what is there, reads it as a trainer
// would, exports it, and keeps it in order.
//
//	arguments ──> grammar ──> one Run of a package below ──> storage | reader | writer | tools/...
//	                                   |
//	                       stdout: data, or with --json one object
//	                       stderr: a progress bar on a terminal, and one line when something is wrong
//
//	describe   tables, describe, features, snapshots, inspect         what there is
//	read       head, scan, count, lookup, export                      its rows
//	change     ingest, delete, samples, overlay, branch, features     one commit each
//	maintain   compact, erase, gc, verify, leases, usage              keeping a store in order
//	app        what they share: arguments, flags, progress
//
// There is no logic here: a Run opens what it needs, calls one layer, and prints. Exit codes: 0 done, 1 failed, 2 the
// arguments are wrong, 3 verify found damage, 4 a commit lost its race, 5 not found, 130 interrupted.
package dsi
