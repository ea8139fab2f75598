// Package command is what the commands dsi and dsistat have in common: how arguments are parsed, what is printed how,
// and what exit codes mean.
//
//	main ── Main ──> run ── Parse ──> the command's own work ──> Table, Facts, JSON, CSV    standard output
//	                  └──── Report ──> one line, and the exit code                          standard error
//
// What comes from data never reaches the terminal as it is: OneLine takes control characters out.
package command
