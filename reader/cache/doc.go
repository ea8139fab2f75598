// Package cache has caches that the readers of a process share.
//
// Selections caches the rows of segments that filters select. Segments are immutable, so entries never become stale;
// the least recently used ones are evicted. Reused counts the hits and misses of selections and of reused buffer pools.
//
// Everything is safe for concurrent use.
package cache
