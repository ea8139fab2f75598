//go:build !invariants

package memory

// Invariants: released memory is left as it is.
const Invariants = false
