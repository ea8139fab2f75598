// Package dsi is the command line of dsi: it ingests dumps into a store, describes the store, reads it as a trainer
// would, exports tables, and maintains the store.
//
//	arguments ──> grammar ──> one Run of a package below ──> storage | reader | writer | tools/...
//	                                   |
//	                       stdout: data, or with --json one object
//	                       stderr: a progress bar on a terminal, and one line when something is wrong
//
//	describe   tables, describe, features, snapshots, inspect         what there is
//	read       head, scan, count, lookup, export, sql, cache          its rows
//	change     ingest, delete, samples, overlay, branch, features     one commit each
//	maintain   compact, erase, gc, verify, repair, leases, usage      keeping a store in order
//	ui         ui                                                     the page of dsistat, served
//	app        what they share: arguments, flags, progress
//
// There is no logic here: a Run opens what it needs, calls one layer, and prints. Exit codes: 0 done, 1 failed, 2 the
// arguments are wrong, 3 stored bytes are damaged, 4 a commit conflicted, 5 not found, 130 interrupted.
package dsi
