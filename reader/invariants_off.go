//go:build !invariants

package reader

// invariants: released memory is left as it is.
const invariants = false
