//go:build invariants

package reader

// invariants: released memory is overwritten.
const invariants = true
