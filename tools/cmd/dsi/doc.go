// Command dsi is dsistore's command line: it lands dumps in a store, looks at what is there, reads it as a trainer
// would, exports it, and keeps it in order.
//
//	arguments ──> cli (kong) ──> one Run ──> storage | reader | arrowbatch | ingest | workload
//	                                |
//	                    stdout: data, or with --json one object
//	                    stderr: a progress bar on a terminal, and one line when something is wrong
//
// There is no logic here: a Run opens what it needs, calls one layer, and prints. Exit codes: 0 done, 1 failed, 2 the
// arguments are wrong, 3 verify found damage, 4 a commit lost its race, 5 not found, 130 interrupted.
package main
