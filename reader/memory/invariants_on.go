//go:build invariants

package memory

// Invariants says: released memory is overwritten.
const Invariants = true
