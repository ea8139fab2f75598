package storage

import "github.com/dsistore/dsistore/internal/nearest"

// Nearest returns up to n of the candidates that are nearest to name, nearest first. It is for error messages: its cost
// is proportional to the candidates.
func Nearest(name string, candidates []string, n int) []string {
	return nearest.Names(name, candidates, n)
}
