// Package cache keeps what readers of a process have in common from one to the next.
//
// Selections keep which rows of segments a filter selects. Segments are immutable, so an entry never gets old; what was
// used longest ago goes first. Reused counts how often readers found what they need, of selections and of buffer pools.
//
// All is safe for concurrent use.
package cache
