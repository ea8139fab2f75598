// Package terminal is what the programs dsi and dsistat share: they parse arguments, print tables, JSON and errors, and
// end with exit codes in the same way.
//
//	main ── Main ──> run ── Env.Run ─┬─> Parse ──> the command's own work ──> Print..., Table, CSV    standard output
//	                                 └─> an error: one line, and the exit code                        standard error
//
// Text that comes from data never reaches the terminal unchanged: OneLine removes control characters.
package terminal
